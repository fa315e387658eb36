/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second machine: characters to pretokens, as GPT-2's regular expression finds them:
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Two implementations that must agree: the scanner looks at text that lies in memory, 64 bytes at
 * a time, and finds every border that is certain; the stepper takes one character at a time and
 * is used where a pretoken is cut by the end of a piece.
 */
#ifndef TOK_PRETOK_H
#define TOK_PRETOK_H

#include "vocab.h"

/* State of the open pretoken, tok_stream.state. */
enum tok_pretok_state {
	TOK_ST_NONE = 0, /* no pretoken is open */
	TOK_ST_BLANK,	 /* one U+0020, which a word may follow */
	TOK_ST_SPACE,	 /* one other white space character */
	TOK_ST_SPACES,	 /* two or more; the last is in ahead[], for it may begin the next */
	TOK_ST_LETTERS,
	TOK_ST_NUMBERS,
	TOK_ST_OTHERS,
	TOK_ST_QUOTE,	   /* ' at the front */
	TOK_ST_QUOTE_AHEAD /* ' and, in ahead[], r, v or l */
};

/* What a character does to the open pretoken. */
enum tok_pretok_step {
	TOK_STEP_TAKE,	     /* belongs to it */
	TOK_STEP_TAKE_CLOSE, /* belongs to it and ends it */
	TOK_STEP_CLOSE,	     /* does not belong to it: ends it; ahead[], then the character, come after */
	TOK_STEP_HOLD,	     /* cannot be said yet: goes to ahead[] */
	TOK_STEP_AHEAD_HOLD, /* ahead[] belongs to it, the character goes to ahead[] */
	TOK_STEP_AHEAD_TAKE_CLOSE, /* ahead[] and the character belong to it and end it */
};

/* Step for a character of class cls with first byte c; *state becomes the state after it. */
enum tok_pretok_step tok_pretok_gpt2_step(
	uint8_t *state, const uint8_t *ahead, enum tok_class cls, uint8_t c);

/*
 * Borders of a piece of well-formed UTF-8 that begins where a pretoken does, a block at a time. The
 * caller zeroes it, sets v, text, n and last, undecided to SIZE_MAX, and calls
 * tok_pretok_gpt2_scan until `at` reaches n.
 */
struct tok_pretok_scan {
	const struct tok_vocab *v;
	const uint8_t *text;
	size_t n;
	bool last;  /* the text ends at n */
	size_t at;  /* scanned up to here */
	uint64_t letter, number, other, space, blank; /* class of the character before `at`, bit 0 */
	uint64_t set, clear; /* borders forced by a contraction that crosses a block */
	size_t undecided;    /* a contraction that needs more text begins here; else SIZE_MAX */
};

#define TOK_SCAN_BLOCK 64

/*
 * Scan the next block and write where pretokens begin (offsets in text, rising) to start[], which
 * has room for TOK_SCAN_BLOCK. Returns their number. A pretoken is certain once the next one's start
 * is known; the last start is that of a pretoken that ends at n or is open.
 */
uint32_t tok_pretok_gpt2_scan(struct tok_pretok_scan *scan, size_t *start);

/* Well-formed text. With `last` it is the end. False: the carry was exceeded. */
bool tok_pretok_feed(
	struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);

/* The text ends: so does the open pretoken. False: the carry was exceeded. */
bool tok_pretok_finish(struct tok_stream *s, uint32_t **ids);

#endif
