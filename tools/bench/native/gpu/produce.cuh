/* SPDX-License-Identifier: BSD-3-Clause */
/* A producer of the GPU ring, for a block of a GPU and for a thread of a CPU: produce.h. */
#pragma once

#include <stddef.h>

#include "block/block.cuh"
#include "ring/gpu_check.h"
#include "produce.h"

#define PRODUCE_IN_FLIGHT_MAX 64
#define PRODUCE_LOOK_EVERY                                                                         \
	1024 /* posts, between looks at the clock; also in waits that are long                     \
	      */

/* All that the producers know, as the device has it. */
struct produce_plan {
	struct produce_config c; /* its texts: as the device has them */
	struct tokg_geometry g;
	uint8_t *region;
	const uint8_t *outputs, *word;
	uint64_t *samples;
	struct produce_said *said;
	const uint32_t *stop;
};

struct produce_shared {
	tokg_reduce reduce;
	uint64_t posted[PRODUCE_IN_FLIGHT_MAX], published[PRODUCE_IN_FLIGHT_MAX];
	bool leave;
};

TOKG_DEV bool
produce_is_text(const produce_plan *p)
{
	return p->c.texts.stride > 0;
}

/* The text of the n-th post. */
TOKG_DEV uint64_t
produce_text(const produce_plan *p, uint32_t producer, uint64_t n)
{
	return (uint64_t)producer * p->g.slots + n % p->g.slots;
}

/* Bytes of one record, or of the ids alone. */
TOKG_DEV uint32_t
produce_record_bytes(const produce_plan *p)
{
	return p->c.batch == 0 ? 4 * p->c.tokens
			       : (uint32_t)tokg_align(sizeof(struct tokd_rec) + 4ull * p->c.tokens,
					 TOKD_RING_ALIGN);
}

TOKG_DEV uint32_t
produce_records(const produce_plan *p)
{
	return p->c.batch == 0 ? 1 : p->c.batch;
}

/* The k-th id of the n-th post. */
TOKG_DEV uint32_t
produce_id(const produce_plan *p, uint32_t producer, uint64_t n, uint32_t k)
{
	uint64_t x = p->c.seed ^ ((uint64_t)producer << 56 | n << 20 | k);

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return (uint32_t)((x >> 32) * p->g.n_ids >> 32);
}

/* Word i of the payload of the n-th post of ids, padding included. */
TOKG_DEV uint32_t
produce_ids_word(const produce_plan *p, uint32_t producer, uint64_t n, uint32_t i)
{
	const uint32_t hdr = p->c.batch == 0 ? 0 : (uint32_t)sizeof(struct tokd_rec) / 4;
	const uint32_t words = produce_record_bytes(p) / 4, record = i / words, w = i % words;

	if (record >= produce_records(p))
		return 0;
	if (w >= hdr)
		return w - hdr < p->c.tokens
			       ? produce_id(p, producer, n, record * p->c.tokens + w - hdr)
			       : 0;
	switch (w) {
	case offsetof(struct tokd_rec, bytes) / 4:
		return 4 * words;
	case offsetof(struct tokd_rec, kind) / 4:
		return TOKD_REC_TOKENS | (uint32_t)(TOKD_REC_FIRST | TOKD_REC_LAST) << 16;
	case offsetof(struct tokd_rec, serial) / 4:
		return record;
	case offsetof(struct tokd_rec, count) / 4:
		return p->c.tokens;
	default:
		return 0;
	}
}

TOKG_DEV uint32_t
produce_word(const produce_plan *p, uint32_t producer, uint64_t n, uint32_t i)
{
	if (!produce_is_text(p))
		return produce_ids_word(p, producer, n, i);
	return ((const uint32_t *)(p->c.texts.bytes +
				   produce_text(p, producer, n) * p->c.texts.stride))[i];
}

TOKG_DEV uint32_t
produce_bytes(const produce_plan *p, uint32_t producer, uint64_t n)
{
	return produce_is_text(p) ? p->c.texts.n[produce_text(p, producer, n)]
				  : produce_records(p) * produce_record_bytes(p);
}

TOKG_DEV uint32_t
produce_flags(const produce_plan *p)
{
	const uint32_t whole = TOKG_FIRST | TOKG_LAST;

	return produce_is_text(p) ? whole | TOKG_TEXT
	       : p->c.batch == 0  ? whole
				  : (uint32_t)TOKG_BATCH;
}

/* Where the outputs of a slot begin. */
TOKG_DEV uint64_t
produce_out(const produce_plan *p, uint32_t slot)
{
	if (produce_is_text(p))
		return slot * p->c.texts.out_stride;
	return slot * produce_records(p) * tokg_out_bytes(p->c.tokens, p->g.row_bytes);
}

TOKG_DEV void
produce_post(const produce_plan *p, tokg_block *b, produce_shared *s, uint32_t producer, uint64_t n)
{
	const uint32_t slot = (uint32_t)(n % p->g.slots);
	const uint32_t bytes = produce_bytes(p, producer, n);
	const uint32_t pairs = (uint32_t)(tokg_align(bytes, TOKG_LINE) / 8);
	uint64_t *const payload = (uint64_t *)(p->region + tokg_payload_at(&p->g, producer, slot));
	uint64_t *const to = (uint64_t *)(p->region + tokg_hdr_at(&p->g, producer, slot));
	struct tokg_hdr h = {};
	uint64_t words[sizeof(h) / 8], sum = 0;

	if (b->tid == 0)
		s->posted[n % p->c.in_flight] = tokg_ticks();
	for (uint32_t i = b->tid; i < pairs; i += b->n) {
		const uint32_t even = produce_word(p, producer, n, 2 * i);
		const uint32_t odd = produce_word(p, producer, n, 2 * i + 1);

		tokg_put(payload + i, even | (uint64_t)odd << 32);
		sum += tokg_check_pair(TOKG_CHECK_HDR_PAIRS + i, even, odd);
	}
	h.request = n;
	h.kind = (uint16_t)p->g.kind;
	h.bytes = bytes;
	h.tokens = produce_is_text(p) ? 0 : produce_records(p) * p->c.tokens;
	h.epoch = p->c.epoch;
	h.out_off = produce_out(p, slot);
	h.flags = produce_flags(p);
	h.ticket = 1 + n / p->g.slots;
	memcpy(words, &h, sizeof(h));
	if (b->tid == 0)
		for (uint32_t i = 0; i < TOKG_CHECK_HDR_PAIRS; i++)
			sum += tokg_check_pair(i, (uint32_t)words[i], (uint32_t)(words[i] >> 32));
	/* Behind its barrier all payload is written, before the ticket in the order of causes. */
	h.check = tokg_check_fold(tokg_sum(b, sum));
	if (b->tid != 0)
		return;
	memcpy(words, &h, sizeof(h));
	for (uint32_t i = 0; i < offsetof(struct tokg_hdr, ticket) / 8; i++)
		tokg_put(to + i, words[i]);
	s->published[n % p->c.in_flight] = tokg_ticks();
	tokg_fence();
	tokg_st_fenced(to + offsetof(struct tokg_hdr, ticket) / 8, h.ticket);
}

/* Told to leave, or out of time? Read over the bus: so seldom that no percentile told is of these.
 */
TOKG_DEV bool
produce_late(const produce_plan *p, uint64_t until, struct produce_said *own)
{
	if (tokg_ld32(p->stop) == 0 && tokg_now() <= until)
		return false;
	own->state = PRODUCE_LATE;
	return true;
}

/* By one thread: until the n-th post is done. False: told to leave, or out of time. */
TOKG_DEV bool
produce_wait(const produce_plan *p, tokg_block *b, produce_shared *s, uint32_t producer, uint64_t n,
	uint64_t until, struct produce_said *own)
{
	const uint64_t *const done =
		(const uint64_t *)(p->region +
				   tokg_done_at(&p->g, producer, (uint32_t)(n % p->g.slots)));
	const uint64_t ticket = 1 + n / p->g.slots;
	uint64_t now;

	if (n % PRODUCE_LOOK_EVERY == PRODUCE_LOOK_EVERY - 1 && produce_late(p, until, own))
		return false;
	for (uint32_t spin = 1; tokg_ld(done) >> 8 != ticket; spin++) {
		if (spin % 256 == 0 && produce_late(p, until, own))
			return false;
#ifndef __CUDA_ARCH__ /* a GPU's producer has a multiprocessor to itself: it looks all the time */
		tokg_idle(b, false);
#endif
	}
	now = tokg_ticks();
	own->not_ok += (tokg_ld_acquire(done) & 255) != TOKG_OK;
	own->done++;
	if (n < p->c.kept) {
		uint64_t *const to = p->samples + 2ull * p->c.kept * producer + n;

		to[0] = now - s->posted[n % p->c.in_flight];
		to[p->c.kept] = now - s->published[n % p->c.in_flight];
	}
	tokg_idle(b, true);
	return true;
}

/* 16-byte words of the n-th post's rows that are not the table's, for all threads. */
TOKG_DEV uint64_t
produce_wrong(const produce_plan *p, tokg_block *b, uint32_t producer, uint64_t n)
{
	const uint64_t record_bytes = tokg_out_bytes(p->c.tokens, p->g.row_bytes);
	const uint8_t *const out =
		p->outputs + producer * p->g.out_bytes + produce_out(p, (uint32_t)(n % p->g.slots));
	const uint32_t ids = produce_records(p) * p->c.tokens, vectors = p->g.row_bytes / 16;
	uint64_t wrong = 0;

	for (uint32_t k = b->team; k < ids; k += b->teams) {
		const uint8_t *const row = out + k / p->c.tokens * record_bytes +
					   (uint64_t)(k % p->c.tokens) * p->g.row_bytes;
		const uint8_t *const want =
			p->word + (uint64_t)produce_id(p, producer, n, k) * p->g.row_bytes;

		for (uint32_t i = b->lane; i < vectors; i += b->lanes) {
			const tokg_vec16 x = tokg_vec_load(row, i), y = tokg_vec_load(want, i);

			wrong += x.w[0] != y.w[0] || x.w[1] != y.w[1] || x.w[2] != y.w[2] ||
				 x.w[3] != y.w[3];
		}
	}
	return tokg_sum(b, wrong);
}

/* All of one producer's life. */
TOKG_DEV void
produce_run(const produce_plan *p, tokg_block *b, produce_shared *s, uint32_t producer)
{
	const uint64_t until = tokg_now() + p->c.limit_ns;
	struct produce_said own = {};

	b->shared = &s->reduce;
	own.state = PRODUCE_ENDED;
	own.ns[0] = tokg_now();
	own.tick[0] = tokg_ticks();
	if (b->tid == 0)
		tokg_st(&p->said[producer].state, PRODUCE_RUNS);
	for (uint64_t n = 0; n < p->c.posts + p->c.in_flight; n++) {
		if (n >= p->c.in_flight) {
			const uint64_t old = n - p->c.in_flight;

			if (b->tid == 0)
				s->leave = !produce_wait(p, b, s, producer, old, until, &own);
			tokg_sync(b);
			if (s->leave)
				break;
			if (p->c.check_every > 0 && old % p->c.check_every == 0) {
				const uint64_t wrong = produce_wrong(p, b, producer, old);

				own.compared++;
				own.wrong += wrong;
				own.last_wrong = wrong > 0 ? old : own.last_wrong;
			}
			tokg_sync(b);
		}
		if (n < p->c.posts)
			produce_post(p, b, s, producer, n);
	}
	if (b->tid != 0)
		return;
	own.ns[1] = tokg_now();
	own.tick[1] = tokg_ticks();
	tokg_put(&p->said[producer].done, own.done);
	tokg_put(&p->said[producer].not_ok, own.not_ok);
	tokg_put(&p->said[producer].compared, own.compared);
	tokg_put(&p->said[producer].wrong, own.wrong);
	tokg_put(&p->said[producer].last_wrong, own.last_wrong);
	for (uint32_t i = 0; i < 2; i++) {
		tokg_put(&p->said[producer].tick[i], own.tick[i]);
		tokg_put(&p->said[producer].ns[i], own.ns[i]);
	}
	tokg_fence();
	tokg_st_fenced(&p->said[producer].state, own.state);
}

/* Of texts: do they and their rows fit? */
static inline bool
produce_texts_right(
	const struct tokg_geometry *g, const struct produce_config *c, struct tokg_error *err)
{
	const struct produce_texts *const t = &c->texts;

	for (uint64_t i = 0; i < (uint64_t)g->producers * g->slots; i++) {
		const uint64_t rows = tokg_out_bytes(t->n[i], g->row_bytes);

		if (t->n[i] > g->slot_bytes || tokg_align(t->n[i], TOKG_LINE) > t->stride ||
			(g->slots - 1) * t->out_stride + rows > g->out_bytes)
			return tokg_wrong(err,
				"producers: a text of %u bytes does not fit into a slot of "
				"%u, or its rows into %llu bytes of outputs",
				t->n[i], g->slot_bytes, (unsigned long long)g->out_bytes);
	}
	return c->check_every == 0 ||
	       tokg_wrong(err, "producers: rows of texts are not compared by them");
}

/* Can these producers do that in this ring? */
static inline bool
produce_right(const struct tokg_geometry *g, const struct produce_config *c, struct tokg_error *err)
{
	const uint64_t records = c->batch == 0 ? 1 : c->batch;
	const uint64_t bytes =
		c->batch == 0 ? 4ull * c->tokens
			      : records * tokg_align(sizeof(struct tokd_rec) + 4ull * c->tokens,
						  TOKD_RING_ALIGN);

	if (c->in_flight == 0 || c->in_flight > g->slots || c->in_flight > PRODUCE_IN_FLIGHT_MAX)
		return tokg_wrong(err,
			"producers: %u slots in flight, must be 1 to %u and at most %d",
			c->in_flight, g->slots, PRODUCE_IN_FLIGHT_MAX);
	if (c->texts.stride > 0)
		return produce_texts_right(g, c, err);
	if (c->tokens == 0 || bytes > g->slot_bytes)
		return tokg_wrong(err,
			"producers: %llu records of %u ids are %llu bytes, a slot has %u",
			(unsigned long long)records, c->tokens, (unsigned long long)bytes,
			g->slot_bytes);
	if (g->slots * records * tokg_out_bytes(c->tokens, g->row_bytes) > g->out_bytes)
		return tokg_wrong(err,
			"producers: the rows of %u slots of %llu records are more than "
			"the %llu bytes of a producer's outputs",
			g->slots, (unsigned long long)records, (unsigned long long)g->out_bytes);
	if (c->check_every > 0 && (g->kind != TOKG_KIND_WORD || g->row_bytes % 16 != 0))
		return tokg_wrong(err,
			"producers: rows are compared of the kind word alone, and of "
			"multiples of 16 bytes");
	return true;
}
