/* SPDX-License-Identifier: BSD-3-Clause */
/* Words (pretokens) and how often each came, in the order in which they came first. */
#ifndef TOK_TRAIN_WORDS_H
#define TOK_TRAIN_WORDS_H

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
	uint64_t seed[2]; /* a corpus cannot be made for the hash; no result depends on it */
};

bool train_words_init(struct train_words *w, struct tok_error *err);
void train_words_free(struct train_words *w);

#define TRAIN_WORDS_MAX 65u /* counted in one go */

/*
 * Count n words once each, the i-th being text[start[i] .. start[i + 1]), at least a byte: at most
 * TRAIN_WORDS_MAX, whose places are asked for before the first is looked at. False: out of memory,
 * or of numbers.
 */
bool train_words_add(struct train_words *w, const uint8_t *text, const size_t *start, uint32_t n,
	struct tok_error *err);

/*
 * `p`, or memory of at least `need` elements with its content; the room at least doubles. NULL:
 * none left, and p as it was.
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

#endif
