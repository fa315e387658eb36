/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of the protocol: validates them, finds the stream, feeds or holds the text. Each check
 * names its rule of doc/reference/protocol.md.
 */
#include "cookie.h"
#include "generate.h"
#include "refused.h"
#include "reply.h"
#include "stream.h"
#include "text_port.h"

/* The packets of a text that lacks a right cookie come together: one of them is answered. */
#define VALIDATE_PER_SECOND 100

static void
refuse(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, enum tokd_counter counter, enum tokd_reason reason)
{
	w->counter[counter]++;
	tokd_reply_refuse(w, m, req, peer, reason);
}

/* Refuse a packet that was counted as received for a stream: the reply counts, too. */
static void
refuse_of(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m,
	const struct tokd_req *req, const struct tokd_peer *peer, enum tokd_reason reason)
{
	s->replied += sizeof(struct tokd_rep);
	tokd_reply_refuse(w, m, req, peer, reason);
}

static void
received(struct tokd_stream *s, const struct rte_mbuf *m, const struct tokd_req *req)
{
	s->received += rte_pktmbuf_pkt_len(m);
	if (unlikely(req->cookie != 0))
		s->cookie = req->cookie;
}

/*
 * Is a packet of a text with a mode, or with a field that others do not use, well-formed? To
 * decode: the ids of all packets together are whole. To generate: the answer is for the client, and
 * the last packet says how long it may be.
 */
static __rte_noinline bool
is_of_mode(const struct tokd_req *req)
{
	const bool last = req->flags & TOKD_F_LAST;

	if ((req->flags & TOKD_F_SHORT) || req->reserved != 0)
		return false;
	switch (req->flags & (TOKD_F_DECODE | TOKD_F_GENERATE)) {
	case TOKD_F_DECODE:
		return req->limit == 0 && (!last || (req->offset + req->length) % 4 == 0);
	case TOKD_F_GENERATE:
		return (req->flags & TOKD_F_IDS) && last == (req->limit > 0) &&
		       req->limit <= TOKD_GENERATE_MOST;
	default:
		return false;
	}
}

/*
 * Validates a DATA packet, without its stream, or with one (rule 3). TOKD_R_NONE: valid, and
 * offset + length is at most max_text.
 */
static enum tokd_reason
data_fault(const struct tokd_worker *w, const struct tokd_stream *s, const struct rte_mbuf *m,
	const struct tokd_req *req)
{
	const uint16_t mode = req->flags & TOKD_STREAM_MODE;
	bool first = req->flags & TOKD_F_FIRST;

	if (req->length != rte_pktmbuf_pkt_len(m) - sizeof(*req))
		return TOKD_R_LENGTH;
	if (first != (req->packet == 0))
		return TOKD_R_LENGTH;
	/* Later versions may use these. */
	if (req->flags & ~(TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS | TOKD_F_STREAM | TOKD_F_SHORT |
				 TOKD_STREAM_MODE))
		return TOKD_R_LENGTH;
	if (unlikely((mode | req->limit | req->reserved) != 0) && !is_of_mode(req))
		return TOKD_R_LENGTH;
	if (s != NULL && unlikely((s->flags & TOKD_STREAM_MODE) != mode))
		return TOKD_R_LENGTH;
	/* Empty packets would make no progress. */
	if (req->length == 0 && !(req->flags & (TOKD_F_FIRST | TOKD_F_LAST)))
		return TOKD_R_LENGTH;
	if ((uint64_t)req->offset + req->length > (s != NULL ? s->max_text : w->terms->max_text))
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

/* A packet that is next has precedence over one that waits for it. */
static void
drop_latest(struct tokd_worker *w, struct tokd_stream *s)
{
	const uint32_t i = s->held_bits == 0 ? 0 : 63 - (uint32_t)__builtin_clzll(s->held_bits);

	if (i == 0)
		return;
	s->held_bits &= ~(UINT64_C(1) << i);
	tokd_held_free(w, s, s->held[(s->next + i) % TOKD_WIRE_WINDOW].m);
	tokd_held_count(w, s);
	w->counter[C_DROP_HELD]++;
}

/*
 * Rule 5: an early packet is held in its mbuf; so is one that waits. Early ones leave half of the
 * room to those that they wait for. False: it was dropped.
 */
static bool
hold(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m, uint32_t packet)
{
	const struct tokd_flow *f = &s->source->flow;
	const bool early = packet != s->next && (s->held_bits & 1) == 0;

	if (unlikely(w->n_held + m->nb_segs > w->held_max / 2) && !tokd_reply_is_validated(w, s)) {
		tokd_drop(w, m, C_DROP_HELD);
		if (!tokd_text_peer(w, &s->peer))
			tokd_reply_send(w, s, 0, 0, TOKD_R_VALIDATE);
		return false;
	}
	if (packet == s->next && tokd_held_room(w, f) < m->nb_segs)
		drop_latest(w, s);
	if (tokd_held_room(w, f) < m->nb_segs + (early && w->drr.shared ? f->held : 0)) {
		tokd_drop(w, m, C_DROP_HELD);
		return false;
	}
	s->held[packet % TOKD_WIRE_WINDOW] = (struct tokd_held){.m = m, .t_rx = w->t_burst};
	s->held_bits |= UINT64_C(1) << (packet - s->next);
	w->n_held += m->nb_segs;
	s->source->flow.held += m->nb_segs;
	tokd_held_count(w, s);
	return true;
}

/*
 * A cut in the text costs about as much as 300 bytes of it, so packets in order wait for those of
 * the same burst that continue them. False: feed it now.
 */
static bool
gather_packet(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m,
	const struct tokd_req *req)
{
	const uint64_t before = (UINT64_C(1) << (req->packet - s->next)) - 1;

	if (s->held_bits != before || m->nb_segs > 1 || s->deferred)
		return false;
	if (!s->gathered) {
		if (w->n_follow == 0 || (req->flags & TOKD_F_LAST) ||
			tokd_held_room(w, &s->source->flow) < 2 * TOKD_BURST)
			return false;
		s->gathered = true;
		w->gathered[w->n_gathered++] = s;
	}
	hold(w, s, m, req->packet);
	return true;
}

/*
 * Its client asks while packet `next` is held: since the ring was full, or until its source's turn.
 * Then the client need not send it again: a credit of 0 tells it to wait.
 */
static void
feed_again(struct tokd_worker *w, struct tokd_stream *s)
{
	if (s->deferred)
		s->told_to_wait = true;
	else
		tokd_stream_feed_held(w, s);
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
		feed_again(w, s);
		return;
	}
	if (gather_packet(w, s, m, req))
		return;
	if (unlikely(ahead > 0)) {
		const uint64_t before = (UINT64_C(1) << ahead) - 1;
		const bool missing = (s->held_bits & before) != before; /* else they wait as well */

		s->due |= missing; /* report it */
		if (hold(w, s, m, req->packet))
			w->counter[C_RX_REORDERED] += missing;
		else
			s->due = true;
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
		w->counter[C_DROP_OVER]++;
		refuse_of(w, s, m, req, peer, TOKD_R_ID_REUSED);
		return;
	}
	tokd_drop(w, m, C_DROP_OVER);
	s->due = true;
}

static bool
too_much_waits(const struct tokd_worker *w, struct tokd_source *source)
{
	struct tokd_flow *f = &source->flow;
	const uint32_t room = tokd_held_room(w, f);
	uint64_t most = w->delay_most;

	if (likely(!w->drr.shared))
		return unlikely(f->state != TOKD_FLOW_IDLE && room == 0);
	/* Forged texts would take all of the wait: half of it is kept for validated sources. */
	if (!source->validated)
		most /= 2;
	/* Half of the room is for texts that have begun. */
	return unlikely(room < f->held || tokd_drr_delay(&w->drr, f) > most);
}

/*
 * A new text of a source of which too much waits is refused once: not accepted and left to time
 * out. True: m was taken.
 */
static bool
turn_away(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, struct tokd_source *source)
{
	uint64_t ticks, name;
	uint32_t ms;

	if (likely(!too_much_waits(w, source)))
		return false;
	name = tokd_refused_name(w, req, peer);
	if (req->packet > 0 && tokd_refused_have(w, name)) {
		tokd_drop(w, m, C_DROP_BACKLOG);
		return true;
	}
	if (!source->validated) {
		if (!tokd_cookie_check(w, peer, req->cookie)) {
			/* Forged ones must not push out those that were told BUSY. */
			if (!tokd_refused_other(w, name))
				tokd_refused_put(
					w, name, w->t_burst + w->tsc_hz / VALIDATE_PER_SECOND);
			refuse(w, m, req, peer, C_DROP_VALIDATE, TOKD_R_VALIDATE);
			return true;
		}
		tokd_source_validate(w, source);
		if (!too_much_waits(w, source))
			return false;
	}
	ticks = tokd_drr_retry(&w->drr, &source->flow, w->tsc_hz);
	ms = (uint32_t)(ticks * 1000 / w->tsc_hz) + 1;
	tokd_refused_put(w, name, w->t_burst + ms * w->tsc_hz / 1000);
	w->counter[C_DROP_BACKLOG]++;
	tokd_reply_busy(w, m, req, peer, ms);
	return true;
}

/* A text that needs a right cookie, and a prompt an engine. False: m was taken. */
static __rte_noinline bool
admit(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, const struct tokd_vocab *vocab)
{
	if ((req->flags & TOKD_F_GENERATE) && !tokd_generate_can(w, vocab)) {
		refuse(w, m, req, peer, C_DROP_SINK, TOKD_R_SINK);
		return false;
	}
	if (!tokd_cookie_check(w, peer, req->cookie)) {
		refuse(w, m, req, peer, C_DROP_VALIDATE, TOKD_R_VALIDATE);
		return false;
	}
	return true;
}

/* Rule 2. NULL: refused. */
static struct tokd_stream *
begin(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, const struct tokd_stream_key *key,
	const struct tokd_vocab *vocab)
{
	/* Streams are scarce, or an answer may be much longer than its prompt. */
	const bool strict =
		tokd_streams_are_scarce(w->streams) | ((req->flags & TOKD_F_GENERATE) != 0);
	struct tokd_source *source;
	enum tokd_reason why;
	struct tokd_stream *s;

	if (req->packet >= TOKD_WIRE_WINDOW) {
		refuse(w, m, req, peer, C_DROP_UNKNOWN, TOKD_R_UNKNOWN);
		return NULL;
	}
	if (unlikely(w->stopping != TOKD_RUN)) {
		refuse(w, m, req, peer, C_DROP_SHUTDOWN, TOKD_R_SHUTDOWN);
		return NULL;
	}
	if (unlikely(strict) && !admit(w, m, req, peer, vocab))
		return NULL;
	source = tokd_source_of(w, &key->addr);
	if (unlikely(strict))
		tokd_source_validate(w, source);
	if (unlikely(turn_away(w, m, req, peer, source)))
		return NULL;
	s = tokd_stream_open(w, source, key, vocab, req->flags, &why);
	if (unlikely(s == NULL)) {
		if (why == TOKD_R_BUSY)
			tokd_reply_busy(w, m, req, peer, tokd_share_retry_ms(w, source));
		else
			refuse(w, m, req, peer, C_DROP_REPEAT, why);
		return NULL;
	}
	tokd_refused_forget(w, req, peer);
	s->peer = *peer;
	s->reply_room = tokd_reply_room(w, req, &peer->addr);
	s->validated = strict;
	return s;
}

/* `s`: the packet's stream, or NULL: then `vocab` is that of a new one. */
static void
data(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, const struct tokd_stream_key *key,
	const struct tokd_vocab *vocab)
{
	enum tokd_reason fault = data_fault(w, s, m, req);
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
		s = begin(w, m, req, peer, key, vocab);
		if (s == NULL)
			return;
	}
	received(s, m, req);
	tokd_stream_touch(w, s);
	before = tokd_stream_progress(s);
	switch (s->state) {
	case TOKD_STREAM_OPEN:
		tokd_stream_ids_ack(w, s, req->ids_ack);
		data_for_open(w, s, m, req);
		tokd_stream_touch(w, s); /* feeding may have flushed replies */
		if (tokd_stream_progress(s) != before)
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
poll(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer)
{
	uint64_t before;

	if (unlikely(req->length != 0 || rte_pktmbuf_pkt_len(m) != sizeof(*req))) {
		refuse(w, m, req, peer, C_DROP_LENGTH, TOKD_R_LENGTH);
		return;
	}
	if (unlikely(s == NULL)) {
		refuse(w, m, req, peer, C_DROP_UNKNOWN,
			w->stopping != TOKD_RUN ? TOKD_R_SHUTDOWN : TOKD_R_UNKNOWN);
		return;
	}
	received(s, m, req);
	s->due = true;
	tokd_stream_touch(w, s);
	before = tokd_stream_progress(s);
	if (s->state != TOKD_STREAM_FAILED) {
		tokd_stream_ids_ack(w, s, req->ids_ack);
		s->flush |= req->ids_end > s->sent; /* or an earlier POLL of this burst */
	}
	if (unlikely(req->flags & TOKD_F_CANCEL))
		tokd_generate_cancel(w, s);
	if (s->state == TOKD_STREAM_OPEN) {
		if (s->held_bits & 1)
			feed_again(w, s);
		else if (s->backpressured || s->no_lane)
			tokd_stream_probe(w, s);
		tokd_stream_touch(w, s);
	}
	if (s->state != TOKD_STREAM_OPEN || tokd_stream_progress(s) != before)
		tokd_stream_renew(w, s);
	if (s->state != TOKD_STREAM_FAILED && !tokd_reply_again(w, s, req->ids_ack, req->ids_end)) {
		if (s->state == TOKD_STREAM_OPEN) {
			tokd_stream_fail(w, s, TOKD_R_EXPIRED);
		} else {
			refuse_of(w, s, m, req, peer, TOKD_R_EXPIRED);
			s->due = false;
			return;
		}
	}
	rte_pktmbuf_free(m);
}

/* By checksum; 0: the default. NULL: not loaded. */
static const struct tokd_vocab *
find_vocab(const struct tokd_terms *t, uint32_t checksum)
{
	if (likely(checksum == 0))
		return &t->vocab[0];
	for (uint32_t i = 0; i < t->n_vocabs; i++) {
		if (t->vocab[i].checksum == checksum)
			return &t->vocab[i];
	}
	return NULL;
}

static void
work_on(struct tokd_worker *w, const struct tokd_arrival *a)
{
	const struct tokd_peer *peer = &a->peer;
	const struct tokd_req *req = &a->req;
	const struct tokd_vocab *vocab = NULL;
	struct tokd_stream *s = tokd_stream_find(w, a);

	/*
	 * Rule 12: an observer with another MAC cannot read the ids, acknowledge them, or end the
	 * stream.
	 */
	if (s != NULL && unlikely(!rte_is_same_ether_addr(&s->peer.mac, &peer->mac))) {
		const bool begun = s->next > 0 || s->state != TOKD_STREAM_OPEN;

		if (begun && (req->type != TOKD_DATA || req->packet != 0)) {
			refuse(w, a->m, req, peer, C_DROP_MAC, TOKD_R_EXPIRED);
			return;
		}
		s = NULL; /* each may begin its own: the first does not keep the client out */
	}
	if (s == NULL) {
		vocab = find_vocab(w->terms, req->vocab);
		if (unlikely(vocab == NULL)) {
			refuse(w, a->m, req, peer, C_DROP_VOCAB, TOKD_R_VOCAB);
			return;
		}
	}
	if (req->type == TOKD_DATA)
		data(w, s, a->m, req, peer, &a->key, vocab);
	else
		poll(w, s, a->m, req, peer);
}

void
tokd_stream_rx_waiting(struct tokd_worker *w)
{
	struct tokd_arrival *a = &w->streams->arrival[w->streams->waits];

	if (a->m == NULL)
		return;
	work_on(w, a);
	a->m = NULL;
}

bool
tokd_refused_follows_now(
	struct tokd_worker *w, const struct rte_mbuf *m, uint32_t off, const struct tokd_peer *peer)
{
	struct tokd_req req;

	if (rte_pktmbuf_data_len(m) < off + sizeof(req))
		return false;
	memcpy(&req, rte_pktmbuf_mtod_offset(m, const void *, off), sizeof(req));
	if (req.packet == 0 || req.type != TOKD_DATA || req.magic != TOKD_WIRE_MAGIC)
		return false;
	tokd_stream_rx_waiting(w);
	return tokd_refused_have(w, tokd_refused_name(w, &req, peer));
}

/*
 * Rule 1. Other protocols get no reply, nor does a REPLY of whatever version: nobody can make two
 * services loop.
 */
static void
not_ours(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer)
{
	if (req->magic != TOKD_WIRE_MAGIC || req->type == TOKD_REPLY ||
		req->version == TOKD_WIRE_VERSION)
		tokd_drop(w, m, C_DROP_MAGIC);
	else
		refuse(w, m, req, peer, C_DROP_VERSION, TOKD_R_VERSION);
}

void
tokd_stream_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer)
{
	struct tokd_streams *t = w->streams;
	struct tokd_arrival *a = &t->arrival[t->waits ^ 1];
	struct tokd_req req;

	if (unlikely(rte_pktmbuf_data_len(m) < sizeof(req))) {
		tokd_drop(w, m, C_DROP_MAGIC);
		return;
	}
	req = tokd_req_read(m);
	if (unlikely(req.magic != TOKD_WIRE_MAGIC || req.version != TOKD_WIRE_VERSION ||
		     (req.type != TOKD_DATA && req.type != TOKD_POLL))) {
		not_ours(w, m, &req, peer);
		return;
	}
	*a = (struct tokd_arrival){.m = m,
		.peer = *peer,
		.req = req,
		.key = {.addr = peer->addr,
			.stream_id = req.stream_id,
			.epoch = req.epoch,
			.vocab = req.vocab,
			.port = peer->port,
			.our_port = peer->our_port}};
	tokd_stream_look_up(t, a);
	tokd_stream_rx_waiting(w);
	t->waits ^= 1;
}
