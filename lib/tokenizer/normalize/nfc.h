/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Well-formed UTF-8 to Normalization Form C (UAX #15), as the text comes in.
 *
 * Text that is in form C already is given out where it lies. What later text could still change is
 * held: a starter that something may compose with, and the combining marks behind it, which may
 * have to be put in order. The next starter that does not compose lets go of them.
 */
#ifndef TOK_NFC_H
#define TOK_NFC_H

#include "tok.h"

/* Form C of a text has at most 3 bytes a byte (U+1D160: 12 for 4). */
#define TOK_NFC_EXPANSION 3

static inline void
tok_nfc_init(struct tok_nfc *n)
{
	n->n = n->n_in = 0;
	n->unordered = false;
}

/* A piece of text: whole characters. */
struct tok_nfc_piece {
	const uint8_t *p, *end; /* what is left of it: tok_nfc_next moves p */
	bool last;		/* the text ends at `end` */
};

struct tok_nfc_span {
	const uint8_t *p;
	size_t n;
};

enum tok_nfc_result {
	TOK_NFC_DONE, /* the piece is taken; there is no span */
	TOK_NFC_SPAN, /* a span of form C, at least one character */
	TOK_NFC_FULL, /* more than TOK_NFC_MARKS_MAX marks in a row: the text is over */
};

/*
 * The next span of form C, whole characters, until TOK_NFC_DONE. It lies in the piece or in *n, and
 * is valid until the next call. What all spans spell does not depend on how the text was cut.
 */
enum tok_nfc_result tok_nfc_next(
	struct tok_nfc *n, struct tok_nfc_piece *piece, struct tok_nfc_span *span);

/* Bytes of text taken that are not given out yet. */
static inline size_t
tok_nfc_waiting(const struct tok_nfc *n)
{
	return n->n_in;
}

/* Most bytes of form C that `more` bytes of text, and the end, could give out. */
static inline size_t
tok_nfc_bound(const struct tok_nfc *n, size_t more)
{
	return (n->n_in + more) * TOK_NFC_EXPANSION;
}

#endif
