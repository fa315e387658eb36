/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of added tokens, as added.h says what they are. */
#ifndef TOK_ADDED_SET_H
#define TOK_ADDED_SET_H

#include "longest.h"

struct tok_added_token {
	uint32_t id;
	uint16_t len;  /* bytes of its text */
	uint16_t what; /* enum tok_added_what of model.h */
};

struct tok_added {
	struct tok_longest trie; /* all below TOK_LONGEST_GO_ON; ids are places in token[] */
	struct tok_added_token *token;
	/* by tok_added_sum */
	uint8_t first[4]; /* all bytes that a token begins with, if they are not more */
	bool few;
	uint32_t n;
	uint32_t what[2]; /* of those together that are not special, and of all */
	bool plain;	  /* there is one that is not special */
};

/* Places in tok_vocab.added. */
enum tok_added_which {
	TOK_ADDED_TEXT_SET = 0,	  /* looked for in the text as it comes */
	TOK_ADDED_NORMAL_SET = 1, /* in normalized text */
};

#endif
