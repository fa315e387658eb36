/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where ids stand in their text: a second walk through a text that was encoded, with its ids at
 * hand. Whoever does not ask for it pays nothing.
 */
#ifndef TOK_OFFSETS_H
#define TOK_OFFSETS_H

#include "vocab.h"

struct tok_offsets {
	const struct tok_vocab *vocab;
	const uint8_t *text;
	const uint32_t *ids;
	size_t n_ids;
	size_t next; /* of the ids */
	struct tok_range *range;
};

/* Text between added tokens, WordPiece: bytes [begin, end). False: the ids are not its. */
bool tok_offsets_words(struct tok_offsets *o, size_t begin, size_t end);

/* The same for Unigram. */
bool tok_offsets_unigram(struct tok_offsets *o, uint32_t flags, size_t begin, size_t end);

/* The next id, which is `id` if that is not TOK_NO_TOKEN. NULL: the ids are not of this text. */
struct tok_range *tok_offsets_next(struct tok_offsets *o, uint32_t id);

#endif
