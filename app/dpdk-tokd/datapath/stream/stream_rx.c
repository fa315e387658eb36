/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of the protocol: validates them, finds the stream, feeds or holds the text. Each check
 * names its rule of doc/reference/protocol.md.
 */
#include "reply.h"
#include "stream.h"

static void
refuse(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, enum tokd_counter counter, enum tokd_reason reason)
{
	w->counter[counter]++;
	tokd_reply_refuse(w, m, req, peer, reason);
}

/* Increases only by useful packets: others must not keep a stream open for ever. */
static uint64_t
progress(const struct tokd_stream *s)
{
	return (uint64_t)s->text_end + s->next + s->ids_ack;
}

/*
 * Validates a DATA packet without its stream (rule 3). TOKD_R_NONE: valid, and offset + length is
 * at most max_text.
 */
static enum tokd_reason
data_fault(const struct tokd_worker *w, const struct rte_mbuf *m, const struct tokd_req *req)
{
	bool first = req->flags & TOKD_F_FIRST;

	if (req->length != rte_pktmbuf_pkt_len(m) - sizeof(*req))
		return TOKD_R_LENGTH;
	if (first != (req->packet == 0))
		return TOKD_R_LENGTH;
	/* Later versions may use these. */
	if (req->flags &
			~(TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS | TOKD_F_STREAM | TOKD_F_SHORT) ||
		(req->reserved[0] | req->reserved[1] | req->reserved[2] | req->reserved[3]) != 0)
		return TOKD_R_LENGTH;
	/* Empty packets would make no progress. */
	if (req->length == 0 && !(req->flags & (TOKD_F_FIRST | TOKD_F_LAST)))
		return TOKD_R_LENGTH;
	if ((uint64_t)req->offset + req->length > w->opt->max_text)
		return TOKD_R_TEXT_TOO_LONG;
	return TOKD_R_NONE;
}

/* Rule 7: no packet after LAST. For packets not below `next`. */
static bool
beyond_last(const struct tokd_stream *s, const struct tokd_req *req)
{
	if (s->last != TOKD_NO_PACKET && req->packet > s->last)
		return true;
	if (!(req->flags & TOKD_F_LAST))
		return false;
	if (s->last != TOKD_NO_PACKET && req->packet != s->last)
		return true;
	return s->held_bits != 0 &&
	       req->packet < s->next + 63 - (uint32_t)__builtin_clzll(s->held_bits);
}

/* Rule 5: an early packet is held in its mbuf; so is one that waits. False: it was dropped. */
static bool
hold(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m, uint32_t packet)
{
	if (w->n_held + m->nb_segs > w->held_max) {
		tokd_drop(w, m, C_DROP_HELD);
		return false;
	}
	s->held[packet % TOKD_WIRE_WINDOW] = (struct tokd_held){.m = m, .t_rx = w->t_burst};
	s->held_bits |= UINT64_C(1) << (packet - s->next);
	w->n_held += m->nb_segs;
	return true;
}

/*
 * A cut in the text costs about as much as 500 bytes of it, so packets in order wait for those of
 * the same burst that continue them. False: feed it now.
 */
static bool
gather(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m, const struct tokd_req *req)
{
	const uint64_t before = (UINT64_C(1) << (req->packet - s->next)) - 1;

	if (s->held_bits != before || m->nb_segs > 1 || s->deferred)
		return false;
	if (!s->gathered) {
		if (w->n_follow == 0 || (req->flags & TOKD_F_LAST) ||
			w->n_held + TOKD_BURST > w->held_max)
			return false;
		s->gathered = true;
		w->gathered[w->n_gathered++] = s;
	}
	hold(w, s, m, req->packet);
	return true;
}

static void
data_for_open(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m,
	const struct tokd_req *req)
{
	uint32_t ahead = req->packet - s->next;
	enum tokd_feed how;

	if (req->packet < s->next) {
		tokd_drop(w, m, C_RX_DUPLICATE);
		s->due = true;
		return;
	}
	if (unlikely(ahead >= TOKD_WIRE_WINDOW)) {
		tokd_drop(w, m, C_DROP_WINDOW);
		s->due = true;
		return;
	}
	if (unlikely(beyond_last(s, req))) {
		tokd_drop(w, m, C_DROP_LENGTH);
		tokd_stream_fail(w, s, TOKD_R_LENGTH);
		return;
	}
	if (req->flags & TOKD_F_LAST)
		s->last = req->packet;
	if (unlikely((s->held_bits >> ahead) & 1)) {
		tokd_drop(w, m, C_RX_DUPLICATE);
		s->due = true;
		tokd_stream_feed_held(w, s); /* it may be next, and the ring was full */
		return;
	}
	if (gather(w, s, m, req))
		return;
	if (unlikely(ahead > 0)) {
		s->due = true; /* report what is missing */
		w->counter[C_RX_REORDERED] += hold(w, s, m, req->packet);
		return;
	}

	how = tokd_stream_feed(w, s, m, w->t_burst);
	if (unlikely(how == TOKD_FEED_LATER)) {
		if (hold(w, s, m, req->packet))
			tokd_stream_defer(w, s);
		else
			s->due = true;
		return;
	}
	rte_pktmbuf_free(m);
	if (how == TOKD_FED && unlikely(s->held_bits != 0)) {
		s->due = true;
		tokd_stream_feed_held(w, s);
	}
	if (how != TOKD_FED || s->state != TOKD_STREAM_OPEN)
		s->due = true;
}

/* Rule 11: a finished text gets its stored answer again; another text under its id is refused. */
static void
data_for_done(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m,
	const struct tokd_req *req, const struct tokd_peer *peer)
{
	uint32_t end = req->offset + req->length;
	bool same;

	if (req->flags & TOKD_F_LAST)
		same = req->packet == s->last && end == s->text_end && req->text_crc == s->text_crc;
	else
		same = req->packet < s->last && end <= s->text_end;
	if (!same) {
		refuse(w, m, req, peer, C_DROP_OVER, TOKD_R_ID_REUSED);
		return;
	}
	tokd_drop(w, m, C_DROP_OVER);
	s->due = true;
}

static void
data(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, const struct tokd_stream_key *key,
	const struct tokd_vocab *vocab)
{
	enum tokd_reason fault = data_fault(w, m, req);
	struct tokd_stream *s = tokd_stream_find(w, key);
	uint64_t before;

	if (unlikely(fault != TOKD_R_NONE)) {
		/* The refusal says that the text failed. */
		if (s != NULL && s->state == TOKD_STREAM_OPEN)
			tokd_stream_fail(w, s, fault);
		refuse(w, m, req, peer, fault == TOKD_R_LENGTH ? C_DROP_LENGTH : C_DROP_TOO_LONG,
			fault);
		return;
	}
	if (s == NULL) {
		/* Rule 2: only a packet of the first window begins a stream. */
		if (req->packet >= TOKD_WIRE_WINDOW) {
			refuse(w, m, req, peer, C_DROP_UNKNOWN, TOKD_R_UNKNOWN);
			return;
		}
		if (unlikely(w->stopping != TOKD_RUN)) {
			refuse(w, m, req, peer, C_DROP_SHUTDOWN, TOKD_R_SHUTDOWN);
			return;
		}
		s = tokd_stream_open(w, key, vocab, req->flags);
		if (unlikely(s == NULL)) {
			refuse(w, m, req, peer, C_DROP_TABLE_FULL, TOKD_R_BUSY);
			return;
		}
	}
	s->peer = *peer;
	s->again += (uint64_t)TOKD_AGAIN_FACTOR * rte_pktmbuf_pkt_len(m);
	tokd_stream_touch(w, s);
	before = progress(s);
	switch (s->state) {
	case TOKD_STREAM_OPEN:
		tokd_stream_ids_ack(w, s, req->ids_ack);
		data_for_open(w, s, m, req);
		tokd_stream_touch(w, s); /* feeding may have flushed replies */
		if (progress(s) != before)
			tokd_stream_renew(w, s);
		break;
	case TOKD_STREAM_DONE:
		tokd_stream_ids_ack(w, s, req->ids_ack);
		tokd_stream_renew(w, s);
		data_for_done(w, s, m, req, peer);
		break;
	default:
		tokd_stream_renew(w, s);
		tokd_drop(w, m, C_DROP_OVER);
		s->due = true;
		break;
	}
}

/* Rule 10: a POLL is always answered. It acknowledges ids, asks for ids, or asks for credit. */
static void
poll(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, const struct tokd_stream_key *key)
{
	struct tokd_stream *s = tokd_stream_find(w, key);
	uint32_t len = rte_pktmbuf_pkt_len(m);
	uint64_t before;

	if (unlikely(req->length != 0 || len != sizeof(*req))) {
		refuse(w, m, req, peer, C_DROP_LENGTH, TOKD_R_LENGTH);
		return;
	}
	if (unlikely(s == NULL)) {
		refuse(w, m, req, peer, C_DROP_UNKNOWN, TOKD_R_UNKNOWN);
		return;
	}
	s->peer = *peer;
	s->again += (uint64_t)TOKD_AGAIN_FACTOR * len;
	s->due = true;
	tokd_stream_touch(w, s);
	before = progress(s);
	if (s->state != TOKD_STREAM_FAILED) {
		tokd_stream_ids_ack(w, s, req->ids_ack);
		s->flush |= req->ids_end > s->sent; /* or an earlier POLL of this burst */
	}
	if (s->state == TOKD_STREAM_OPEN) {
		if (s->held_bits & 1)
			tokd_stream_feed_held(w, s);
		else if (s->backpressured)
			tokd_stream_probe(w, s);
		tokd_stream_touch(w, s);
	}
	if (s->state != TOKD_STREAM_OPEN || progress(s) != before)
		tokd_stream_renew(w, s);
	if (s->state != TOKD_STREAM_FAILED && !tokd_reply_again(w, s, req->ids_ack, req->ids_end)) {
		if (s->state == TOKD_STREAM_OPEN) {
			tokd_stream_fail(w, s, TOKD_R_EXPIRED);
		} else {
			tokd_reply_refuse(w, m, req, peer, TOKD_R_EXPIRED);
			s->due = false;
			return;
		}
	}
	rte_pktmbuf_free(m);
}

/* By checksum; 0: the default. NULL: not loaded. */
static const struct tokd_vocab *
find_vocab(const struct tokd_worker *w, uint32_t checksum)
{
	if (likely(checksum == 0))
		return &w->vocab[0];
	for (uint32_t i = 0; i < w->n_vocabs; i++) {
		if (w->vocab[i].checksum == checksum)
			return &w->vocab[i];
	}
	return NULL;
}

void
tokd_stream_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer)
{
	const struct tokd_vocab *vocab;
	struct tokd_stream_key key;
	struct tokd_req req;

	/* Rule 1: other protocols get no reply, so that nobody can make two services loop. */
	if (unlikely(rte_pktmbuf_data_len(m) < sizeof(req))) {
		tokd_drop(w, m, C_DROP_MAGIC);
		return;
	}
	req = tokd_req_read(m);
	if (unlikely(req.magic != TOKD_WIRE_MAGIC ||
		     (req.type != TOKD_DATA && req.type != TOKD_POLL))) {
		tokd_drop(w, m, C_DROP_MAGIC);
		return;
	}
	if (unlikely(req.version != TOKD_WIRE_VERSION)) {
		refuse(w, m, &req, peer, C_DROP_VERSION, TOKD_R_VERSION);
		return;
	}
	vocab = find_vocab(w, req.vocab);
	if (unlikely(vocab == NULL)) {
		refuse(w, m, &req, peer, C_DROP_VOCAB, TOKD_R_VOCAB);
		return;
	}
	key = (struct tokd_stream_key){.addr = peer->addr,
		.stream_id = req.stream_id,
		.epoch = req.epoch,
		.vocab = vocab->checksum,
		.port = peer->port,
		.our_port = peer->our_port};
	if (req.type == TOKD_DATA)
		data(w, m, &req, peer, &key, vocab);
	else
		poll(w, m, &req, peer, &key);
}
