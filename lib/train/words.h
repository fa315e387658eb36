/* SPDX-License-Identifier: BSD-3-Clause */
/* Words (pretokens) and their counts, in order of first occurrence. */
#pragma once

#include "train.h"

struct train_word {
	uint64_t head, tail; /* its first and last bytes, up to 8 each: all of a short one */
	uint64_t off;	     /* of its bytes */
	uint64_t count;
	uint32_t len;
	uint32_t hash;
};

struct train_words {
	struct train_word *word;
	uint32_t n, room;
	uint8_t *bytes;
	uint64_t n_bytes, room_bytes;
	/* by hash << 32 | word + 1; 0: free; open addressing, at most half full */
	uint64_t *slot;
	uint32_t mask;
	uint64_t seed[2]; /* keys the hash against crafted input; results do not depend on it */
};

bool train_words_init(struct train_words *w, struct tok_error *err);
void train_words_free(struct train_words *w);

#define TRAIN_WORDS_MAX 65u /* most words per call */

/*
 * Count one occurrence each of n words, at most TRAIN_WORDS_MAX. Word i is
 * text[start[i] .. start[i + 1]), at least one byte. Their slots are prefetched before the first is
 * read. False: out of memory or of 32-bit numbers.
 */
bool train_words_add(struct train_words *w, const uint8_t *text, const size_t *start, uint32_t n,
	struct tok_error *err);

/*
 * Grow `p` to at least `need` elements: returns `p` itself, or new memory with its content and at
 * least twice the room. NULL: out of memory; p is unchanged.
 */
void *train_grow(void *p, uint64_t *room, uint64_t need, size_t element);

/* A key of two words for a hash. */
bool train_seed(uint64_t seed[2], struct tok_error *err);

static inline uint64_t
train_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}
