/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation of an engine, and a request's way in and out. */
#include <string.h>

#include "engine.h"

size_t
tokd_engine_bytes(const struct tokd_engine_config *config)
{
	size_t a_slot = sizeof(struct slot) + sizeof(struct last_ack) + 2 * sizeof(uint32_t);

	return sizeof(struct tokd_engine) + config->requests * a_slot;
}

struct tokd_engine *
tokd_engine_init(void *memory, const struct tokd_engine_config *config)
{
	struct tokd_engine *e = memory;
	uint32_t n = config->requests;

	memset(e, 0, tokd_engine_bytes(config));
	e->config = *config;
	e->last_acks = (struct last_ack *)(e->slot + n);
	e->free = (uint32_t *)(e->last_acks + n);
	e->heap = e->free + n;
	e->rto = e->measured = config->rto_least_ns > RTO_FIRST ? config->rto_least_ns : RTO_FIRST;
	e->window = config->packets;
	e->queue[TEXT] = e->queue[POLL] = (struct queue){NOBODY, NOBODY};
	e->done_end = &e->done;
	for (uint32_t i = 0; i < n; i++) {
		e->slot[i].stream_id = config->first_stream_id + i;
		e->free[e->n_free++] = n - 1 - i;
	}
	return e;
}

void
engine_begin(struct tokd_engine *e, struct slot *s)
{
	struct tokd_request *r = s->r;
	uint32_t len = (uint32_t)r->len;

	if (e->flight == 0 && e->queue[TEXT].head == NOBODY) { /* no other is under way */
		e->moved_at = 0;
		e->limited = false;
	}
	r->stream_id = s->stream_id;
	if (s->before == 0) /* else the appliance may have packets of it */
		s->payload = e->config.payload;
	r->packets = s->n = len == 0 ? 1 : (len - 1) / s->payload + 1;
	r->arrived = 0;
	s->ack = s->next = s->order = s->untimed = s->probe = s->text_crc = 0;
	s->limit = WINDOW;
	s->held_at = 0;
	s->sacked = s->lost = s->gap_at = 0;
	s->stopped = s->known = s->final = s->pausing = s->behind = false;
	s->doubted = 0;
	s->cookie = e->cookie;
	s->have = s->told = s->ids_crc = s->unacked = s->whole = s->untold = 0;
	s->took = false;
	if (generates(r)) {
		r->total = r->made = 0; /* another answer */
		r->ended = false;
	}
	s->asked = UINT32_MAX;
	s->n_early = 0;
	s->backed_off = 0;
	engine_queue_text(e, s);
}

static bool
is_valid(const struct tokd_request *r)
{
	const bool decodes = r->flags & TOKD_REQUEST_DECODE;

	if ((r->flags & ~REQUEST_FLAGS) != 0)
		return false;
	if (r->len > UINT32_MAX || (r->text == NULL && r->len > 0))
		return false;
	if (decodes && r->len % sizeof(uint32_t) != 0)
		return false;
	return !generates(r) ||
	       (!decodes && r->limit > 0 && r->limit <= TOKD_GENERATE_MOST && r->ids != NULL &&
		       r->max_ids >= 2 * sizeof(struct tokd_made));
}

/* One that only tells its appliance of the end gives way. */
static void
make_free(struct tokd_engine *e)
{
	for (uint32_t i = 0; e->n_free == 0 && e->cancelling > 0; i++) {
		struct slot *s = &e->slot[i];

		if (s->cancels == 0)
			continue;
		if (s->link[POLL].queued)
			engine_owe_cancel(e, s->stream_id, to_ack(s));
		engine_let_go(e, s);
	}
}

enum tokd_status
tokd_engine_submit(struct tokd_engine *e, struct tokd_request *r)
{
	struct slot *s;

	r->reason = TOKD_R_NONE;
	r->error = 0;
	r->n_ids = r->total = r->vocab = 0;
	r->uncounted = false;
	r->retransmits = r->asks = r->resends = 0;
	r->since = 0;
	r->next = NULL;
	r->listed = false;
	r->base = r->taken = 0;
	if (!is_valid(r)) {
		r->status = TOKD_E_ARGUMENT;
		return r->status;
	}
	make_free(e);
	if (e->n_free == 0) {
		r->status = TOKD_E_FULL;
		return r->status;
	}
	r->status = TOKD_PENDING;
	r->slot = e->free[--e->n_free];
	s = &e->slot[r->slot];
	s->r = r;
	s->started = false;
	s->validated = 0;
	s->resends = s->n_busy = 0;
	s->before = 0;
	s->begun_at = e->now;
	s->deadline = UINT64_MAX; /* the time limit starts with the first packet */
	e->pending++;
	engine_time_add(e, s);
	engine_begin(e, s);
	return r->status;
}

void
engine_let_go(struct tokd_engine *e, struct slot *s)
{
	e->cancelling -= s->cancels > 0;
	s->cancels = 0;
	e->flight -= in_flight(s);
	engine_dequeue(e, s);
	engine_time_remove(e, s);
	s->r = NULL;
	s->next = s->ack = 0;
	s->stream_id += e->config.requests;
	e->free[e->n_free++] = slot_index(e, s);
	e->pending--;
}

/*
 * The request is over, but its lane at the appliance may not be: unless told, the model goes on.
 * POLLs tell it; tokd_engine_tick() repeats them.
 */
static void
let_go_and_cancel(struct tokd_engine *e, struct slot *s)
{
	if (!generates(s->r) || !s->started || s->pausing) {
		engine_let_go(e, s);
		return;
	}
	e->flight -= in_flight(s);
	engine_dequeue(e, s);
	s->r = NULL;
	s->next = s->ack;
	s->cancels = 1;
	e->cancelling++;
	engine_queue_poll(e, s, POLL_ASK);
	engine_time_set(e, s, 0);
}

/* If there are too many, the oldest is dropped. */
static void
owe(struct tokd_engine *e, struct last_ack ack)
{
	uint32_t n = e->config.requests;

	if (e->n_last_acks == n) {
		e->first_last_ack = (e->first_last_ack + 1) % n;
		e->n_last_acks--;
	}
	e->last_acks[(e->first_last_ack + e->n_last_acks++) % n] = ack;
}

void
engine_owe_last_ack(struct tokd_engine *e, uint64_t stream_id, uint32_t ids)
{
	if (!e->config.no_last_ack)
		owe(e, (struct last_ack){.stream_id = stream_id, .ids = ids});
}

void
engine_owe_cancel(struct tokd_engine *e, uint64_t stream_id, uint32_t ids)
{
	owe(e, (struct last_ack){.stream_id = stream_id, .ids = ids, .cancels = true});
}

void
engine_finish(struct tokd_engine *e, struct slot *s, enum tokd_status status)
{
	struct tokd_request *r = s->r;

	r->status = status;
	if (status != TOKD_E_REFUSED &&
		!(status == TOKD_E_TIMEOUT &&
			(r->reason == TOKD_R_RING || r->reason == TOKD_R_LANES)))
		r->reason = TOKD_R_NONE; /* of an earlier stream */
	if (status == TOKD_OK && r->ids != NULL)
		engine_owe_last_ack(e, s->stream_id, s->have);
	else if (s->started || r->since != 0)
		r->since = counts_from(s, e->now);
	if (status == TOKD_E_TIMEOUT || status == TOKD_E_ROOM || status == TOKD_E_ANSWER)
		let_go_and_cancel(e, s);
	else
		engine_let_go(e, s);
	if (status != TOKD_OK && e->config.failed != NULL && e->config.failed(e->config.user, r))
		return;
	engine_list(e, r);
}

void
engine_cut_again(struct tokd_engine *e, struct slot *s, uint64_t now)
{
	e->flight -= in_flight(s);
	engine_dequeue(e, s);
	s->next = s->ack = s->before = 0;
	s->stream_id += e->config.requests;
	if (s->pausing)
		return; /* it begins again by itself */
	engine_begin(e, s);
	if (!s->started)
		return;
	e->stats.resends++;
	s->r->resends++;
	engine_time_wait(e, s, now);
}

void
tokd_engine_path(struct tokd_engine *e, uint32_t payload, uint32_t reply_max, uint64_t now)
{
	const bool less = payload < e->config.payload || reply_max < e->config.reply_max;

	e->config.payload = payload;
	e->config.reply_max = reply_max;
	if (!less)
		return;
	for (uint32_t i = 0; i < e->config.requests; i++) {
		struct slot *s = &e->slot[i];
		const bool has_prompt = s->r != NULL && generates(s->r) && s->ack == s->n;

		/* A model that has the whole prompt would only begin it a second time. */
		if (s->r != NULL && !has_begun(s->r) && !has_prompt)
			engine_cut_again(e, s, now);
	}
}

void
engine_list(struct tokd_engine *e, struct tokd_request *r)
{
	if (r->listed)
		return;
	r->listed = true;
	r->next = NULL;
	*e->done_end = r;
	e->done_end = &r->next;
}

void
tokd_engine_unlist(struct tokd_engine *e, struct tokd_request *r)
{
	struct tokd_request **at = &e->done;

	if (!r->listed)
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (r->next == NULL)
		e->done_end = at;
	r->listed = false;
}

bool
tokd_engine_has_done(const struct tokd_engine *e)
{
	return e->done != NULL;
}

struct tokd_request *
tokd_engine_done(struct tokd_engine *e)
{
	struct tokd_request *r = e->done;

	if (r != NULL)
		tokd_engine_unlist(e, r);
	return r;
}

void
tokd_engine_cancel(struct tokd_engine *e, struct tokd_request *r)
{
	tokd_engine_unlist(e, r);
	if (r->status != TOKD_PENDING)
		return;
	let_go_and_cancel(e, &e->slot[r->slot]);
	r->status = TOKD_E_CANCELLED;
}

void
tokd_engine_leave(struct tokd_engine *e)
{
	for (uint32_t i = 0; i < e->config.requests; i++) {
		struct tokd_request *r = e->slot[i].r;

		if (r != NULL)
			tokd_engine_cancel(e, r);
	}
}

void
tokd_engine_fail_all(struct tokd_engine *e, enum tokd_status status, int error)
{
	for (uint32_t i = 0; i < e->config.requests; i++) {
		struct slot *s = &e->slot[i];

		if (s->cancels > 0)
			engine_let_go(e, s);
		if (s->r == NULL)
			continue;
		s->r->error = error;
		engine_finish(e, s, status);
	}
}

uint32_t
tokd_engine_pending(const struct tokd_engine *e)
{
	return e->pending - e->cancelling;
}

struct tokd_client_stats
tokd_engine_stats(const struct tokd_engine *e)
{
	struct tokd_client_stats stats = e->stats;

	stats.srtt_ns = e->srtt;
	return stats;
}
