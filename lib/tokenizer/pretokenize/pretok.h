/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second machine: characters to pretokens, as the regular expressions of the vocabulary find
 * them. They are compiled at load into a table of steps (pretokenize/regex/). A step takes one
 * character and returns what it does to the open pretoken.
 *
 * Steps are used at the ends of pieces of text (pretokenize/feed.c), and for text between in
 * vocabularies whose expressions are not known by name. For known ones, kernels scan 64 bytes at a
 * time (pretokenize/scan_*.c). Both must agree.
 */
#pragma once

#include "vocab.h"

#define TOK_ST_NONE 0 /* state of tok_stream: no pretoken is open */

/*
 * What a character does to the open pretoken and to held[], the bytes not decided so far. Up to
 * TOK_STEP_TAKE_HOLD the character is consumed. After the others it is stepped again, and from
 * TOK_STEP_CLOSE on, held[] before it.
 */
enum tok_pretok_step {
	TOK_STEP_TAKE,	     /* held[] and the character belong to it */
	TOK_STEP_TAKE_CLOSE, /* the same, and the pretoken ends after the character */
	TOK_STEP_HOLD,	     /* hold the character too */
	TOK_STEP_TAKE_HOLD,  /* held[] belongs to it; hold the character */
	TOK_STEP_HELD_CLOSE, /* held[] belongs to it, and it ends */
	TOK_STEP_CLOSE,	     /* it ends; step held[] again first */
	TOK_STEP_AGAIN,	     /* step held[] again first, in the new state */
};

/* An entry of tok_vocab.step: the state after the step, and the step. */
#define TOK_STEP_BITS 3
#define TOK_STEP_MASK 7

/* Step for the character cp of SentencePiece's models. `known`: some token has the character. */
enum tok_pretok_step tok_pretok_pieces_step(
	const struct tok_vocab *v, uint32_t *state, uint32_t known, uint32_t cp);

/* Step for a character of this class, by the table; *state becomes the state after it. */
TOK_INLINE enum tok_pretok_step
tok_pretok_table_step(const struct tok_vocab *v, uint32_t *state, uint32_t of_class)
{
	const uint16_t entry = v->step[*state * v->step_width + of_class];

	*state = entry >> TOK_STEP_BITS;
	return (enum tok_pretok_step)(entry & TOK_STEP_MASK);
}

/* The class of a text's end. */
TOK_INLINE uint32_t
tok_pretok_end_class(const struct tok_vocab *v)
{
	return v->step_width - 1;
}

/* Step for the next character of a vocabulary's text; *state becomes the state after it. */
static inline enum tok_pretok_step
tok_pretok_step(const struct tok_vocab *v, uint32_t *state, uint32_t cp)
{
	const uint32_t of_class = tok_class_of(v, cp);

	if (v->pretok == TOK_PRETOK_SENTENCEPIECE)
		return tok_pretok_pieces_step(v, state, of_class, cp);
	return tok_pretok_table_step(v, state, of_class);
}

/* The step for the end of the text while a pretoken is open: one that consumes no character. */
static inline enum tok_pretok_step
tok_pretok_step_end(const struct tok_vocab *v, uint32_t *state)
{
	if (v->pretok == TOK_PRETOK_SENTENCEPIECE) {
		*state = TOK_ST_NONE;
		return TOK_STEP_CLOSE;
	}
	return tok_pretok_table_step(v, state, tok_pretok_end_class(v));
}

/*
 * Find the borders of pretokens in a piece of well-formed UTF-8, some blocks at a time. The piece
 * must begin where a pretoken begins. The caller zeroes this struct, sets v, text, n and last, and
 * calls tok_pretok_scan until `at` reaches n.
 */
struct tok_pretok_scan {
	const struct tok_vocab *v;
	const uint8_t *text;
	size_t n;
	bool last; /* the text ends at n */
	size_t at; /* scanned up to here */
	/* used by tok_pretok_step_scan */
	size_t held; /* bytes before `at` that are held */
	uint32_t state;
	/* used by the kernels */
	struct {
		uint32_t letter, number, other, opens, tail, space, newline, blank, prefix, low,
			caseless, none, joins, ideograph, ideograph_symbol, ideograph_none;
	} before;	 /* of the character before `at`: 1, or 0 (scan_borders.h) */
	uint32_t digits; /* numbers of an open pretoken */
	uint32_t taken;	 /* characters from `at` on that belong to a contraction */
	/* BERT: white space belongs to no pretoken, so their ends are listed too. The caller sets
	   `end`, with as much room after the n_ends that it has as start[] has */
	size_t *end;
	uint32_t n_ends;
};

#define TOK_SCAN_BLOCK 64

/*
 * Scan the next blocks, until the text ends or start[] has no room for the starts of another. Write
 * the offsets in `text` at which pretokens begin to start[], in ascending order; it has room for
 * `room`, at least TOK_SCAN_BLOCK. Returns their number. A pretoken is certain once the start of
 * the next one is known. The last pretoken ends at n or is still open.
 */
uint32_t tok_pretok_scan(struct tok_pretok_scan *scan, size_t *start, uint32_t room);

/* The same step by step. This is the definition, and the only version where no kernel is. */
uint32_t tok_pretok_step_scan(struct tok_pretok_scan *scan, size_t *start, uint32_t room);

/*
 * Text up to this length, as packets bring it, is copied after the open pretoken. So the two are
 * encoded as if there had been no cut. Alone, the pretoken would wait for each miss of the CPU's
 * caches.
 */
#define TOK_TOGETHER_MAX 2048

/* Feed well-formed text. `last`: the text ends here. False: the carry was exceeded. */
bool tok_pretok_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);

/* The same for words between white space, each with a mark at its end. */
bool tok_pretok_words_feed(
	struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);

/* The same for BERT's words. */
void tok_pretok_bert_feed(
	struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);
