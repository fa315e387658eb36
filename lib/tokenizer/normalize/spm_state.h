/* SPDX-License-Identifier: BSD-3-Clause */
/* A text on its way through the normalizer of spm_norm.h. Fields are private; nothing is to be
 * freed. */
#ifndef TOK_SPM_STATE_H
#define TOK_SPM_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* White space that waits, as it will be given out: the end of a text may leave it out. */
#define TOK_SPM_WHITE_MAX 1000

/* Bytes of a USER_DEFINED piece, or a key of sentencepiece's map, are fewer. */
#define TOK_SPM_WINDOW 256

/* Longer clusters go character by character (normalizers/precompiled.rs). */
#define TOK_CLUSTER_BYTES 5

/* Where a grapheme cluster stands (grapheme.h). */
struct tok_cluster {
	uint8_t before;	  /* enum tok_grapheme of its last character */
	uint8_t emoji;	  /* 1: a pictograph and marks; 2: and a joiner behind */
	uint8_t conjunct; /* 1: a consonant and marks; 2: with a linker among them */
};

struct tok_spm_state {
	struct tok_cluster cluster;
	bool decided; /* the open cluster goes character by character */
	uint8_t n_held;
	uint8_t held[TOK_CLUSTER_BYTES]; /* the open cluster, if it is not */
	bool begun;			 /* a character came that is no white space */
	bool inside;			 /* sentencepiece: the last one was no blank */
	uint8_t blanks;			 /* a run of them is open: 1, or 2 for more */
	uint16_t n_white;		 /* before it; sentencepiece: blanks */
	union {
		uint8_t white[TOK_SPM_WHITE_MAX];
		struct { /* sentencepiece: what may be the beginning of a longer key */
			uint16_t n;
			uint8_t held[TOK_SPM_WINDOW];
		} window;
	};
};

#endif
