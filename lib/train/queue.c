/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "queue.h"

#define SLOTS_FIRST (1u << 16)

bool
train_queue_init(struct train_queue *q, struct tok_error *err)
{
	*q = (struct train_queue){.mask = SLOTS_FIRST - 1, .level = TRAIN_LISTS};
	memset(q->list, 0xff, sizeof(q->list));
	q->slot = calloc(SLOTS_FIRST, sizeof(*q->slot));
	return (q->slot != NULL || tok_fail(err, "out of memory for pairs")) &&
	       train_seed(q->seed, err);
}

void
train_queue_free(struct train_queue *q)
{
	free(q->pair);
	free(q->slot);
	free(q->place);
	free(q->heap);
	*q = (struct train_queue){0};
}

/* ---- pairs ---- */

static inline uint64_t
hash_of(const struct train_queue *q, uint64_t key)
{
	return train_mix(key ^ q->seed[0], q->seed[1] | 1);
}

static inline uint64_t
place_of(const struct train_queue *q, uint64_t key)
{
	uint64_t i = hash_of(q, key) & q->mask;

	while (q->slot[i] != 0 && q->pair[q->slot[i] - 1].key != key)
		i = (i + 1) & q->mask;
	return i;
}

uint32_t
train_pair_find(const struct train_queue *q, uint64_t key)
{
	const uint32_t slot = q->slot[place_of(q, key)];

	return slot == 0 ? TRAIN_NONE : slot - 1;
}

static bool
more_slots(struct train_queue *q)
{
	const uint64_t mask = 2 * q->mask + 1;
	uint32_t *slot = calloc(mask + 1, sizeof(*slot));

	if (slot == NULL)
		return false;
	free(q->slot);
	q->slot = slot;
	q->mask = mask;
	for (uint32_t i = 0; i < q->n_pairs; i++) {
		uint64_t at = hash_of(q, q->pair[i].key) & mask;

		while (slot[at] != 0)
			at = (at + 1) & mask;
		slot[at] = i + 1;
	}
	return true;
}

uint32_t
train_pair_add(struct train_queue *q, uint64_t key)
{
	const uint64_t at = place_of(q, key);
	struct train_pair *pair;

	if (q->slot[at] != 0)
		return q->slot[at] - 1;
	pair = train_grow(q->pair, &q->room_pairs, q->n_pairs + 1ull, sizeof(*pair));
	if (pair == NULL || q->n_pairs == TRAIN_NONE - 1)
		return TRAIN_NONE;
	q->pair = pair;
	pair[q->n_pairs] = (struct train_pair){.key = key};
	q->slot[at] = ++q->n_pairs;
	return q->n_pairs <= q->mask / 2 || more_slots(q) ? q->n_pairs - 1 : TRAIN_NONE;
}

bool
train_places(struct train_queue *q, uint64_t n)
{
	uint32_t *place = train_grow(q->place, &q->room_places, q->n_places + n, sizeof(*place));

	if (place == NULL)
		return false;
	q->place = place;
	return true;
}

/* ---- the heap: the largest count first, of equal ones the lowest key ---- */

static inline bool
before(const struct train_top *a, const struct train_top *b)
{
	if (a->count != b->count)
		return a->count > b->count;
	return a->key < b->key;
}

static void
sink(struct train_top *heap, uint64_t n, uint64_t i)
{
	const struct train_top top = heap[i];

	for (uint64_t child; (child = 2 * i + 1) < n; i = child) {
		child += child + 1 < n && before(&heap[child + 1], &heap[child]);
		if (!before(&heap[child], &top))
			break;
		heap[i] = heap[child];
	}
	heap[i] = top;
}

static void
rise(struct train_top *heap, uint64_t i)
{
	const struct train_top top = heap[i];

	for (uint64_t parent; i > 0 && before(&top, &heap[parent = (i - 1) / 2]); i = parent)
		heap[i] = heap[parent];
	heap[i] = top;
}

static struct train_top
top_of(const struct train_queue *q, uint32_t pair)
{
	return (struct train_top){q->pair[pair].queued, q->pair[pair].key, pair};
}

/* ---- lists ---- */

static uint32_t
list_of(uint64_t count)
{
	uint32_t log;

	if (count < 64)
		return (uint32_t)count;
	log = 63 - (uint32_t)__builtin_clzll(count);
	return 64 + 16 * (log - 6) + (uint32_t)(count >> (log - 4) & 15);
}

static bool
heap_room(struct train_queue *q)
{
	struct train_top *heap = train_grow(q->heap, &q->room_heap, q->n_heap + 1, sizeof(*heap));

	q->heap = heap == NULL ? q->heap : heap;
	return heap != NULL;
}

/* Insert a pair into its list, which is below the heap. */
static void
wait_below(struct train_queue *q, uint32_t pair)
{
	const uint32_t list = list_of(q->pair[pair].queued);

	q->pair[pair].below = q->list[list];
	q->list[list] = pair;
}

/* Insert a pair into the heap or into a list, by its count. */
static bool
enter(struct train_queue *q, uint32_t pair)
{
	if (list_of(q->pair[pair].queued) < q->level) {
		wait_below(q, pair);
		return true;
	}
	if (!heap_room(q))
		return false;
	q->heap[q->n_heap] = top_of(q, pair);
	rise(q->heap, q->n_heap++);
	return true;
}

/* The heap is empty: make a heap of the highest list that is not empty. */
static bool
refill(struct train_queue *q)
{
	while (q->n_heap == 0 && q->level > 0) {
		uint32_t pair = q->list[--q->level];

		q->list[q->level] = TRAIN_NONE;
		for (; pair != TRAIN_NONE; pair = q->pair[pair].below) {
			if (!heap_room(q))
				return false;
			q->heap[q->n_heap++] = top_of(q, pair);
		}
	}
	for (uint64_t i = q->n_heap / 2; i-- > 0;)
		sink(q->heap, q->n_heap, i);
	return true;
}

bool
train_queue_put(struct train_queue *q, uint32_t pair, uint64_t off, uint32_t n)
{
	struct train_pair *p = &q->pair[pair];

	p->queued = (uint64_t)p->count;
	p->off = off;
	p->n = n;
	return enter(q, pair);
}

uint32_t
train_queue_take(struct train_queue *q, uint64_t least, bool *out_of_memory)
{
	for (;;) {
		struct train_pair *p;
		uint64_t count;
		uint32_t pair;

		if (q->n_heap == 0 && !refill(q)) {
			*out_of_memory = true;
			return TRAIN_NONE;
		}
		if (q->n_heap == 0)
			return TRAIN_NONE;
		pair = q->heap[0].pair;
		p = &q->pair[pair];
		count = (uint64_t)p->count;
		if (p->queued == count && count < least)
			return TRAIN_NONE;
		if (p->queued != count && list_of(count) >= q->level) {
			p->queued = count;
			q->heap[0].count = count;
			sink(q->heap, q->n_heap, 0);
			continue;
		}
		q->heap[0] = q->heap[--q->n_heap];
		if (q->n_heap > 0)
			sink(q->heap, q->n_heap, 0);
		if (p->queued == count)
			return pair;
		p->queued = count;
		wait_below(q, pair);
	}
}
