/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of tokens, how often each stands in the corpus, and the queue of those to be merged: by
 * count, equal ones by their ids, rising.
 *
 * The queue holds entries, not pairs: one for the places where a pair came about in one step. Where
 * a token is made in two ways, its pairs have several, and the reference merges each when its turn
 * comes, so that a pair may be merged twice. To give the same merges we do the same.
 *
 * An entry keeps the count of its pair as it was when it was put in. Counts fall meanwhile; the one
 * on top is put back by its pair's count of now. Most entries are of rare pairs, whose turn never
 * comes: only those of the highest counts are in a heap, others wait in lists by size.
 */
#ifndef TOK_TRAIN_QUEUE_H
#define TOK_TRAIN_QUEUE_H

#include "words.h"

#define TRAIN_NONE UINT32_MAX

struct train_pair {
	uint64_t key; /* left << 32 | right */
	int64_t count;
	uint32_t entry; /* first of those in the queue */
	uint32_t merge; /* the last merge of it, or TRAIN_NONE */
};

struct train_entry {
	uint64_t off; /* of its places */
	uint32_t n;   /* places, rising */
	uint32_t pair;
	uint64_t count; /* by which it stands in the queue */
	uint32_t next;	/* entry of the same pair */
	uint32_t below; /* entry of the same list, or of the free ones */
};

/* On the heap. */
struct train_top {
	uint64_t count, key;
	uint32_t entry;
};

#define TRAIN_LISTS 1024u /* counts to 63 by themselves, 16 an octave above */

struct train_queue {
	struct train_pair *pair;
	uint32_t n_pairs;
	uint64_t room_pairs;
	uint32_t *slot; /* pair + 1; 0: free; at most half full */
	uint64_t mask;
	uint64_t seed[2];
	struct train_entry *entry;
	uint32_t n_entries, free_entry;
	uint64_t room_entries;
	uint32_t *place; /* of all entries */
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

/* Put an entry of a pair in, by its count of now. */
bool train_queue_put(struct train_queue *q, uint32_t pair, uint64_t off, uint32_t n);

/*
 * The entry whose turn it is, out of the queue; TRAIN_NONE: none whose count is at least `least`,
 * or *out_of_memory is set.
 */
uint32_t train_queue_take(struct train_queue *q, uint64_t least, bool *out_of_memory);

/* It has been merged: its number is used again. */
void train_entry_free(struct train_queue *q, uint32_t entry);

#endif
