/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The normalizer of spm_norm.h once more, for a text in one piece: its characters with where they
 * come from, as the reference has it (tokenizer/normalizer.rs). Opt-in.
 */
#pragma once

#include "unicode/grapheme.h"
#include "vocab.h"

struct tok_spm_char {
	const uint8_t *p;
	uint32_t len;
	struct tok_range from;
};

/* What the map makes of a part of the text: a cluster, or a character. */
struct tok_spm_part {
	const uint8_t *p, *end; /* what is left of its new text */
	uint32_t n;		/* characters that it was */
};

struct tok_spm_chars {
	const struct tok_vocab *vocab;
	const uint8_t *text; /* of which the section is a part */
	size_t at, end;	     /* what is left of it */
	size_t from;	     /* the next character that something comes from */
	struct tok_cluster cluster;
	size_t cluster_end;	  /* the open one goes by characters up to here */
	struct tok_spm_part part; /* of all before it there is nothing left */
	struct tok_range last;	  /* the character that was counted last */
	bool begun;		  /* a character came that is no white space */
	size_t keep; /* characters of the map before white space that the end leaves out */
	struct tok_spm_char ahead; /* len == 0: none */
};

/* Text between added tokens: bytes [begin, end). */
void tok_spm_chars_open(struct tok_spm_chars *c, const struct tok_vocab *v, const uint8_t *text,
	size_t begin, size_t end);

/* The next character. False: there is none. */
bool tok_spm_chars_next(struct tok_spm_chars *c, struct tok_spm_char *next);
