/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Saves unacknowledged ids before the tail of the ring passes them. A stream is in the bucket of
 * the first such record that it had when it was last checked. Acknowledgements do not move it: they
 * come with every packet. The tail passes a bucket once per lap of the ring, in as many steps as
 * TAIL_STEP_MAX makes; each step walks the bucket's list.
 */
#include "datapath/side_store.h"
#include "stream.h"
#include "datapath/token_ring_write.h"

static struct tokd_spill_list *
bucket_of(struct tokd_side *d, uint64_t pos)
{
	return &d->bucket[(pos >> d->bucket_shift) % TOKD_SIDE_BUCKETS];
}

void
tokd_spill_watch(struct tokd_worker *w, struct tokd_stream *s, uint64_t pos)
{
	s->watched = true;
	s->watch_pos = pos;
	TAILQ_INSERT_TAIL(bucket_of(&w->side, pos), s, watch);
}

static void
unwatch(struct tokd_worker *w, struct tokd_stream *s)
{
	TAILQ_REMOVE(bucket_of(&w->side, s->watch_pos), s, watch);
	s->watched = false;
}

void
tokd_spill_forget(struct tokd_worker *w, struct tokd_stream *s)
{
	if (s->watched)
		unwatch(w, s);
	for (; s->rec_tail != s->rec_head; s->rec_tail++)
		tokd_stream_rec_drop(w, s, &s->rec[s->rec_tail % TOKD_STREAM_RECS]);
}

/* Save unacknowledged ids of s below `to`; watch it again for those above. */
static void
spill(struct tokd_worker *w, struct tokd_stream *s, uint64_t to)
{
	for (uint32_t i = s->rec_tail; i != s->rec_head; i++) {
		struct tokd_stream_rec *rec = &s->rec[i % TOKD_STREAM_RECS];
		const uint32_t bytes = tokd_stream_bytes(s, rec->count);
		uint32_t block;

		if (rec->pos & TOKD_REC_IN_SIDE || rec->pos < w->ring.tail)
			continue; /* already saved, or lost */
		if (rec->pos >= to) {
			tokd_spill_watch(w, s, rec->pos);
			return;
		}
		block = tokd_side_put(
			&w->side, tokd_rec_ids(tokd_ring_at(&w->ring, rec->pos)), bytes);
		if (block == TOKD_SIDE_NONE) {
			w->counter[C_SIDE_FULL]++;
			continue;
		}
		rec->pos = TOKD_REC_IN_SIDE | block;
		w->counter[C_SIDE_COPIED] += bytes;
	}
}

/* Of one stream, as tokd_spill_owed(). */
static uint64_t
owed(const struct tokd_stream *s, uint64_t tail, uint64_t to)
{
	for (uint32_t i = s->rec_tail; i != s->rec_head; i++) {
		const uint64_t pos = s->rec[i % TOKD_STREAM_RECS].pos;

		if (!(pos & TOKD_REC_IN_SIDE) && pos >= tail)
			return RTE_MIN(pos, to);
	}
	return to;
}

uint64_t
tokd_spill_owed(const struct tokd_worker *w, uint64_t to)
{
	const struct tokd_side *d = &w->side;
	const uint64_t tail = w->ring.tail;
	const struct tokd_stream *s;

	for (uint64_t at = tail >> d->bucket_shift; tail < to && at <= (to - 1) >> d->bucket_shift;
		at++) {
		TAILQ_FOREACH (s, &d->bucket[at % TOKD_SIDE_BUCKETS], watch)
			to = owed(s, tail, to);
	}
	return to;
}

void
tokd_spill_before_reuse(void *worker, uint64_t from, uint64_t to)
{
	struct tokd_worker *w = worker;
	uint64_t at = from >> w->side.bucket_shift, end = (to - 1) >> w->side.bucket_shift;

	for (; at <= end; at++) {
		struct tokd_spill_list *list = &w->side.bucket[at % TOKD_SIDE_BUCKETS];
		struct tokd_stream *s = TAILQ_FIRST(list), *next;

		for (; s != NULL; s = next) {
			next = TAILQ_NEXT(s, watch);
			if (s->watch_pos >= to)
				continue;
			unwatch(w, s);
			spill(w, s, to);
		}
	}
}
