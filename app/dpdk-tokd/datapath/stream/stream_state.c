/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream states and their lists. Streams move between lists; nothing is allocated. */
#include <mix.h>

#include "generate.h"
#include "gpu_text.h"
#include "reply.h"
#include "stream.h"
#include "datapath/source/source_count.h"
#include "datapath/token_ring_write.h"

/* Streams in one bucket. More than chance gives: then someone knows the secret. */
#define BUCKET_MAX 16

static struct tokd_stream_bucket *
bucket_of_key(const struct tokd_streams *t, unsigned __int128 key_sum)
{
	return &t->by_key[tokd_sum_hash(key_sum) & t->key_mask];
}

void
tokd_stream_look_up(const struct tokd_streams *t, struct tokd_arrival *a)
{
	const unsigned __int128 sum = tokd_key_sum(&t->names, &a->key);

	a->bucket = bucket_of_key(t, sum);
	__builtin_prefetch(a->bucket, 1);
	a->name = tokd_name_of(&t->names, sum, &a->peer.mac);
	__builtin_prefetch(tokd_names_bucket(&t->names, a->name), 1);
}

struct tokd_stream *
tokd_stream_find(struct tokd_worker *w, const struct tokd_arrival *a)
{
	struct tokd_stream *s, *other = NULL;

	w->streams->looked = a;
	LIST_FOREACH(s, a->bucket, keyed)
	{
		if (memcmp(&s->key, &a->key, sizeof(a->key)) != 0)
			continue;
		if (likely(rte_is_same_ether_addr(&s->peer.mac, &a->peer.mac)))
			return s;
		other = s;
	}
	return other;
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

/* The mean over the last 2^MEAN_SHIFT texts, about. */
#define MEAN_SHIFT 6

/* Bytes of a tokenizer stream that the first packet of a text writes: its state, a few of pos[]. */
#define READY_BYTES 256
/* Bytes of the next record. */
#define READY_RECORD 1024

static bool
is_awaited(const struct tokd_stream *s)
{
	return s->state == TOKD_STREAM_DONE && (s->flags & TOKD_F_IDS) && s->ids_ack < s->total;
}

/* Add a finished stream to the end of its list. */
static void
add_finished(struct tokd_streams *t, struct tokd_stream *s)
{
	struct tokd_source *source = s->source;

	s->awaited = is_awaited(s);
	source->n_awaited += s->awaited;
	TAILQ_INSERT_TAIL(s->awaited ? &source->awaited : &source->finished, s, of_source);
	TAILQ_INSERT_TAIL(&t->finished, s, link);
}

static void
remove_finished(struct tokd_streams *t, struct tokd_stream *s)
{
	struct tokd_source *source = s->source;

	TAILQ_REMOVE(s->awaited ? &source->awaited : &source->finished, s, of_source);
	source->n_awaited -= s->awaited;
	TAILQ_REMOVE(&t->finished, s, link);
}

static struct tokd_stream_bucket *
bucket_of_serial(const struct tokd_streams *t, uint64_t serial)
{
	return &t->by_serial[tokd_mix(serial * t->serial_secret) >> t->serial_shift];
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
	tokd_held_count(w, s);
	tokd_drr_wait(&w->drr, &s->source->flow);
	TAILQ_INSERT_TAIL(&s->source->flow.queue, s, later);
	w->counter[C_FEED_DEFERRED]++;
}

static void
no_longer_wait(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_flow *f = &s->source->flow;

	TAILQ_REMOVE(&f->queue, s, later);
	s->deferred = false;
	tokd_held_count(w, s);
	if (TAILQ_EMPTY(&f->queue) && f != w->drr.served)
		tokd_drr_leave(&w->drr, f);
}

/* --wipe: what it holds back of its text. */
static void
wipe(const struct tokd_streams *t, struct tokd_stream *s)
{
	memset(&s->tok, 0, sizeof(*s) - offsetof(struct tokd_stream, tok));
	if (s->keys != NULL)
		memset(s->keys, 0, t->keys_each);
}

/* Afterwards it is in no list. */
static void
close_open(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_streams *t = w->streams;

	w->counter[C_NAMES_FORGOTTEN] += tokd_names_add(&t->names, s->name, s->source, w->t_burst);
	TAILQ_REMOVE(&t->open, s, link);
	TAILQ_REMOVE(&s->source->open, s, of_source);
	tokd_source_sub(w, s->source, TOKD_KIND_OPEN);
	if (s->deferred)
		no_longer_wait(w, s);
	else if (unlikely(s->waiting > 0))
		tokd_held_count(w, s); /* it is gathered, and holds nothing any more */
	if (unlikely(s->gpu_text != NULL))
		tokd_gpu_text_drop(w, s);
	if (unlikely(s->flags & TOKD_F_GENERATE))
		tokd_generate_leave(w, s);
	if (s->known.le_prev != NULL)
		LIST_REMOVE(s, known);
	count(&t->n_open, -1);
	tokd_terms_leave(s->terms);
	if (unlikely(w->wipe))
		wipe(t, s);
}

void
tokd_stream_release(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_streams *t = w->streams;

	s->gathered = false;
	tokd_spill_forget(w, s);
	LIST_REMOVE(s, keyed);
	count(&t->n_used, -1);
	remove_finished(t, s);
	tokd_source_sub(w, s->source, TOKD_KIND_FINISHED);
	tokd_source_drop(w, s->source);
	s->state = TOKD_STREAM_FREE;
	/* At the head: it is likely still in the cache. */
	TAILQ_INSERT_HEAD(&t->free, s, link);
}

/* DPDK for any ARM takes lines for 128 bytes; most CPUs have lines of 64. */
static inline void
fetch_lines(const void *p, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += RTE_CACHE_LINE_MIN_SIZE)
		__builtin_prefetch(RTE_PTR_ADD(p, at), 1);
}

/* What a text of one packet needs of a stream, which was last used long ago. */
static void
fetch(const struct tokd_stream *s)
{
	fetch_lines(s, offsetof(struct tokd_stream, rec[1]));
	fetch_lines(&s->tok, READY_BYTES);
}

/* The stream that the next text of the burst will take: while this one is tokenized. */
static void
fetch_next(struct tokd_worker *w)
{
	const struct tokd_stream *s = TAILQ_FIRST(&w->streams->free);

	if (s == NULL)
		s = tokd_share_evictable(w);
	if (s != NULL)
		fetch(s);
}

struct tokd_stream *
tokd_stream_open(struct tokd_worker *w, struct tokd_source *source,
	const struct tokd_stream_key *key, const struct tokd_vocab *vocab, uint16_t flags,
	enum tokd_reason *why)
{
	struct tokd_streams *t = w->streams;
	const uint64_t name = t->looked->name;
	struct tokd_stream_bucket *bucket = t->looked->bucket;
	const bool scarce = tokd_streams_are_scarce(t);
	struct tokd_stream *s = TAILQ_FIRST(&t->free);

	*why = TOKD_R_BUSY;
	if (unlikely(scarce && !tokd_share_admits(w, source)))
		return NULL;
	if (unlikely(s == NULL)) /* not the first of this turn */
		s = tokd_share_evictable(w);
	/* NULL: all others wait for the ring, with their ABORT. */
	if (unlikely(s == NULL || is_full(bucket))) {
		w->counter[C_DROP_TABLE_FULL]++;
		return NULL;
	}
	if (unlikely(s->state != TOKD_STREAM_FREE)) {
		/* It may owe a reply of this burst. */
		if (s->touched)
			tokd_reply_flush(w);
		tokd_stream_release(w, s);
	}
	TAILQ_REMOVE(&t->free, s, link);
	if (w->n_follow > 0)
		fetch_next(w);

	/* Except the large arrays, which are written before they are read. */
	memset(s, 0, offsetof(struct tokd_stream, rec));
	s->key = *key;
	s->flags = flags & (TOKD_F_IDS | TOKD_F_STREAM | TOKD_STREAM_MODE);
	/* Ids of 2 bytes are copies: not where replies need none. */
	if (vocab->short_ids && w->zc.pool == NULL && !(flags & TOKD_F_DECODE))
		s->flags |= flags & TOKD_F_SHORT;
	s->t_active = w->t_burst;
	s->t_open = w->t_burst;
	s->last = TOKD_NO_PACKET;
	s->terms = w->terms;
	s->max_text = w->terms->max_text;
	s->vocab = vocab->checksum;
	if (unlikely(flags & TOKD_F_GENERATE))
		s->flags &= (uint16_t)~TOKD_F_IDS; /* the prompt's are not for its client */
	if (unlikely(flags & TOKD_F_DECODE)) {
		s->flags |= TOKD_STREAM_BYTES;
		tokd_decode_init(&s->decode, vocab, flags & TOKD_F_SKIP_SPECIAL);
	} else {
		tok_stream_init(&s->tok, vocab->tok, vocab->cache, w->terms->tok_flags);
		if (unlikely(vocab->keys != NULL)) {
			s->keys = (struct tokb *)(t->keys + (size_t)(s - t->stream) * t->keys_each);
			tokb_copy(s->keys, vocab->keys);
		}
	}

	if (unlikely(tokd_names_have(&t->names, name))) {
		TAILQ_INSERT_HEAD(&t->free, s, link);
		*why = TOKD_R_EXPIRED;
		return NULL;
	}
	if (unlikely(scarce))
		tokd_share_evict(w);
	tokd_terms_join(s->terms);
	s->state = TOKD_STREAM_OPEN;
	s->name = name;
	s->serial = w->ring.serial++;
	s->source = source;
	tokd_source_take(w, s->source);
	tokd_source_add(w, s->source, TOKD_KIND_OPEN);

	LIST_INSERT_HEAD(bucket, s, keyed);
	TAILQ_INSERT_TAIL(&t->open, s, link);
	TAILQ_INSERT_TAIL(&s->source->open, s, of_source);
	if (w->sink != NULL)
		LIST_INSERT_HEAD(bucket_of_serial(t, s->serial), s, known);
	if (unlikely(w->gpu_texts != NULL))
		tokd_gpu_text_begin(w, s, vocab);
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
		s = tokd_share_evictable(w);
		if (s == NULL)
			return;
		tokd_stream_release(w, s);
	}
	fetch(s);
	fetch_lines(tokd_ring_at(&w->ring, w->ring.head), READY_RECORD);
}

void
tokd_stream_done(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_streams *t = w->streams;

	s->state = TOKD_STREAM_DONE;
	t->mean_open += ((w->t_burst - s->t_open) >> MEAN_SHIFT) - (t->mean_open >> MEAN_SHIFT);
	close_open(w, s);
	add_finished(t, s);
	tokd_source_add(w, s->source, TOKD_KIND_FINISHED);
	w->counter[C_STREAMS_DONE]++;
}

bool
tokd_stream_put_abort(struct tokd_worker *w, const struct tokd_stream *s)
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
		.vocab = s->vocab,
		.epoch = s->key.epoch,
		.reason = s->reason,
		.text_end = s->text_end,
	};
	tokd_ring_publish(&w->ring, pos, tokd_stream_kind(s));
	tokd_count_record(w);
	return true;
}

bool
tokd_stream_abort(struct tokd_worker *w, struct tokd_stream *s)
{
	/* A prompt is complete in the ring, whatever becomes of its answer. */
	if (likely(!tokd_stream_answers(s)) && !tokd_stream_put_abort(w, s))
		return false;
	/* It may be evicted now; it stays to answer its client. */
	TAILQ_REMOVE(&w->streams->aborting, s, link);
	add_finished(w->streams, s);
	tokd_source_add(w, s->source, TOKD_KIND_FINISHED);
	s->aborting = false;
	s->t_active = w->t_burst;
	return true;
}

void
tokd_stream_fail(struct tokd_worker *w, struct tokd_stream *s, enum tokd_reason reason)
{
	while (s->held_bits != 0) {
		uint32_t i = (uint32_t)__builtin_ctzll(s->held_bits);

		s->held_bits &= s->held_bits - 1;
		tokd_held_free(w, s, s->held[(s->next + i) % TOKD_WIRE_WINDOW].m);
	}
	tokd_spill_forget(w, s);
	if (reason == TOKD_R_TIMEOUT || reason == TOKD_R_SHARE)
		tokd_share_died(w, s->source);
	s->state = TOKD_STREAM_FAILED;
	s->reason = (uint8_t)reason;
	s->due = true;
	s->aborting = true;
	close_open(w, s);
	TAILQ_INSERT_TAIL(&w->streams->aborting, s, link);
	w->counter[C_STREAMS_FAILED]++;
	tokd_stream_abort(w, s); /* ring full: housekeeping tries again */
}

/* Others may wait for its place, or for its lane. */
static bool
is_wanted(const struct tokd_worker *w, const struct tokd_stream *s)
{
	return tokd_streams_are_scarce(w->streams) ||
	       (unlikely(s->lane != 0) && tokd_generate_is_short(w, s));
}

void
tokd_stream_renew(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_streams *t = w->streams;

	if (s->aborting)
		return; /* in neither list */
	if (s->state == TOKD_STREAM_OPEN) {
		if (unlikely(is_wanted(w, s)) && tokd_share_is_slow(w, s)) {
			w->counter[C_PROGRESS_SLOW]++;
			return;
		}
		s->t_active = w->t_burst;
		if (TAILQ_NEXT(s, link) == NULL)
			return;
		TAILQ_REMOVE(&t->open, s, link);
		TAILQ_INSERT_TAIL(&t->open, s, link);
		TAILQ_REMOVE(&s->source->open, s, of_source);
		TAILQ_INSERT_TAIL(&s->source->open, s, of_source);
		tokd_source_touch(w, s->source);
	} else {
		s->t_active = w->t_burst;
		if (TAILQ_NEXT(s, link) == NULL && s->awaited == is_awaited(s))
			return;
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
		tokd_stream_rec_drop(w, s, rec);
		s->rec_tail++;
	}
	if (tokd_stream_answers(s) && s->state == TOKD_STREAM_OPEN)
		tokd_generate_go_on(w, s);
}

void
tokd_stream_touch(struct tokd_worker *w, struct tokd_stream *s)
{
	if (!s->touched) {
		s->touched = true;
		w->touched[w->n_touched++] = s;
	}
}
