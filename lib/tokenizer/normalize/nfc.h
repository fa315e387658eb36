/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streaming conversion of well-formed UTF-8 to Normalization Form C, or D (UAX #15).
 *
 * Text that is already in form C is not copied. Text that later text may change is held: a starter
 * that may still compose, and the combining marks after it, which may need sorting. It is released
 * when the next starter that does not compose arrives.
 */
#pragma once

#include "tok.h"

/* Form C has at most 3 bytes per byte of text (U+1D160: 12 for 4). */
#define TOK_NFC_EXPANSION 3 /* form D too: a syllable becomes three letters */

static inline void
tok_nfc_init(struct tok_nfc *n, bool decompose)
{
	n->decompose = decompose;
	n->n = n->n_in = 0;
	n->unordered = false;
	n->room = 1 + TOK_NFC_MARKS_MAX;
	n->more = NULL;
	n->grow = NULL;
}

/*
 * Between tok_nfc_init and tok_nfc_close there is no limit of marks: memory is allocated for more
 * than TOK_NFC_MARKS_MAX. Not for the hot path.
 */
void tok_nfc_open_whole(struct tok_nfc *n);
void tok_nfc_close_whole(struct tok_nfc *n);

/* A piece of text: whole characters. */
struct tok_nfc_piece {
	const uint8_t *p, *end; /* the rest of it: tok_nfc_next advances p */
	bool last;		/* the text ends at `end` */
};

struct tok_nfc_span {
	const uint8_t *p;
	size_t n;
};

enum tok_nfc_result {
	TOK_NFC_DONE, /* the piece is consumed; there is no span */
	TOK_NFC_SPAN, /* a span in form C, at least one character */
	TOK_NFC_FULL, /* error: more than TOK_NFC_MARKS_MAX marks in a row, or no memory for them */
};

/*
 * The next span in form C, of whole characters; call until TOK_NFC_DONE. The span lies in the piece
 * or in *n, and is valid until the next call. All spans together do not depend on how the text was
 * cut into pieces.
 */
enum tok_nfc_result tok_nfc_next(
	struct tok_nfc *n, struct tok_nfc_piece *piece, struct tok_nfc_span *span);

/* Number of bytes of text consumed but not released yet. */
static inline size_t
tok_nfc_waiting(const struct tok_nfc *n)
{
	return n->n_in;
}
