/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies. A stream gets replies once, at the end of a burst, in as few packets as possible: every
 * packet with ids carries the state; a packet without ids is sent only if there was none with ids.
 */
#include <rte_ip.h>
#include <rte_udp.h>

#include "cookie.h"
#include "reply.h"
#include "text_port.h"

/* A reply with ids says what they are. */
#define OF_IDS (TOKD_F_SHORT | TOKD_F_DECODE | TOKD_F_GENERATE)

/* `more`: retry_ms or `speaks`, by the reason. */
static void
refuse(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, enum tokd_reason reason, uint32_t more)
{
	const struct tokd_rep rep = {
		.magic = TOKD_WIRE_MAGIC,
		.version = req->version, /* or its client would not read it */
		.type = TOKD_REPLY,
		.flags = TOKD_F_FAIL,
		.epoch = req->epoch,
		.vocab = w->terms->vocab[0].checksum,
		.stream_id = req->stream_id,
		.cookie = reason == TOKD_R_VALIDATE ? tokd_cookie_make(w, peer) : 0,
		.reason = reason,
		.retry_ms = more,
	};

	if (unlikely(tokd_text_peer(w, peer))) {
		tokd_text_refuse(w, peer, reason, rte_pktmbuf_pkt_len(m) - sizeof(*req));
		rte_pktmbuf_free(m);
		return;
	}
	static_assert(sizeof(struct tokd_req) >= sizeof(struct tokd_rep), "no amplification");
	rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
	rte_pktmbuf_pkt_len(m) = rte_pktmbuf_data_len(m) = sizeof(rep);
	memcpy(rte_pktmbuf_mtod(m, void *), &rep, sizeof(rep));
	tokd_net_send(w, m, peer);
}

void
tokd_reply_refuse(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, enum tokd_reason reason)
{
	refuse(w, m, req, peer, reason, reason == TOKD_R_VERSION ? TOKD_WIRE_VERSION : 0);
}

void
tokd_reply_busy(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, uint32_t retry_ms)
{
	refuse(w, m, req, peer, TOKD_R_BUSY, retry_ms);
}

uint16_t
tokd_reply_room(const struct tokd_worker *w, const struct tokd_req *req, const struct tokd_addr *to)
{
	const uint32_t headers =
		sizeof(struct rte_udp_hdr) +
		(tokd_addr_is_v4(to) ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr));
	const uint32_t said = RTE_MAX(req->reply_max, (uint32_t)TOKD_WIRE_REPLY_LEAST);
	uint32_t most = RTE_MIN(w->mtu - headers, sizeof(struct tokd_rep) + TOKD_WIRE_PAYLOAD);

	if (req->reply_max != 0)
		most = RTE_MIN(most, said);
	return (uint16_t)RTE_ALIGN_FLOOR(most - sizeof(struct tokd_rep), sizeof(uint32_t));
}

/* The client may send packets below next + credit. */
static uint32_t
credit(const struct tokd_worker *w, const struct tokd_stream *s)
{
	uint32_t most = TOKD_WIRE_WINDOW;

	if (s->state != TOKD_STREAM_OPEN || s->backpressured || s->told_to_wait || s->no_lane)
		return 0;
	if (unlikely(s->source->flow.state != TOKD_FLOW_IDLE) &&
		tokd_held_room(w, &s->source->flow) == 0) /* no others than those held */
		most = s->held_bits == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(s->held_bits);
	return s->flags & TOKD_F_IDS ? RTE_MIN(most, tokd_stream_rec_room(s)) : most;
}

bool
tokd_reply_is_validated(struct tokd_worker *w, struct tokd_stream *s)
{
	if (!s->validated && s->cookie != 0) {
		s->validated = tokd_cookie_check(w, &s->peer, s->cookie);
		s->cookie = 0;
		if (s->validated)
			tokd_source_validate(w, s->source);
	}
	return s->validated;
}

/* Where packet `ack` waits and nothing is missing, its client must not think that it is lost. */
static uint64_t
early(const struct tokd_stream *s)
{
	const bool all_wait = (s->held_bits & 1) && (s->held_bits & (s->held_bits + 1)) == 0;

	return all_wait ? 0 : s->held_bits >> 1;
}

/* Why the client has no credit, if the reason is on our side. */
static enum tokd_reason
hindrance(const struct tokd_stream *s)
{
	if (s->state != TOKD_STREAM_OPEN)
		return TOKD_R_NONE;
	if (s->backpressured)
		return TOKD_R_RING;
	return s->no_lane ? TOKD_R_LANES : TOKD_R_NONE;
}

/* For its client: the ids of a prompt are not. */
static uint32_t
published(const struct tokd_stream *s)
{
	return likely(!(s->flags & TOKD_F_GENERATE)) || tokd_stream_answers(s) ? s->total : 0;
}

/* May a reply of `bytes` be sent? Room is kept for a VALIDATE, in its place or after it. */
static bool
is_within_limit(struct tokd_worker *w, struct tokd_stream *s, uint64_t bytes, bool validate)
{
	const uint64_t spare = validate ? 0 : sizeof(struct tokd_rep);

	return likely(s->replied + bytes + spare <= TOKD_UNVALIDATED_FACTOR * s->received) ||
	       tokd_reply_is_validated(w, s);
}

bool
tokd_reply_send(struct tokd_worker *w, struct tokd_stream *s, uint32_t first, uint32_t count,
	enum tokd_reason reason)
{
	const uint64_t bytes = tokd_reply_bytes(s, count);
	const bool validate = reason == TOKD_R_VALIDATE;
	bool done = s->state == TOKD_STREAM_DONE && reason == TOKD_R_NONE;
	struct rte_mbuf *m;
	struct tokd_rep rep;

	if (unlikely(!is_within_limit(w, s, bytes, validate))) {
		w->counter[C_REPLY_LIMITED]++;
		if (!validate)
			tokd_reply_send(w, s, 0, 0, TOKD_R_VALIDATE);
		return false;
	}
	m = rte_pktmbuf_alloc(w->pool);
	if (unlikely(m == NULL)) {
		w->counter[C_TX_NO_MBUF]++;
		return false;
	}
	rep = (struct tokd_rep){
		.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = (count > 0 && first == 0 ? TOKD_F_FIRST : 0) | (done ? TOKD_F_DONE : 0) |
			 (done && s->uncounted ? TOKD_F_UNCOUNTED : 0) |
			 (count > 0 ? s->flags & OF_IDS : 0) |
			 (reason != TOKD_R_NONE ? TOKD_F_FAIL : 0),
		.epoch = s->key.epoch,
		.vocab = s->vocab,
		.stream_id = s->key.stream_id,
		.ack = s->next,
		.credit = credit(w, s),
		.sack = unlikely(validate) ? tokd_cookie_make(w, &s->peer) : early(s),
		.first = first,
		.count = count,
		.total = published(s),
		.ids_crc = done ? s->ids_crc : 0,
		.reason = reason != TOKD_R_NONE ? reason : hindrance(s),
		.text_end = s->text_end,
	};
	/* tokd_worker_init() has checked the size of mbufs. */
	memcpy(rte_pktmbuf_append(m, sizeof(rep)), &rep, sizeof(rep));
	if (count > 0)
		tokd_reply_ids_put(w, s, first, count, m);
	tokd_net_send(w, m, &s->peer);
	s->replied += bytes;
	if (done && s->t_last != 0 && (first + count == s->total || !(s->flags & TOKD_F_IDS))) {
		tokd_tx_is_last(w, s->t_last);
		s->t_last = 0;
	}

	s->due = false;
	s->unacked = 0;
	return true;
}

/* Send ids now that do not fill a packet? */
static bool
all_ids_now(const struct tokd_worker *w, const struct tokd_stream *s)
{
	if ((s->flags & TOKD_F_STREAM) || s->state == TOKD_STREAM_DONE || s->flush)
		return true;
	/* Many small records: ids that are not sent cannot be acknowledged, which frees records. */
	if (tokd_stream_rec_room(s) < TOKD_STREAM_RECS / 2)
		return true;
	return !tokd_reply_ids_recent(w, s, s->sent);
}

static void
reply_ids(struct tokd_worker *w, struct tokd_stream *s)
{
	const uint32_t max = tokd_reply_ids_max(s);
	bool all;

	if (s->sent == s->total)
		return;
	if (unlikely(!tokd_reply_ids_available(w, s, s->sent, s->total))) {
		if (s->state == TOKD_STREAM_OPEN)
			tokd_stream_fail(w, s, TOKD_R_EXPIRED);
		else if (s->due)
			tokd_reply_send(w, s, 0, 0, TOKD_R_EXPIRED);
		return;
	}
	all = all_ids_now(w, s);
	while (s->sent < s->total) {
		uint32_t n = RTE_MIN(s->total - s->sent, max);

		if (n < max && !all)
			return;
		n = tokd_reply_ids_whole(w, s, s->sent, n, s->total);
		if (!tokd_reply_send(w, s, s->sent, n, TOKD_R_NONE))
			return; /* retried when the stream is touched next */
		s->sent += n;
	}
}

static void
reply_stream(struct tokd_worker *w, struct tokd_stream *s)
{
	s->touched = false;
	if (unlikely(tokd_text_peer(w, &s->peer))) {
		tokd_text_reply(w, s);
		return;
	}
	if (s->state != TOKD_STREAM_FAILED && (s->flags & TOKD_F_IDS))
		reply_ids(w, s);
	s->flush = false;
	if (s->due || s->unacked >= TOKD_ACK_EVERY)
		tokd_reply_send(w, s, 0, 0, s->reason);
}

void
tokd_reply_now(struct tokd_worker *w, struct tokd_stream *s)
{
	if (!s->touched)
		reply_stream(w, s);
}

bool
tokd_reply_can_wait(const struct tokd_worker *w)
{
	for (uint16_t i = 0; i < w->n_touched; i++) {
		const struct tokd_stream *s = w->touched[i];

		if (s->state != TOKD_STREAM_OPEN || (s->flags & TOKD_F_STREAM) || s->due ||
			s->unacked >= TOKD_ACK_EVERY)
			return false;
	}
	return w->n_touched > 0 && w->n_tx == 0;
}

void
tokd_reply_flush(struct tokd_worker *w)
{
	for (uint16_t i = 0; i < w->n_touched; i++)
		reply_stream(w, w->touched[i]);
	w->n_touched = 0;
	w->reply_head = w->ring.head;
}
