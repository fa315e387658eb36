/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream states and their lists. Streams move between lists; nothing is allocated. */
#include <rte_jhash.h>

#include "reply.h"
#include "stream.h"
#include "datapath/token_ring_write.h"

/* Streams in one bucket. By chance none has so many: someone knows the secret. */
#define BUCKET_MAX 16

static struct tokd_stream_bucket *
bucket_of_key(const struct tokd_streams *t, const struct tokd_stream_key *key)
{
	return &t->by_key[rte_jhash(key, sizeof(*key), t->key_secret) & t->key_mask];
}

struct tokd_stream *
tokd_stream_find(struct tokd_worker *w, const struct tokd_stream_key *key)
{
	struct tokd_stream *s;

	LIST_FOREACH(s, bucket_of_key(w->streams, key), keyed)
	{
		if (memcmp(&s->key, key, sizeof(*key)) == 0)
			break;
	}
	return s;
}

static bool
is_full(const struct tokd_stream_bucket *bucket)
{
	const struct tokd_stream *s;
	uint32_t n = 0;

	LIST_FOREACH(s, bucket, keyed)
	n++;
	return n == BUCKET_MAX;
}

/* Bytes of a tokenizer stream that the first packet of a text writes: its state, a few of pos[]. */
#define READY_BYTES 256
/* Bytes of the next record. */
#define READY_RECORD 1024

/* Add a finished stream to the end of its list. */
static void
add_finished(struct tokd_streams *t, struct tokd_stream *s)
{
	s->awaited =
		s->state == TOKD_STREAM_DONE && (s->flags & TOKD_F_IDS) && s->ids_ack < s->total;
	t->n_awaited += s->awaited;
	TAILQ_INSERT_TAIL(s->awaited ? &t->awaited : &t->finished, s, link);
}

static void
remove_finished(struct tokd_streams *t, struct tokd_stream *s)
{
	TAILQ_REMOVE(s->awaited ? &t->awaited : &t->finished, s, link);
	t->n_awaited -= s->awaited;
}

/*
 * The finished stream to evict for a new one, or NULL: the oldest whose client has all its ids. If
 * a stream were evicted before, a retransmitted text would be in the token ring twice. But streams
 * that are never acknowledged get at most half the table.
 */
static struct tokd_stream *
find_evictable(const struct tokd_streams *t)
{
	struct tokd_stream *s = TAILQ_FIRST(&t->finished);

	return s == NULL || t->n_awaited > t->n / 2 ? TAILQ_FIRST(&t->awaited) : s;
}

static struct tokd_stream_bucket *
bucket_of_serial(const struct tokd_streams *t, uint64_t serial)
{
	return &t->by_serial[serial * t->serial_secret >> t->serial_shift];
}

struct tokd_stream *
tokd_stream_of_serial(const struct tokd_streams *t, uint64_t serial)
{
	struct tokd_stream *s;

	LIST_FOREACH(s, bucket_of_serial(t, serial), known)
	{
		if (s->serial == serial)
			break;
	}
	return s;
}

/* One writer: a relaxed load and store suffice. */
static void
count(_Atomic uint32_t *n, int by)
{
	const uint32_t was = atomic_load_explicit(n, memory_order_relaxed);

	atomic_store_explicit(n, was + (uint32_t)by, memory_order_relaxed);
}

void
tokd_stream_defer(struct tokd_worker *w, struct tokd_stream *s)
{
	if (s->deferred)
		return;
	s->deferred = true;
	TAILQ_INSERT_TAIL(&w->streams->deferred, s, later);
	w->counter[C_FEED_DEFERRED]++;
}

/* Afterwards it is in no list. */
static void
close_open(struct tokd_streams *t, struct tokd_stream *s)
{
	TAILQ_REMOVE(&t->open, s, link);
	if (s->deferred)
		TAILQ_REMOVE(&t->deferred, s, later);
	s->deferred = false;
	if (s->known.le_prev != NULL)
		LIST_REMOVE(s, known);
	count(&t->n_open, -1);
}

void
tokd_stream_release(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_streams *t = w->streams;

	tokd_spill_forget(w, s);
	LIST_REMOVE(s, keyed);
	count(&t->n_used, -1);
	remove_finished(t, s);
	s->state = TOKD_STREAM_FREE;
	/* At the head: it is likely still in the cache. */
	TAILQ_INSERT_HEAD(&t->free, s, link);
}

struct tokd_stream *
tokd_stream_open(struct tokd_worker *w, const struct tokd_stream_key *key,
	const struct tokd_vocab *vocab, uint16_t flags)
{
	struct tokd_streams *t = w->streams;
	struct tokd_stream_bucket *bucket = bucket_of_key(t, key);
	struct tokd_stream *s = TAILQ_FIRST(&t->free);

	if (unlikely(atomic_load_explicit(&t->n_open, memory_order_relaxed) == t->n ||
		     is_full(bucket)))
		return NULL;
	if (unlikely(s == NULL)) { /* not the first of this turn */
		s = find_evictable(t);
		if (s == NULL)
			return NULL; /* all others wait for the ring, with their ABORT */
		/* It may owe a reply of this burst. */
		if (s->touched)
			tokd_reply_flush(w);
		tokd_stream_release(w, s);
	}
	TAILQ_REMOVE(&t->free, s, link);

	/* Except the large arrays, which are written before they are read. */
	memset(s, 0, offsetof(struct tokd_stream, held));
	s->key = *key;
	s->state = TOKD_STREAM_OPEN;
	s->flags = flags & (TOKD_F_IDS | TOKD_F_STREAM);
	/* Ids of 2 bytes are copies: not where replies need none. */
	if (vocab->short_ids && w->zc.pool == NULL)
		s->flags |= flags & TOKD_F_SHORT;
	s->t_active = w->t_burst;
	s->t_open = w->t_burst;
	s->serial = w->ring.serial++;
	s->last = TOKD_NO_PACKET;
	tok_stream_init(&s->tok, vocab->tok, vocab->cache, tokd_tok_flags(w->opt));

	LIST_INSERT_HEAD(bucket, s, keyed);
	TAILQ_INSERT_TAIL(&t->open, s, link);
	if (w->sink != NULL)
		LIST_INSERT_HEAD(bucket_of_serial(t, s->serial), s, known);
	count(&t->n_open, 1);
	count(&t->n_used, 1);
	w->counter[C_STREAMS_OPENED]++;
	return s;
}

void
tokd_stream_make_ready(struct tokd_worker *w)
{
	struct tokd_streams *t = w->streams;
	struct tokd_stream *s = TAILQ_FIRST(&t->free);

	if (s == NULL) {
		s = find_evictable(t);
		if (s == NULL)
			return;
		tokd_stream_release(w, s);
	}
	for (size_t at = 0; at < offsetof(struct tokd_stream, held); at += RTE_CACHE_LINE_SIZE)
		__builtin_prefetch(RTE_PTR_ADD(s, at), 1);
	__builtin_prefetch(&s->rec[0], 1);
	for (size_t at = 0; at < READY_BYTES; at += RTE_CACHE_LINE_SIZE)
		__builtin_prefetch(RTE_PTR_ADD(&s->tok, at), 1);
	for (size_t at = 0; at < READY_RECORD; at += RTE_CACHE_LINE_SIZE)
		__builtin_prefetch(tokd_ring_at(&w->ring, w->ring.head + at), 1);
}

void
tokd_stream_done(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_streams *t = w->streams;

	s->state = TOKD_STREAM_DONE;
	close_open(t, s);
	add_finished(t, s);
	w->counter[C_STREAMS_DONE]++;
}

bool
tokd_stream_abort(struct tokd_worker *w, struct tokd_stream *s)
{
	uint64_t pos = tokd_ring_reserve(&w->ring, tokd_rec_bytes(0));
	struct tokd_rec *rec;

	if (pos == TOKD_RING_FULL)
		return false;
	rec = tokd_ring_at(&w->ring, pos);
	*rec = (struct tokd_rec){
		.flags = TOKD_REC_ABORT | (s->published ? 0 : TOKD_REC_FIRST),
		.stream_id = s->key.stream_id,
		.serial = s->serial,
		.t_rx = w->t_burst,
		.first = s->total,
		.vocab = s->key.vocab,
		.epoch = s->key.epoch,
		.reason = s->reason,
		.text_end = s->text_end,
	};
	tokd_ring_publish(&w->ring, pos);
	tokd_count_record(w);

	/* It may be evicted now; it stays to answer its client. */
	TAILQ_REMOVE(&w->streams->aborting, s, link);
	add_finished(w->streams, s);
	s->aborting = false;
	s->t_active = w->t_burst;
	return true;
}

void
tokd_stream_fail(struct tokd_worker *w, struct tokd_stream *s, enum tokd_reason reason)
{
	struct tokd_streams *t = w->streams;

	while (s->held_bits != 0) {
		uint32_t i = (uint32_t)__builtin_ctzll(s->held_bits);
		struct rte_mbuf *m = s->held[(s->next + i) % TOKD_WIRE_WINDOW].m;

		s->held_bits &= s->held_bits - 1;
		w->n_held -= m->nb_segs;
		rte_pktmbuf_free(m);
	}
	tokd_spill_forget(w, s);
	s->state = TOKD_STREAM_FAILED;
	s->reason = (uint8_t)reason;
	s->due = true;
	s->aborting = true;
	close_open(t, s);
	TAILQ_INSERT_TAIL(&t->aborting, s, link);
	w->counter[C_STREAMS_FAILED]++;
	tokd_stream_abort(w, s); /* ring full: housekeeping tries again */
}

void
tokd_stream_renew(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_streams *t = w->streams;

	if (s->aborting)
		return; /* in neither list */
	s->t_active = w->t_burst;
	if (s->state == TOKD_STREAM_OPEN) {
		TAILQ_REMOVE(&t->open, s, link);
		TAILQ_INSERT_TAIL(&t->open, s, link);
	} else {
		remove_finished(t, s);
		add_finished(t, s);
	}
}

void
tokd_stream_ids_ack(struct tokd_worker *w, struct tokd_stream *s, uint32_t ids_ack)
{
	if (ids_ack <= s->ids_ack || ids_ack > s->sent)
		return;
	s->ids_ack = ids_ack;
	while (s->rec_tail != s->rec_head) {
		const struct tokd_stream_rec *rec = &s->rec[s->rec_tail % TOKD_STREAM_RECS];

		if (rec->first + rec->count > ids_ack)
			break;
		tokd_stream_rec_drop(w, rec);
		s->rec_tail++;
	}
}

void
tokd_stream_touch(struct tokd_worker *w, struct tokd_stream *s)
{
	if (!s->touched) {
		s->touched = true;
		w->touched[w->n_touched++] = s;
	}
}
