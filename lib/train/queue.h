/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of tokens, their counts in the corpus, and the queue of pairs to merge: ordered by count,
 * equal counts by ascending ids.
 *
 * A pair enters the queue once, with all its places, because a token is made by only one pair.
 * Where a token's text stands between two remaining borders, all merges so far were the same as for
 * its text alone. (In a run of one token, which is merged from the left, an odd token would have
 * removed a border.) So all places of a token come from the step that makes it, none from earlier
 * or later steps. All places of a pair come from the step that makes the later of its two tokens.
 *
 * The queue orders pairs by their counts at the time of insertion. Counts fall later: if the count
 * of the top pair has changed, it is inserted again. Most pairs are rare and never reach the top,
 * so only the pairs with the highest counts are in a heap. The others are in lists by count.
 */
#pragma once

#include "words.h"

#define TRAIN_NONE UINT32_MAX

struct train_pair {
	uint64_t key;	 /* left << 32 | right */
	int64_t count;	 /* current count */
	uint64_t queued; /* count at the time of insertion: the queue's order */
	uint64_t off;	 /* offset of its places */
	uint32_t n;	 /* number of places, ascending; some may no longer be this pair */
	uint32_t below;	 /* next pair of the same list */
};

/* An entry of the heap. */
struct train_top {
	uint64_t count, key;
	uint32_t pair;
};

#define TRAIN_LISTS 1024u /* one per count up to 63, then 16 per octave */

struct train_queue {
	struct train_pair *pair;
	uint32_t n_pairs;
	uint64_t room_pairs;
	uint32_t *slot; /* pair + 1; 0: free; at most half full */
	uint64_t mask;
	uint64_t seed[2];
	uint32_t *place; /* of all pairs */
	uint64_t n_places, room_places;
	struct train_top *heap;
	uint64_t n_heap, room_heap;
	uint32_t level; /* lists from here on are in the heap */
	uint32_t list[TRAIN_LISTS];
};

/* Functions that return bool or TRAIN_NONE fail only if memory or 32-bit numbers run out. */
bool train_queue_init(struct train_queue *q, struct tok_error *err);
void train_queue_free(struct train_queue *q);

static inline uint64_t
train_key(uint32_t left, uint32_t right)
{
	return (uint64_t)left << 32 | right;
}

/* TRAIN_NONE: there is no such pair. */
uint32_t train_pair_find(const struct train_queue *q, uint64_t key);
/* The same, but a missing pair is created with a count of 0. */
uint32_t train_pair_add(struct train_queue *q, uint64_t key);

/* Make room for n more places, which the caller fills in. */
bool train_places(struct train_queue *q, uint64_t n);

/* Insert a pair by its current count, with n places from `off` on. */
bool train_queue_put(struct train_queue *q, uint32_t pair, uint64_t off, uint32_t n);

/*
 * Remove and return the next pair to merge. TRAIN_NONE: no pair has a count of at least `least`, or
 * *out_of_memory is set.
 */
uint32_t train_queue_take(struct train_queue *q, uint64_t least, bool *out_of_memory);
