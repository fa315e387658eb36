/* SPDX-License-Identifier: BSD-3-Clause */
/* Many texts, encoded by some threads into one array. Nothing of Python: the GIL is not held. */
#ifndef DPDK_TOKD_BATCH_H
#define DPDK_TOKD_BATCH_H

#include <tok.h>

#define BATCH_THREADS_MAX 64

struct batch_text {
	const uint8_t *p;
	size_t n;
};

/* How many ids to keep, the template's with them, and which of the text's go. */
struct batch_cut {
	size_t most;
	bool left;
	uint32_t n_before, n_after; /* of the template, where `flags` ask for it */
};

struct batch_chunk;

struct batch {
	const struct tok_vocab *vocab;
	uint32_t flags;
	struct batch_cut cut;
	const struct batch_text *text;
	size_t n_texts;
	struct tok_cache *cache[BATCH_THREADS_MAX]; /* one a thread */
	/* by batch_plan() */
	uint32_t n_threads;
	size_t room; /* ids that there must be room for */
	struct batch_chunk *chunk;
	size_t n_chunks;
	/* results */
	uint32_t *ids;
	int64_t *splits; /* n_texts + 1: where the ids of each text begin */
	size_t failed;	 /* the first text that was refused, and why */
	struct tok_result why;
};

struct batch_cut batch_cut_of(const struct tok_vocab *v, uint32_t flags, size_t most, bool left);

/* Drop what is too much of n items of `size` bytes, one for each id of a text; what is left. */
size_t batch_cut(void *items, size_t size, size_t n, const struct batch_cut *cut);

/*
 * Divide the texts among at most `threads` threads, of which there are no more than there is work
 * for. False if memory is short. batch_free() frees what it allocated.
 */
bool batch_plan(struct batch *b, uint32_t threads);
void batch_free(struct batch *b);

/*
 * Of a batch with its plan, caches, ids and splits. Returns when all threads have ended; false: a
 * text was refused. What cannot be started of the threads is done by the others.
 */
bool batch_encode(struct batch *b);

#endif
