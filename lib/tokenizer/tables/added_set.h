/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of a set of added tokens (added.h). */
#pragma once

#include "longest.h"

/* Number of bytes at the front of p[0 .. n) that are none of the few; a kernel (isa/kernels.h). */
#define TOK_SKIP_BYTES 8
typedef size_t tok_skip_kernel(const uint8_t few[TOK_SKIP_BYTES], const uint8_t *p, size_t n);

struct tok_added_token {
	uint32_t id;
	uint16_t len;  /* bytes of its text */
	uint16_t what; /* enum tok_added_what of model.h */
};

struct tok_added {
	struct tok_longest trie; /* all below TOK_LONGEST_GO_ON; ids are indices of token[] */
	struct tok_added_token *token;
	/* set by tok_added_sum */
	uint8_t first[TOK_SKIP_BYTES]; /* the bytes that tokens begin with, if there are few */
	tok_skip_kernel *skip;	       /* to the next of them; NULL: there are more */
	uint32_t n;
	uint32_t what[2]; /* [0]: `what` of all tokens that are not special, ORed; [1]: of all
			     tokens */
	bool plain;	  /* some token is not special */
};

/* Indices of tok_vocab.added. */
enum tok_added_which {
	TOK_ADDED_TEXT_SET = 0,	  /* searched in the original text */
	TOK_ADDED_NORMAL_SET = 1, /* searched in normalized text */
};
