/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offsets: the bytes of the text that each id came from. They are found by a second pass over an
 * encoded text, given its ids. Encoding without offsets costs nothing extra.
 */
#ifndef TOK_OFFSETS_H
#define TOK_OFFSETS_H

#include "vocab.h"

struct tok_offsets {
	const struct tok_vocab *vocab;
	const uint8_t *text;
	const uint32_t *ids;
	size_t n_ids;
	size_t next; /* index of the next id */
	struct tok_range *range;
};

/* Offsets in bytes [begin, end), a text between added tokens, for WordPiece. False: the ids are not
 * those of this text. */
bool tok_offsets_words(struct tok_offsets *o, size_t begin, size_t end);

/* The same for Unigram. */
bool tok_offsets_unigram(struct tok_offsets *o, uint32_t flags, size_t begin, size_t end);

/* Range of the next id, which must be `id` unless that is TOK_NO_TOKEN. NULL: the ids are not those
 * of this text. */
struct tok_range *tok_offsets_next(struct tok_offsets *o, uint32_t id);

#endif
