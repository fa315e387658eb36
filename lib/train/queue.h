/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of tokens, how often each stands in the corpus, and the queue of those to be merged: by
 * count, equal ones by their ids, rising.
 *
 * A pair comes into the queue once, with all its places. For a token is made by one pair alone:
 * where its text stands between two borders that are still there, all merges so far were those
 * that its text by itself would have seen (of a run of one token, which is merged from the left,
 * an odd one would have taken a border away). So there are no places of it from before the step
 * that makes it, nor any from a later one; and a pair comes about when the later of its two tokens
 * is made.
 *
 * A pair stands in the queue by its count as it was when it was put there. Counts fall meanwhile;
 * the one on top is put back by its count of now. Most pairs are rare, and their turn never comes:
 * only those of the highest counts are in a heap, others wait in lists by size.
 */
#ifndef TOK_TRAIN_QUEUE_H
#define TOK_TRAIN_QUEUE_H

#include "words.h"

#define TRAIN_NONE UINT32_MAX

struct train_pair {
	uint64_t key;	 /* left << 32 | right */
	int64_t count;	 /* of now */
	uint64_t queued; /* by which it stands in the queue */
	uint64_t off;	 /* of its places */
	uint32_t n;	 /* places, rising; some are something else by now */
	uint32_t below;	 /* pair of the same list */
};

/* On the heap. */
struct train_top {
	uint64_t count, key;
	uint32_t pair;
};

#define TRAIN_LISTS 1024u /* counts to 63 by themselves, 16 an octave above */

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

/* All that return bool or TRAIN_NONE fail for want of memory alone, or of 32-bit numbers. */
bool train_queue_init(struct train_queue *q, struct tok_error *err);
void train_queue_free(struct train_queue *q);

static inline uint64_t
train_key(uint32_t left, uint32_t right)
{
	return (uint64_t)left << 32 | right;
}

/* TRAIN_NONE: there is no such pair. */
uint32_t train_pair_find(const struct train_queue *q, uint64_t key);
/* Likewise; it is made, with a count of 0. */
uint32_t train_pair_add(struct train_queue *q, uint64_t key);

/* Room for n more places; they are the caller's to fill. */
bool train_places(struct train_queue *q, uint64_t n);

/* Put a pair in, by its count of now, with n places from `off` on. */
bool train_queue_put(struct train_queue *q, uint32_t pair, uint64_t off, uint32_t n);

/*
 * The pair whose turn it is, out of the queue; TRAIN_NONE: none whose count is at least `least`, or
 * *out_of_memory is set.
 */
uint32_t train_queue_take(struct train_queue *q, uint64_t least, bool *out_of_memory);

#endif
