/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses which packets to send: lost ones before new ones, text before requests for ids. */
#include <crc32c.h>
#include "engine.h"

static void
push(struct tokd_engine *e, int which, struct slot *s)
{
	struct queue *q = &e->queue[which];
	uint32_t i = slot_index(e, s);

	if (s->link[which].queued)
		return;
	s->link[which] = (struct link){.next = NOBODY, .queued = true};
	if (q->head == NOBODY)
		q->head = i;
	else
		e->slot[q->tail].link[which].next = i;
	q->tail = i;
}

static void
pop(struct tokd_engine *e, int which)
{
	struct slot *s = &e->slot[e->queue[which].head];

	e->queue[which].head = s->link[which].next;
	s->link[which].queued = false;
}

/* Remove a slot from the queue that it waits in. Rare, so a linear search is enough. */
static void
take_out(struct tokd_engine *e, int which, struct slot *s)
{
	struct queue *q = &e->queue[which];
	uint32_t i = slot_index(e, s), before = NOBODY;

	if (!s->link[which].queued)
		return;
	for (uint32_t at = q->head; at != i; at = e->slot[at].link[which].next)
		before = at;
	if (before == NOBODY)
		q->head = s->link[which].next;
	else
		e->slot[before].link[which].next = s->link[which].next;
	if (q->tail == i)
		q->tail = before;
	s->link[which].queued = false;
}

void
engine_queue_text(struct tokd_engine *e, struct slot *s)
{
	if (may_send(s))
		push(e, TEXT, s);
}

void
engine_queue_poll(struct tokd_engine *e, struct slot *s, enum poll_reason reason)
{
	if (reason > s->poll)
		s->poll = reason;
	push(e, POLL, s);
}

void
engine_queue_probe(struct tokd_engine *e, struct slot *s)
{
	uint32_t end;

	if (in_flight(s) == 0)
		return;
	end = s->ack + 64 - (uint32_t)__builtin_clzll(flying(s));
	if (s->ack < s->probe && s->probe <= end)
		return; /* a `probe` above `end`: its packets were lost, ask again */
	s->probe = end;
	engine_queue_poll(e, s, POLL_STATE);
}

void
engine_dequeue(struct tokd_engine *e, struct slot *s)
{
	take_out(e, TEXT, s);
	take_out(e, POLL, s);
	s->poll = POLL_NONE;
}

static struct tokd_req
header(const struct tokd_engine *e, uint8_t type, uint64_t stream_id, uint32_t ids_ack)
{
	return (struct tokd_req){
		.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = type,
		.epoch = e->config.epoch,
		.vocab = e->config.vocab,
		.stream_id = stream_id,
		.ids_ack = ids_ack,
		.cookie = e->cookie,
	};
}

static void
tell(struct slot *s, uint64_t now)
{
	s->told = to_ack(s);
	s->told_at = now;
	s->unacked = s->untold = 0;
}

/* The same in all packets of a stream. */
static uint16_t
flags_of(const struct tokd_request *r)
{
	uint16_t flags = streams(r) ? TOKD_F_STREAM : 0;

	if (r->ids != NULL)
		flags |= TOKD_F_IDS;
	if (id_bytes(r) > 1)
		return flags | (r->ids != NULL ? TOKD_F_SHORT : 0);
	return flags | (generates(r) ? TOKD_F_GENERATE : TOKD_F_DECODE) |
	       (r->flags & TOKD_REQUEST_SKIP_SPECIAL ? TOKD_F_SKIP_SPECIAL : 0);
}

static void
build(struct tokd_engine *e, struct slot *s, uint32_t packet, struct tokd_packet *p, uint64_t now)
{
	const struct tokd_request *r = s->r;
	uint32_t offset = packet * s->payload;
	bool last = packet == s->n - 1;
	struct sent *sent = sent_of(s, packet);
	bool again = packet != s->next;

	p->text = (const uint8_t *)r->text + offset;
	p->len = last ? (uint32_t)r->len - offset : s->payload;
	p->req = header(e, TOKD_DATA, s->stream_id, to_ack(s));
	p->req.flags = flags_of(r) | (packet == 0 ? TOKD_F_FIRST : 0) | (last ? TOKD_F_LAST : 0);
	p->req.packet = packet;
	p->req.offset = offset;
	p->req.length = p->len;
	p->req.reply_max = e->config.reply_max;
	if (!again) {
		s->text_crc = tokd_crc32c(s->text_crc, p->text, p->len);
		s->next++;
	}
	p->req.text_crc = last ? s->text_crc : 0;
	p->req.limit = last && generates(r) ? r->limit : 0;
	sent->order = ++s->order;
	if (again)
		engine_time_none(s); /* the answer may be that to the first one */
	sent->at = now;
	tell(s, now);
}

static uint32_t
packets_of(
	struct tokd_engine *e, struct slot *s, struct tokd_packet *out, uint32_t max, uint64_t now)
{
	uint32_t n = 0;

	while (n < max && e->flight < e->window && may_send(s)) {
		uint64_t lost = s->lost & low_bits(s->limit - s->ack);
		uint32_t packet = s->next;

		if (lost != 0) {
			packet = s->ack + (uint32_t)__builtin_ctzll(lost);
			s->lost &= ~(lost & -lost);
			s->r->retransmits++;
			e->stats.retransmits++;
		}
		build(e, s, packet, &out[n++], now);
		e->flight++;
		e->turn++;
	}
	if (n > 0) {
		if (e->moved_at == 0)
			e->moved_at = now;
		s->moved_at = counts_from(s, now);
		s->held_at = 0;
		s->started = true;
		engine_time_wait(e, s, now);
	}
	return n;
}

/* Up to the first early range, or all. */
uint32_t
engine_missing_end(const struct slot *s)
{
	uint32_t end = s->final ? s->final_total : 0;

	if (s->n_early > 0)
		return s->early[0].first;
	if (generates(s->r))
		end = s->r->total < room_end(s->r) ? s->r->total : (uint32_t)room_end(s->r);
	return end > s->have ? end : 0;
}

static uint32_t
polls(struct tokd_engine *e, struct tokd_packet *out, uint32_t max, uint64_t now)
{
	uint32_t n = 0;

	while (n < max && e->queue[POLL].head != NOBODY) {
		struct slot *s = &e->slot[e->queue[POLL].head];
		enum poll_reason reason = s->poll;

		pop(e, POLL);
		s->poll = POLL_NONE;
		if (reason == POLL_ACK && s->told == to_ack(s))
			continue; /* a packet of text has acknowledged them meanwhile */
		tell(s, now);
		out[n] = (struct tokd_packet){.req = header(e, TOKD_POLL, s->stream_id, s->told)};
		if (s->cancels > 0) {
			out[n].req.flags = TOKD_F_CANCEL;
		} else if (reason == POLL_ASK) {
			out[n].req.ids_end = engine_missing_end(s);
			s->r->asks++;
		}
		n++;
	}
	return n;
}

bool
tokd_engine_owes(const struct tokd_engine *e)
{
	return e->queue[POLL].head != NOBODY;
}

static uint32_t
last_acks(struct tokd_engine *e, struct tokd_packet *out, uint32_t max)
{
	uint32_t n = 0;

	for (; n < max && e->n_last_acks > 0; n++, e->n_last_acks--) {
		const struct last_ack *ack = &e->last_acks[e->first_last_ack];

		out[n] =
			(struct tokd_packet){.req = header(e, TOKD_POLL, ack->stream_id, ack->ids)};
		out[n].req.flags = ack->cancels ? TOKD_F_CANCEL : 0;
		e->first_last_ack = (e->first_last_ack + 1) % e->config.requests;
	}
	return n;
}

/* The window may hold back the first text. When it has had its turn, the next one is first. */
static void
wait_for_window(struct tokd_engine *e)
{
	struct slot *s;

	e->limited = e->queue[TEXT].head != NOBODY && e->flight >= e->window;
	if (!e->limited)
		return;
	s = &e->slot[e->queue[TEXT].head];
	engine_queue_probe(e, s);
	if (e->turn < TURN)
		return;
	pop(e, TEXT);
	push(e, TEXT, s);
	e->turn = 0;
}

uint32_t
tokd_engine_packets(struct tokd_engine *e, struct tokd_packet *out, uint32_t max, uint64_t now)
{
	uint32_t n = 0, n_text;

	e->now = now;
	while (n < max && e->queue[TEXT].head != NOBODY) {
		struct slot *s = &e->slot[e->queue[TEXT].head];

		n += packets_of(e, s, out + n, max - n, now);
		if (may_send(s))
			break; /* no room in `out`, or too many packets in flight */
		pop(e, TEXT);
		e->turn = 0;
	}
	n_text = n;
	wait_for_window(e);
	n += polls(e, out + n, max - n, now);
	n += last_acks(e, out + n, max - n);
	e->stats.polls += n - n_text;
	return n;
}

void
tokd_engine_unsent(struct tokd_engine *e, const struct tokd_packet *p)
{
	uint64_t i = (p->req.stream_id - e->config.first_stream_id) % e->config.requests;
	struct slot *s = &e->slot[i];

	if ((s->r == NULL && s->cancels == 0) || s->stream_id != p->req.stream_id) {
		if (p->req.flags & TOKD_F_CANCEL)
			engine_owe_cancel(e, p->req.stream_id, p->req.ids_ack);
		return; /* the last acknowledgement is no longer needed */
	}
	if (p->req.type == TOKD_POLL) {
		engine_queue_poll(e, s, POLL_ASK);
		return;
	}
	if (s->r == NULL)
		return; /* cancelled meanwhile */
	e->flight -= in_flight(s);
	s->lost |= UINT64_C(1) << (p->req.packet - s->ack);
	e->flight += in_flight(s);
	engine_queue_text(e, s);
}
