/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side store: a copy of ids that a client has not acknowledged when the ring needs their space,
 * so that slow clients delay nobody. Its size is fixed (--side-store). When it is full, ids are
 * lost to that client, which gets EXPIRED when it asks for them.
 *
 * side_store.c stores ids in blocks of a fixed size; side_spill.c finds the streams to save when
 * the tail of the ring moves.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "options/options.h"

#define TOKD_SIDE_NONE UINT32_MAX
#define TOKD_SIDE_BUCKETS 64 /* parts of the ring, one per step of the tail */

struct tokd_stream;
struct tokd_worker;
TAILQ_HEAD(tokd_spill_list, tokd_stream);

struct tokd_side {
	uint8_t (*data)[TOKD_SIDE_BLOCK];
	uint32_t *next; /* block after this one, of the same record or in the free list */
	uint32_t free, n_free, n;
	bool wipe; /* blocks that become free */
	/* Streams by the ring position of the first ids that they may still need. */
	struct tokd_spill_list bucket[TOKD_SIDE_BUCKETS];
	uint32_t bucket_shift; /* position to bucket */
};

/* Copies a record's ids or text; returns the first block, or TOKD_SIDE_NONE if it is full. */
uint32_t tokd_side_put(struct tokd_side *d, const void *data, uint32_t bytes);
/* Copy bytes [skip, skip + bytes) of the record whose first block is given. */
void tokd_side_get(
	const struct tokd_side *d, uint32_t block, uint32_t skip, uint32_t bytes, void *dst);
void tokd_side_release(struct tokd_side *d, uint32_t block, uint32_t bytes);

/* side_spill.c: s has ids at `pos` in the ring that its client has not acknowledged. */
void tokd_spill_watch(struct tokd_worker *w, struct tokd_stream *s, uint64_t pos);
/* s no longer needs ids, neither in the ring nor here. */
void tokd_spill_forget(struct tokd_worker *w, struct tokd_stream *s);
/* The lowest position of the ring from its tail on that a client may still need; `to` if that is
 * not below. */
uint64_t tokd_spill_owed(const struct tokd_worker *w, uint64_t to);
/* [from, to) of the ring is about to be overwritten. For struct tokd_ring. */
void tokd_spill_before_reuse(void *worker, uint64_t from, uint64_t to);
