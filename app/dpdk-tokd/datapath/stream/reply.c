/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies. A stream gets replies once, at the end of a burst, in as few packets as possible: every
 * packet with ids carries the state; a packet without ids is sent only if there was none with ids.
 */
#include "reply.h"
#include "text_port.h"

void
tokd_reply_refuse(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, enum tokd_reason reason)
{
	const struct tokd_rep rep = {
		.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = TOKD_F_FAIL,
		.epoch = req->epoch,
		.vocab = w->vocab[0].checksum,
		.stream_id = req->stream_id,
		.reason = reason,
	};

	if (unlikely(tokd_text_peer(w, peer))) {
		tokd_text_refuse(w, peer, reason);
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

/* The client may send packets below next + credit. */
static uint32_t
credit(const struct tokd_stream *s)
{
	if (s->state != TOKD_STREAM_OPEN || s->backpressured)
		return 0;
	if (!(s->flags & TOKD_F_IDS))
		return TOKD_WIRE_WINDOW;
	return RTE_MIN((uint32_t)TOKD_WIRE_WINDOW, tokd_stream_rec_room(s));
}

bool
tokd_reply_send(struct tokd_worker *w, struct tokd_stream *s, uint32_t first, uint32_t count,
	enum tokd_reason reason)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	bool done = s->state == TOKD_STREAM_DONE && reason == TOKD_R_NONE;
	struct tokd_rep rep;

	if (unlikely(m == NULL)) {
		w->counter[C_TX_NO_MBUF]++;
		return false;
	}
	rep = (struct tokd_rep){
		.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = (count > 0 && first == 0 ? TOKD_F_FIRST : 0) | (done ? TOKD_F_DONE : 0) |
			 (count > 0 ? s->flags & TOKD_F_SHORT : 0) |
			 (reason != TOKD_R_NONE ? TOKD_F_FAIL : 0),
		.epoch = s->key.epoch,
		.vocab = s->key.vocab,
		.stream_id = s->key.stream_id,
		.ack = s->next,
		.credit = credit(s),
		.sack = s->held_bits >> 1,
		.first = first,
		.count = count,
		.total = s->total,
		.ids_crc = done ? s->ids_crc : 0,
		.reason = reason,
		.text_end = s->text_end,
	};
	/* tokd_worker_init() has checked the size of mbufs. */
	memcpy(rte_pktmbuf_append(m, sizeof(rep)), &rep, sizeof(rep));
	if (count > 0)
		tokd_reply_ids_put(w, s, first, count, m);
	tokd_net_send(w, m, &s->peer);
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
