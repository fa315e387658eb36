/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feeds text to the tokenizer: from the mbuf, without a copy, into a reserved record of the token
 * ring. Ids that are to be decoded go the same way.
 *
 * The worst case is reserved before any state changes. A packet whose worst case exceeds half of
 * the ring is fed in pieces, as is each segment; `part` keeps the position if the ring is full
 * between two pieces.
 *
 * A turn of the loop gives the tokenizer only so much time, and each source only its share. Pieces
 * are short, so that one cannot take much more. A packet that is left over is held and fed in a
 * later turn, after the RX queue was polled, when it is its source's turn (drr.h).
 */
#include <crc32c.h>
#include "generate.h"
#include "gpu_text.h"
#include "reply.h"
#include "stream.h"
#include "datapath/token_ring_write.h"

/* The most ids that n bytes of text may give, or bytes of text n bytes of ids. */
static __rte_always_inline size_t
most_of(const struct tokd_stream *s, enum tokd_rec_kind kind, size_t n)
{
	return kind == TOKD_REC_TEXT ? tokd_decode_bound(&s->decode, n)
				     : tok_stream_bound(&s->tok, n);
}

/* Bytes to reserve for feeding n bytes. */
static uint64_t
worst_case(const struct tokd_worker *w, const struct tokd_stream *s, size_t n)
{
	const enum tokd_rec_kind kind = tokd_stream_kind(s);

	return tokd_rec_most(&w->ring, kind, most_of(s, kind, n));
}

/* The bytes, at most n and TOKD_PIECE_MAX, that fit one reservation. */
static uint32_t
piece_of(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t n)
{
	n = RTE_MIN(n, TOKD_PIECE_MAX);
	while (n > 1 && worst_case(w, s, n) > tokd_ring_max(&w->ring))
		n /= 2;
	return n;
}

static uint64_t
reserve(struct tokd_worker *w, struct tokd_stream *s, uint64_t bytes)
{
	uint64_t pos = tokd_ring_reserve(&w->ring, bytes);

	s->backpressured = pos == TOKD_RING_FULL;
	return pos;
}

/* After a record of this kind was published; s->total does not include it yet. */
static __rte_always_inline void
take_times(struct tokd_worker *w, struct tokd_stream *s, enum tokd_rec_kind kind,
	const struct tokd_rec *rec)
{
	const bool decodes = kind == TOKD_REC_TEXT;
	uint64_t t = rec->t_publish;

	if (!decodes)
		tokd_histogram_add(&w->time[T_WIRE_TO_RING], t - rec->t_rx);
	if (!decodes && s->total == 0 && rec->count > 0)
		tokd_histogram_add(&w->time[T_TEXT_TO_FIRST_ID], t - s->t_open);
	if (rec->flags & TOKD_REC_LAST) {
		tokd_histogram_add(
			&w->time[decodes ? T_IDS_TO_TEXT : T_TEXT_TO_LAST_ID], t - s->t_open);
		tokd_histogram_add(&w->time[decodes ? T_DECODER : T_TOKENIZER], s->tok_ticks);
		s->t_last = t;
	}
}

/*
 * Writes the keys of the blocks that these ids complete after them. Returns how many. Zeroed up to
 * the end of the record, as its readers may send it on.
 */
static uint32_t
put_keys(struct tokd_worker *w, struct tokd_stream *s, struct tokd_rec *rec, uint32_t count)
{
	uint8_t *keys = RTE_PTR_ADD(rec, tokd_rec_bytes(count));
	const uint32_t n = (uint32_t)tokb_feed(s->keys, tokd_rec_ids(rec), count, keys);
	const uint64_t used = (uint64_t)n * w->ring.key_bytes;

	memset(keys + used, 0, tokd_rec_keys_bytes(&w->ring, n) - used);
	return n;
}

static __rte_always_inline void
publish(struct tokd_worker *w, struct tokd_stream *s, enum tokd_rec_kind kind, uint64_t pos,
	uint32_t count, uint32_t n_keys, bool last, uint64_t t_rx)
{
	struct tokd_rec *rec = tokd_ring_at(&w->ring, pos);
	uint64_t bytes = tokd_rec_bytes(tokd_rec_words(kind, count));

	rec->flags = (s->published ? 0 : TOKD_REC_FIRST) | (last ? TOKD_REC_LAST : 0);
	rec->stream_id = s->key.stream_id;
	rec->serial = s->serial;
	rec->t_rx = t_rx;
	rec->first = s->total;
	rec->count = count;
	rec->vocab = s->vocab;
	rec->epoch = s->key.epoch;
	rec->reason = TOKD_R_NONE;
	rec->text_end = s->text_end;
	if (unlikely(n_keys > 0)) {
		rec->flags |= TOKD_REC_KEYS;
		bytes += tokd_rec_keys_bytes(&w->ring, n_keys);
		w->counter[C_BLOCK_KEYS] += n_keys;
	}
	tokd_ring_publish_bytes(&w->ring, pos, kind, bytes);
	tokd_count_record(w);
	if (likely(!tokd_gpu_text_is_back(w, s))) /* the GPU had it meanwhile */
		take_times(w, s, kind, rec);
	s->published = true;

	if (count > 0 && (s->flags & TOKD_F_IDS)) {
		s->rec[s->rec_head++ % TOKD_STREAM_RECS] =
			(struct tokd_stream_rec){.pos = pos, .first = s->total, .count = count};
		if (!s->watched)
			tokd_spill_watch(w, s, pos);
	}
	s->ids_crc = tokd_crc32c(s->ids_crc, tokd_rec_ids(rec),
		kind == TOKD_REC_TEXT ? count : count * sizeof(uint32_t));
	s->total += count;
}

uint64_t
tokd_stream_publish_answer(
	struct tokd_worker *w, struct tokd_stream *s, uint64_t pos, uint32_t count)
{
	publish(w, s, TOKD_REC_TEXT, pos, count, 0, false, w->t_burst);
	return tokd_ring_at(&w->ring, pos)->t_publish;
}

static enum tokd_feed
feed_failed(struct tokd_worker *w, struct tokd_stream *s, enum tokd_reason reason)
{
	if (unlikely(tokd_gpu_text_is_back(w, s))) {
		s->state = TOKD_STREAM_FAILED;
		s->reason = (uint8_t)reason;
	} else {
		tokd_stream_fail(w, s, reason);
	}
	return TOKD_FEED_FAILED;
}

/* Ids to text, which is no longer than a text may be. */
static struct tok_result
decode(struct tokd_worker *w, struct tokd_stream *s, const uint8_t *ids, uint32_t n, bool last,
	void *text, size_t room)
{
	struct tok_result res = tokd_decode_feed(&s->decode, ids, n, last, text, room);

	w->counter[C_DECODED_IDS] += res.consumed;
	if (res.error == TOK_ERROR_ID) /* where it lies */
		s->text_end = RTE_ALIGN_FLOOR(s->text_end, 4u) + 4 * (uint32_t)res.consumed;
	return res;
}

static enum tokd_reason
reason_of(enum tok_error_code error)
{
	switch (error) {
	case TOK_ERROR_UTF8:
		return TOKD_R_UTF8;
	case TOK_ERROR_ID:
		return TOKD_R_ID;
	default:
		return TOKD_R_CARRY;
	}
}

/* --wipe: zeroes what the tokenizer wrote after the record, or all if the record is not `good`. */
static __rte_noinline void
wipe_rest(struct tokd_worker *w, enum tokd_rec_kind kind, uint64_t pos, size_t room, bool good,
	const struct tok_result *res, uint32_t n_keys)
{
	uint64_t used = 0;

	if (good)
		used = tokd_rec_bytes(tokd_rec_words(kind, res->produced)) +
		       tokd_rec_keys_bytes(&w->ring, n_keys);
	memset(RTE_PTR_ADD(tokd_ring_at(&w->ring, pos), used), 0,
		tokd_rec_most(&w->ring, kind, room) - used);
}

/*
 * `last`: the text ends with this piece; `want`: the client's CRC32C of the text. Inlined twice:
 * tokenizing hardly pays for decoding.
 */
static __rte_always_inline enum tokd_feed
feed_as(struct tokd_worker *w, struct tokd_stream *s, enum tokd_rec_kind kind, const uint8_t *text,
	uint32_t n, bool last, uint32_t want, uint64_t t_rx)
{
	const bool decodes = kind == TOKD_REC_TEXT;
	/* Positions of ids have 32 bits, and a text may have 12 ids a byte. */
	const uint32_t most = decodes ? s->max_text : UINT32_MAX;
	size_t room = most_of(s, kind, n);
	struct tok_result res;
	bool too_long;
	struct tokd_rec *rec;
	uint32_t crc, n_keys = 0;
	uint64_t pos, t;

	if (unlikely((s->flags & TOKD_F_IDS) && tokd_stream_rec_room(s) == 0)) {
		w->counter[C_DROP_REPLY_WINDOW]++;
		return TOKD_NOT_FED;
	}
	pos = reserve(w, s, tokd_rec_most(&w->ring, kind, room));
	if (unlikely(pos == TOKD_RING_FULL)) {
		w->counter[C_DROP_RING_FULL] += !tokd_gpu_text_is_back(w, s); /* no packet */
		return TOKD_NOT_FED;
	}
	/* Before the last ids are published: a corrupt text never gets a LAST record. */
	crc = tokd_crc32c(s->text_crc, text, n);
	if (unlikely(last && crc != want))
		return feed_failed(w, s, TOKD_R_TEXT_CRC);

	rec = tokd_ring_at(&w->ring, pos);
	t = rte_rdtsc();
	res = decodes ? decode(w, s, text, n, last, tokd_rec_ids(rec), room)
		      : tok_stream_feed(&s->tok, text, n, last, tokd_rec_ids(rec), room);
	if (!decodes && unlikely(s->keys != NULL))
		n_keys = put_keys(w, s, rec, (uint32_t)res.produced);
	too_long = res.produced > most - s->total;
	if (unlikely(w->wipe))
		wipe_rest(w, kind, pos, room, res.status == TOK_OK && !too_long, &res, n_keys);
	t = rte_rdtsc() - t;
	s->tok_ticks += t;
	w->fed_ticks += t;
	tokd_drr_charge(&w->drr, &s->source->flow, t);
	if (unlikely(res.status != TOK_OK)) {
		s->error = (uint8_t)res.error;
		return feed_failed(w, s, reason_of(res.error));
	}
	if (unlikely(too_long)) {
		w->counter[C_DROP_TOO_LONG]++;
		return feed_failed(w, s, TOKD_R_TEXT_TOO_LONG);
	}

	s->text_crc = crc;
	s->text_end += n;
	s->part += n;
	w->counter[C_TEXT_BYTES] += decodes ? 0 : n;
	w->counter[decodes ? C_DECODED_BYTES : C_IDS] += res.produced;
	if (res.produced > 0 || last || !s->published)
		publish(w, s, kind, pos, (uint32_t)res.produced, n_keys, last, t_rx);
	return TOKD_FED;
}

static enum tokd_feed
feed_piece(struct tokd_worker *w, struct tokd_stream *s, const uint8_t *text, uint32_t n, bool last,
	uint32_t want, uint64_t t_rx)
{
	enum tokd_feed how;

	if (tokd_stream_is_bytes(s))
		return feed_as(w, s, TOKD_REC_TEXT, text, n, last, want, t_rx);
	if (unlikely(s->gpu_text != NULL) &&
		tokd_gpu_text_take(w, s, text, n, last, want, t_rx, &how))
		return how;
	return feed_as(w, s, TOKD_REC_TOKENS, text, n, last, want, t_rx);
}

enum tokd_feed
tokd_stream_feed_bytes(struct tokd_worker *w, struct tokd_stream *s, const uint8_t *text,
	uint32_t *n, bool last, uint32_t want, uint64_t t_rx)
{
	const uint32_t all = *n;

	*n = piece_of(w, s, all);
	return feed_as(w, s, TOKD_REC_TOKENS, text, *n, last && *n == all, want, t_rx);
}

enum tokd_feed
tokd_stream_may_feed(struct tokd_worker *w, struct tokd_stream *s)
{
	if (tokd_reply_is_overdue(w)) {
		tokd_reply_flush(w);
		if (s->state != TOKD_STREAM_OPEN)
			return TOKD_FEED_FAILED;
	}
	return likely(w->fed_ticks < w->drr.slice && tokd_drr_may_take(&w->drr, &s->source->flow))
		       ? TOKD_FED
		       : TOKD_FEED_LATER;
}

/* `n` packets from `next` on were fed. */
static void
fed(struct tokd_worker *w, struct tokd_stream *s, uint32_t n, bool last)
{
	s->part = 0;
	s->next += n;
	s->held_bits = s->held_bits >> 1 >> (n - 1); /* n may be all 64 */
	s->unacked += n;
	s->told_to_wait = false;
	if (last && unlikely(s->flags & TOKD_F_GENERATE))
		tokd_generate_answer(w, s);
	else if (last)
		tokd_stream_done(w, s);
}

enum tokd_feed
tokd_stream_feed(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m, uint64_t t_rx)
{
	const struct tokd_req req = tokd_req_read(m);
	uint32_t at = sizeof(req) + s->part; /* in m, the current segment */

	if (unlikely(req.offset != s->text_end - s->part)) {
		w->counter[C_DROP_OFFSET]++;
		return feed_failed(w, s, TOKD_R_OFFSET);
	}
	/* A retransmission must be the same packet. */
	if (unlikely(req.length < s->part)) {
		w->counter[C_DROP_LENGTH]++;
		return feed_failed(w, s, TOKD_R_LENGTH);
	}
	do {
		uint32_t left = req.length - s->part, n;
		enum tokd_feed how;
		bool last;

		while (unlikely(at >= rte_pktmbuf_data_len(m) && m->next != NULL)) {
			at -= rte_pktmbuf_data_len(m);
			m = m->next;
		}
		n = piece_of(w, s, RTE_MIN(left, rte_pktmbuf_data_len(m) - at));
		last = (req.flags & TOKD_F_LAST) && n == left;
		how = tokd_stream_may_feed(w, s);
		if (unlikely(last && (s->flags & TOKD_F_GENERATE)) && how == TOKD_FED)
			how = tokd_generate_begin(w, s, req.limit);
		if (unlikely(how != TOKD_FED))
			return how;
		how = feed_piece(w, s, rte_pktmbuf_mtod_offset(m, const uint8_t *, at), n, last,
			req.text_crc, t_rx);
		if (how != TOKD_FED)
			return how;
		at += n;
	} while (s->part < req.length);

	fed(w, s, 1, req.flags & TOKD_F_LAST);
	return TOKD_FED;
}

/*
 * Copies the text of held packets, from the next one on, to w->gather: as much as may be fed at
 * once. Returns how many packets; `last` is the last one's header. The end of a prompt, which may
 * wait for a lane, is fed alone.
 */
static uint32_t
gather_texts(struct tokd_worker *w, const struct tokd_stream *s, struct tokd_req *last)
{
	uint32_t n = 0, bytes = 0;

	for (; n < TOKD_WIRE_WINDOW && (s->held_bits >> n) & 1; n++) {
		const struct rte_mbuf *m = s->held[(s->next + n) % TOKD_WIRE_WINDOW].m;
		const struct tokd_req req = tokd_req_read(m);

		if (unlikely(s->flags & TOKD_F_GENERATE) && (req.flags & TOKD_F_LAST))
			break;
		if (m->nb_segs > 1 || req.offset != s->text_end + bytes ||
			req.length > TOKD_GATHER_MAX - bytes ||
			worst_case(w, s, bytes + req.length) > tokd_ring_max(&w->ring))
			break;
		memcpy(&w->gather[bytes], rte_pktmbuf_mtod_offset(m, void *, sizeof(req)),
			req.length);
		bytes += req.length;
		*last = req;
	}
	return n;
}

/* Slow text is fed in short pieces, so that others do not wait; so is what no one knows yet. */
static bool
is_fast(const struct tokd_worker *w, const struct tokd_stream *s)
{
	return s->tok_ticks * 2 * TOKD_GATHER_MAX < s->text_end * w->feed_ticks;
}

/* Feed held packet `next`, and those after it that are fed with it: `n` in all. */
static enum tokd_feed
feed_next(struct tokd_worker *w, struct tokd_stream *s, uint32_t *n)
{
	const struct tokd_held *held = &s->held[s->next % TOKD_WIRE_WINDOW];
	struct tokd_req last;
	enum tokd_feed how;

	*n = 1;
	if ((s->held_bits & 2) == 0 || s->part > 0 || !is_fast(w, s) ||
		(*n = gather_texts(w, s, &last)) < 2) {
		*n = 1;
		return tokd_stream_feed(w, s, held->m, held->t_rx);
	}
	how = tokd_stream_may_feed(w, s);
	if (unlikely(how != TOKD_FED))
		return how;
	how = feed_piece(w, s, w->gather, last.offset + last.length - s->text_end,
		last.flags & TOKD_F_LAST, last.text_crc, held->t_rx);
	if (how == TOKD_FED)
		fed(w, s, *n, last.flags & TOKD_F_LAST);
	return how;
}

void
tokd_stream_feed_held(struct tokd_worker *w, struct tokd_stream *s)
{
	while (s->state == TOKD_STREAM_OPEN && (s->held_bits & 1)) {
		const uint32_t next = s->next;
		uint32_t n;
		enum tokd_feed how = feed_next(w, s, &n);

		if (how == TOKD_FEED_LATER)
			tokd_stream_defer(w, s);
		if (how == TOKD_FEED_LATER || how == TOKD_NOT_FED)
			return;
		if (how != TOKD_FED)
			return; /* the failure has freed all held packets */
		for (uint32_t i = 0; i < n; i++)
			tokd_held_free(w, s, s->held[(next + i) % TOKD_WIRE_WINDOW].m);
	}
}

void
tokd_stream_feed_gathered(struct tokd_worker *w)
{
	for (uint16_t i = 0; i < w->n_gathered; i++) {
		struct tokd_stream *s = w->gathered[i];
		const uint32_t text_end = s->text_end;

		if (unlikely(!s->gathered))
			continue; /* it ended in this burst, and gave way to another */
		s->gathered = false;
		tokd_held_count(w, s);
		tokd_stream_feed_held(w, s);
		tokd_stream_touch(w, s); /* feeding may have flushed replies */
		/* Not if it only waits: in overload each text would get a reply more. */
		if (s->state != TOKD_STREAM_OPEN || ((s->held_bits & 1) && !s->deferred))
			s->due = true;
		if (s->text_end != text_end)
			tokd_stream_renew(w, s);
	}
	w->n_gathered = 0;
}

/* The stream of the flow that has waited longest. */
static void
serve(struct tokd_worker *w, struct tokd_flow *f)
{
	struct tokd_stream *s = TAILQ_FIRST(&f->queue);
	const uint32_t text_end = s->text_end, next = s->next;
	const uint64_t ticks = w->fed_ticks;

	TAILQ_REMOVE(&f->queue, s, later);
	s->deferred = false;
	tokd_held_count(w, s);
	w->drr.served = f;
	tokd_stream_feed_held(w, s);
	w->drr.served = NULL;
	if (TAILQ_EMPTY(&f->queue))
		tokd_drr_leave(&w->drr, f);
	if (s->next > next)
		tokd_drr_took(&w->drr, (w->fed_ticks - ticks) / (s->next - next));
	if (s->state == TOKD_STREAM_DONE)
		f->ticks = tokd_drr_average(f->ticks, s->tok_ticks);
	tokd_stream_touch(w, s);
	s->due = true;
	if (s->text_end != text_end)
		tokd_stream_renew(w, s);
}

void
tokd_stream_feed_deferred(struct tokd_worker *w)
{
	struct tokd_flow *f;

	tokd_reply_flush(w); /* of the packets before: their clients do not wait */
	tokd_tx_flush(w);
	if (!w->drr.shared)
		w->fed_ticks = 0;
	while (w->fed_ticks < w->drr.slice && w->n_touched < TOKD_BURST &&
		(f = tokd_drr_next(&w->drr)) != NULL)
		serve(w, f);
}

void
tokd_stream_probe(struct tokd_worker *w, struct tokd_stream *s)
{
	uint64_t bytes = worst_case(w, s, piece_of(w, s, TOKD_WIRE_PAYLOAD));

	if (unlikely(s->gpu_text != NULL) && !s->gpu_text->leaves) {
		const uint32_t n = s->gpu_text->n + TOKD_WIRE_PAYLOAD;

		bytes = tokd_rec_bytes(
			tokd_rec_words(TOKD_REC_BYTES, RTE_MIN(n, w->gpu_texts->room)));
	}
	reserve(w, s, bytes);
	if (unlikely(s->no_lane))
		s->no_lane = tokd_generate_must_wait(w, s);
}
