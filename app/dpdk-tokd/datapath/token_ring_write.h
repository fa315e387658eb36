/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing records into the token ring: reserve the worst case, let the tokenizer write ids into it,
 * publish the record. tokd/ring.h defines the ordering; each barrier here names its part.
 *
 *            tail                       head            head + size
 *   ----------+--------------------------+-----------------+------
 *    reused   | records readers may use  | reserved, then  |
 *             |                          | the next record |
 *
 * limit = tail + size: a reservation that ends below it takes two comparisons.
 */
#pragma once

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "token_ring.h"

#define TOKD_RING_FULL UINT64_MAX

/*
 * The slow path of a reservation (token_ring_readers.c): moves the tail so that bytes below `end`
 * may be written. False if a reader still needs them.
 */
bool tokd_ring_reclaim(struct tokd_ring *r, uint64_t end);

static inline struct tokd_rec *
tokd_ring_at(const struct tokd_ring *r, uint64_t pos)
{
	return (struct tokd_rec *)(r->data + (pos & r->mask));
}

static inline uint32_t *
tokd_rec_ids(struct tokd_rec *rec)
{
	return (uint32_t *)(rec + 1);
}

/* Bytes of a record with `count` ids. */
static inline uint64_t
tokd_rec_bytes(uint64_t count)
{
	return RTE_ALIGN_CEIL(sizeof(struct tokd_rec) + 4 * count, (uint64_t)TOKD_RING_ALIGN);
}

/* `count` of a record in words: of 4 bytes, as many as ids. */
static inline uint64_t
tokd_rec_words(enum tokd_rec_kind kind, uint64_t count)
{
	return unlikely(kind != TOKD_REC_TOKENS) ? (count + 3) / 4 : count;
}

/* Bytes of `n` keys: of the part of a record after tokd_rec_bytes(). */
static inline uint64_t
tokd_rec_keys_bytes(const struct tokd_ring *r, uint64_t n)
{
	return RTE_ALIGN_CEIL(n * r->key_bytes, (uint64_t)TOKD_RING_ALIGN);
}

/* The most bytes of a record of `count`: with the keys of all blocks that its ids may fill. */
static inline uint64_t
tokd_rec_most(const struct tokd_ring *r, enum tokd_rec_kind kind, uint64_t count)
{
	if (likely(r->block_size == 0) || kind == TOKD_REC_TEXT)
		return tokd_rec_bytes(tokd_rec_words(kind, count));
	return tokd_rec_bytes(count) + tokd_rec_keys_bytes(r, count / r->block_size + 1);
}

/* The largest reservation in bytes: with the padding before it, it still fits the ring. */
static inline uint64_t
tokd_ring_max(const struct tokd_ring *r)
{
	return (r->mask + 1) / 2;
}

/*
 * Position for a record of up to `bytes` bytes (a multiple of TOKD_RING_ALIGN, at most
 * tokd_ring_max()), or TOKD_RING_FULL. Readers see nothing until it is published; an unused
 * reservation needs no undoing.
 */
static inline uint64_t
tokd_ring_reserve(struct tokd_ring *r, uint64_t bytes)
{
	uint64_t to_end = r->mask + 1 - (r->head & r->mask);
	uint64_t pos = r->head;

	if (bytes > to_end)
		pos += to_end; /* a record never wraps: publishing fills this with a PAD record */
	if (unlikely(pos + bytes > r->limit) && !tokd_ring_reclaim(r, pos + bytes))
		return TOKD_RING_FULL;
	return pos;
}

/*
 * Publish the record at `pos`, `bytes` long; its `bytes`, `kind` and `t_publish` are set here, all
 * else by the caller.
 */
static inline void
tokd_ring_publish_bytes(struct tokd_ring *r, uint64_t pos, enum tokd_rec_kind kind, uint64_t bytes)
{
	struct tokd_rec *rec = tokd_ring_at(r, pos);

	if (unlikely(pos != r->head)) {
		struct tokd_rec *pad = tokd_ring_at(r, r->head);

		memset(pad, 0, sizeof(*pad));
		pad->bytes = (uint32_t)(pos - r->head);
		pad->kind = TOKD_REC_PAD;
	}
	rec->bytes = (uint32_t)bytes;
	rec->kind = kind;
	rec->t_publish = rte_rdtsc();
	r->head = pos + rec->bytes;
	/* Release: a reader that sees the new head sees the record and the padding before it. */
	__atomic_store_n(&r->hdr->head, r->head, __ATOMIC_RELEASE);
}

/* A record without keys. It takes the space of its `count`, not what was reserved. */
static inline void
tokd_ring_publish(struct tokd_ring *r, uint64_t pos, enum tokd_rec_kind kind)
{
	const uint64_t words = tokd_rec_words(kind, tokd_ring_at(r, pos)->count);

	tokd_ring_publish_bytes(r, pos, kind, tokd_rec_bytes(words));
}
