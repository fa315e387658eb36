/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles a datagram: whether it is a reply, of which request, and its consequences. */
#include <string.h>

#include "engine.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers and ids are used as they come");

/* Of an id in a reply, of text or an answer. 0: it cannot be two of these. */
static size_t
bytes_each(const struct tokd_rep *rep)
{
	switch (rep->flags & (TOKD_F_SHORT | TOKD_F_DECODE | TOKD_F_GENERATE)) {
	case 0:
		return sizeof(uint32_t);
	case TOKD_F_SHORT:
		return sizeof(uint16_t);
	case TOKD_F_DECODE:
	case TOKD_F_GENERATE:
		return 1;
	default:
		return 0;
	}
}

/* Of all versions: the appliance does not speak ours. */
static bool
is_of_versions(const struct tokd_rep *rep, size_t len)
{
	return rep->magic == TOKD_WIRE_MAGIC && rep->type == TOKD_REPLY &&
	       (rep->flags & TOKD_F_FAIL) && rep->reason == TOKD_R_VERSION && len == sizeof(*rep);
}

/* Validate the header and the number of ids; its fields must not contradict each other. */
static bool
is_reply(const struct tokd_rep *rep, size_t len)
{
	const size_t each = bytes_each(rep);

	return rep->magic == TOKD_WIRE_MAGIC && rep->version == TOKD_WIRE_VERSION &&
	       rep->type == TOKD_REPLY && each > 0 && len == sizeof(*rep) + each * rep->count &&
	       rep->credit <= TOKD_WIRE_WINDOW &&
	       (rep->count == 0 || (uint64_t)rep->first + rep->count <= rep->total);
}

/*
 * Text for ids, ids for text, and an answer for all of a prompt. Ids that are wanted have a number.
 * If all was fed, all has ack.
 */
static bool
is_consistent(const struct slot *s, const struct tokd_rep *rep)
{
	const bool text = rep->flags & TOKD_F_DECODE, made = rep->flags & TOKD_F_GENERATE;

	if (rep->count > 0 && text != !!(s->r->flags & TOKD_REQUEST_DECODE))
		return false;
	if (rep->count > 0 && made != generates(s->r))
		return false;
	if (generates(s->r) && rep->total > 0 && rep->ack != s->n)
		return false;
	if ((rep->flags & TOKD_F_UNCOUNTED) && s->r->ids != NULL)
		return false;
	return !(rep->flags & TOKD_F_DONE) || (rep->ack == s->n && rep->text_end == s->r->len);
}

static struct slot *
slot_of(struct tokd_engine *e, const struct tokd_rep *rep)
{
	uint64_t i = (rep->stream_id - e->config.first_stream_id) % e->config.requests;
	struct slot *s = &e->slot[i];

	return (s->r != NULL || s->cancels > 0) && !s->pausing && s->stream_id == rep->stream_id &&
			       rep->epoch == e->config.epoch
		       ? s
		       : NULL;
}

/*
 * As long as BUSY says, and up to 1.05 ms more at random: retry_ms is in whole ms, and texts that
 * always came after the same others would always be refused. If BUSY gives no time, the pause
 * doubles at each refusal.
 */
static uint64_t
pause_of(const struct slot *s, const struct tokd_rep *rep, uint64_t now)
{
	const uint64_t told = rep->retry_ms * NS_A_MS;
	const uint32_t times = s->resends < 16 ? s->resends : 16;

	if (rep->reason == TOKD_R_BUSY && rep->retry_ms > 0)
		return (told < BUSY_MOST ? told : BUSY_MOST) + (at_random(s, now) >> 12);
	return BUSY_PAUSE > BUSY_MOST >> times ? BUSY_MOST : BUSY_PAUSE << times;
}

/*
 * The stream ended without the complete ids: send the text again under a new stream id. After BUSY
 * under the same: packets that followed the refused one may have begun it.
 */
static void
again(struct tokd_engine *e, struct slot *s, const struct tokd_rep *rep, uint64_t now)
{
	const bool pause = rep->reason == TOKD_R_BUSY || rep->reason == TOKD_R_SHARE ||
			   rep->reason == TOKD_R_SHUTDOWN;

	e->stats.resends++;
	e->flight -= in_flight(s);
	engine_dequeue(e, s);
	if (s->before < s->next)
		s->before = s->next;
	if (rep->reason != TOKD_R_BUSY)
		s->before = 0;
	s->next = s->ack = 0;
	if (rep->reason != TOKD_R_BUSY)
		s->stream_id += e->config.requests;
	s->moved_at = e->moved_at = now;
	if (pause) {
		s->pausing = true;
		engine_time_set(e, s, now + pause_of(s, rep, now));
	} else {
		engine_begin(e, s);
		engine_time_wait(e, s, now);
	}
	s->resends++;
	s->r->resends++;
}

/*
 * The appliance asks for the cookie before it takes the text, or before it goes on with a stream.
 * Packets sent before may have asked for the same VALIDATE.
 */
static void
validate(struct tokd_engine *e, struct slot *s, const struct tokd_rep *rep, uint64_t now)
{
	if (rep->cookie == s->cookie)
		return;
	if (s->validated++ == VALIDATES_MAX) {
		s->r->reason = TOKD_R_VALIDATE;
		engine_finish(e, s, TOKD_E_REFUSED);
		return;
	}
	e->cookie = s->cookie = rep->cookie;
	s->moved_at = e->moved_at = now;
	s->held_at = 0;
	s->known = s->known || rep->ack > 0;
	if (s->known) {
		engine_queue_poll(e, s, POLL_ASK);
	} else {
		e->flight -= in_flight(s);
		engine_dequeue(e, s);
		if (s->before < s->next)
			s->before = s->next;
		engine_begin(e, s);
	}
	engine_time_wait(e, s, now);
}

/* BUSY and SHUTDOWN are no failure until they last as long as a request may make no progress. */
static bool
may_try_again(const struct tokd_engine *e, struct slot *s, uint32_t reason, uint64_t now)
{
	if (reason != TOKD_R_BUSY && reason != TOKD_R_SHUTDOWN)
		return s->resends - s->n_busy < RESENDS_MAX;
	if (s->n_busy++ == 0)
		s->busy_at = now;
	return s->n_busy <= RESENDS_MAX || now < s->busy_at + e->config.timeout_ns;
}

/*
 * UNKNOWN may be older than what was heard: a POLL overtook the text. It counts if nothing else is
 * heard. Sent again at once, the text would be completed twice, and a GPU make its answer twice.
 */
static bool
is_gone(struct tokd_engine *e, struct slot *s, uint64_t now)
{
	if (s->doubted == 0) {
		s->doubted = now;
		s->backed_off = 0;
		engine_queue_poll(e, s, POLL_ASK);
		engine_time_wait(e, s, now);
	}
	return now - s->doubted > e->rto;
}

static void
failed(struct tokd_engine *e, struct slot *s, const struct tokd_rep *rep, uint64_t now)
{
	const uint32_t reason = rep->reason;
	const bool send_again = reason == TOKD_R_EXPIRED || reason == TOKD_R_BUSY ||
				reason == TOKD_R_UNKNOWN || reason == TOKD_R_SHARE ||
				(reason == TOKD_R_SHUTDOWN && e->config.failed == NULL);

	/* Only a POLL arrived, no text: the time-out sends the text again. */
	if (reason == TOKD_R_UNKNOWN && !s->known)
		return;
	/*
	 * It has begun since. Begun again under the same stream id it could not get what it has
	 * acknowledged. If it has gone meanwhile, a POLL is answered with UNKNOWN.
	 */
	if (reason == TOKD_R_BUSY && s->known)
		return;
	if (reason == TOKD_R_UNKNOWN && !is_gone(e, s, now))
		return;
	if (reason == TOKD_R_ID && s->r->flags & TOKD_REQUEST_DECODE &&
		rep->text_end >= s->r->len) { /* there is no such id */
		e->stats.bad++;
		return;
	}
	s->r->reason = reason;
	if (reason == TOKD_R_ID)
		s->r->error = (int)(rep->text_end / sizeof(uint32_t));
	if (reason == TOKD_R_VERSION)
		s->r->error = rep->speaks != 0 ? rep->speaks : rep->version;
	if (send_again && !e->config.no_resend && !has_begun(s->r) &&
		may_try_again(e, s, reason, now))
		again(e, s, rep, now);
	else
		engine_finish(e, s, TOKD_E_REFUSED);
}

/* A reply about a stream that was cancelled. */
static void
cancel_heard(struct tokd_engine *e, struct slot *s, const struct tokd_rep *rep)
{
	const bool failed = rep->flags & TOKD_F_FAIL;

	if (failed && rep->reason == TOKD_R_VALIDATE) {
		if (rep->cookie != e->cookie)
			engine_queue_poll(e, s, POLL_ASK);
		e->cookie = rep->cookie;
		return;
	}
	if (failed && rep->reason == TOKD_R_UNKNOWN && !s->known)
		return; /* its text may be on the way */
	s->known = true;
	if (rep->flags & TOKD_F_DONE)
		engine_owe_last_ack(e, s->stream_id, rep->total);
	if (failed || rep->flags & TOKD_F_DONE)
		engine_let_go(e, s);
}

/* TOKD_PENDING, or how the request ended. */
static enum tokd_status
take_ids(struct slot *s, const struct tokd_rep *rep, const void *ids, bool *moved)
{
	struct tokd_request *r = s->r;
	enum tokd_status status;

	if (rep->total > r->total) {
		r->total = rep->total;
		*moved |= generates(r); /* the model goes on, even if its items were lost */
	}
	if (rep->flags & TOKD_F_DONE && !s->final) {
		*moved = true;
		s->final = true;
		s->final_total = rep->total;
		s->final_crc = rep->ids_crc;
		r->uncounted = rep->flags & TOKD_F_UNCOUNTED;
	}
	if (r->ids == NULL)
		return s->final ? TOKD_OK : TOKD_PENDING;
	if (r->total > r->max_ids && !generates(r))
		return TOKD_E_ROOM;
	if (rep->count > 0 && engine_ids_take(s, rep, ids))
		*moved = true;
	if (generates(r) && (status = engine_made_check(s)) != TOKD_PENDING)
		return status;
	if (!s->final || s->have < s->final_total)
		return TOKD_PENDING;
	return s->have == s->final_total && s->ids_crc == s->final_crc ? TOKD_OK : TOKD_E_IDS_CRC;
}

/* It is not the vocabulary that was asked for; or the caller already has ids of another one. */
static bool
is_other_vocab(
	const struct tokd_engine *e, const struct tokd_request *r, const struct tokd_rep *rep)
{
	if (e->config.vocab != 0)
		return rep->vocab != e->config.vocab;
	return streams(r) && r->n_ids > 0 && rep->vocab != r->vocab;
}

/* The text has all its ids: those of earlier streams were perhaps more. */
static enum tokd_status
check_ids(const struct slot *s, struct tokd_request *r)
{
	if (r->ids == NULL || r->n_ids == s->have)
		return TOKD_OK;
	if (streams(r))
		return TOKD_E_IDS_CRC;
	r->n_ids = r->total = s->have;
	return TOKD_OK;
}

/*
 * Queue what the reply needs besides text: a request for ids, or an acknowledgement. An answer's
 * items are sent as they are made: a reply without any shows that the latest were lost.
 */
static void
answer(struct tokd_engine *e, struct slot *s, const struct tokd_rep *rep)
{
	const bool lost_last = generates(s->r) && rep->count == 0 && engine_missing_end(s) != 0;

	if ((s->n_early > 0 || lost_last) && s->asked != s->have) {
		s->asked = s->have;
		engine_queue_poll(e, s, POLL_ASK);
		engine_time_none(s);
	} else if (s->unacked >= ACK_EVERY || (s->stopped && to_ack(s) > s->told)) {
		/* If the appliance had no room for ids, this acknowledgement frees some. */
		engine_queue_poll(e, s, POLL_ACK);
	}
}

void
tokd_engine_take(struct tokd_engine *e, const void *datagram, size_t len, uint64_t now)
{
	enum tokd_status status;
	struct tokd_request *r;
	struct tokd_rep rep;
	struct slot *s;
	bool moved, other;
	uint32_t whole;

	e->now = now;
	if (len >= sizeof(rep))
		memcpy(&rep, datagram, sizeof(rep));
	if (len < sizeof(rep) || !(is_reply(&rep, len) || is_of_versions(&rep, len))) {
		e->stats.bad++;
		return;
	}
	s = slot_of(e, &rep);
	if (s == NULL) {
		e->stats.stale++;
		return;
	}
	if (s->cancels > 0) {
		cancel_heard(e, s, &rep);
		return;
	}
	if ((rep.flags & TOKD_F_FAIL) && rep.reason == TOKD_R_VALIDATE) {
		validate(e, s, &rep, now);
		return;
	}
	if (rep.flags & TOKD_F_FAIL) {
		failed(e, s, &rep, now);
		return;
	}
	if (!is_consistent(s, &rep)) {
		e->stats.bad++;
		return;
	}
	r = s->r;
	r->reason = TOKD_R_NONE;
	if (rep.credit == 0 && (rep.reason == TOKD_R_RING || rep.reason == TOKD_R_LANES))
		r->reason = rep.reason;
	other = is_other_vocab(e, r, &rep);
	r->vocab = rep.vocab;
	if (other) {
		r->reason = TOKD_R_VOCAB;
		engine_finish(e, s, TOKD_E_REFUSED);
		return;
	}
	s->known = true;
	s->doubted = 0;
	s->behind = rep.ack < s->ack;

	moved = engine_text_heard(e, s, &rep, now);
	status = take_ids(s, &rep, (const uint8_t *)datagram + sizeof(rep), &moved);
	whole = generates(r) ? s->whole : s->have;
	if (whole > r->n_ids) {
		r->n_ids = whole;
		if (streams(r))
			engine_list(e, r);
	}
	if (status == TOKD_OK)
		status = check_ids(s, r);
	if (status != TOKD_PENDING) {
		engine_finish(e, s, status);
		return;
	}
	if (moved) {
		s->moved_at = s->busy_at = e->moved_at = now;
		s->held_at = 0;
		s->backed_off = 0;
	}
	engine_queue_text(e, s);
	if (e->limited && may_send(s))
		engine_queue_probe(e, s);
	answer(e, s, &rep);
	engine_time_wait(e, s, now);
}
