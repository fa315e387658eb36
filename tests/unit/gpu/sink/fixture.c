/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport and the consumer. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static struct world *
world_of(struct tokg_transport *t)
{
	return (struct world *)t; /* its first member */
}

static int
breaks(struct world *w)
{
	w->is_broken = true;
	w->fault = NO_FAULT;
	return -1;
}

static void
arrive(struct world *w, const struct work *k)
{
	const uint64_t n = w->n_published++;
	const uint32_t rows = k->hdr.flags & TOKG_TEXT ? k->hdr.bytes : k->hdr.tokens;
	uint64_t out = tokg_out_bytes(rows, w->g.row_bytes);

	/* Posted in circular order, to a slot that is done. */
	assert_int_equal(k->slot, n % w->g.slots);
	assert_int_equal(k->hdr.ticket, (w->done[k->slot] >> 8) + 1);
	assert_true(k->hdr.ticket <= TOKG_TICKET_MAX);
	assert_int_equal(w->hdr[k->slot].ticket, w->done[k->slot] >> 8);
	w->hdr[k->slot] = k->hdr;
	w->last = k->hdr;
	w->post_of[k->slot] = n;

	if (k->hdr.flags & TOKG_BATCH) {
		out = 0;
		for (uint32_t at = 0; at < k->hdr.bytes;) {
			const struct tokd_rec *rec =
				(const struct tokd_rec *)(w->payload[k->slot] + at);

			if (rec->kind == TOKD_REC_TOKENS)
				out += tokg_out_bytes(rec->count, w->g.row_bytes);
			at += rec->bytes;
		}
	}
	/* Outputs: aligned, whole, behind all that were given out and clear of those still held. */
	assert_int_equal(k->hdr.out_off % TOKG_OUT_ALIGN, 0);
	assert_true((k->hdr.out_off & (w->g.out_bytes - 1)) + out <= w->g.out_bytes);
	if (n > 0)
		assert_true(k->hdr.out_off >= w->post[(n - 1) % POSTS_KNOWN].end);
	if (w->back.released < n)
		assert_true(k->hdr.out_off + out <=
			    w->post[w->back.released % POSTS_KNOWN].from + w->g.out_bytes);
	assert_true(n - w->back.released < POSTS_KNOWN);
	w->post[n % POSTS_KNOWN].from = k->hdr.out_off;
	w->post[n % POSTS_KNOWN].end = k->hdr.out_off + out;
	w->post[n % POSTS_KNOWN].done = false;
}

static void
payload_arrives(struct world *w, struct work *k)
{
	/* Not while the consumer may be reading. */
	assert_int_equal(w->hdr[k->slot].ticket, w->done[k->slot] >> 8);
	memset(w->payload[k->slot], 0xee, SLOT_BYTES);
	memcpy(w->payload[k->slot], k->payload, k->bytes);
	k->payload_is_there = true;
}

void
deliver(struct world *w, uint32_t most)
{
	uint32_t n = 0;

	for (; n < w->n_flushed && n < most; n++) {
		struct work *k = &w->queue[n];

		if (!k->payload_is_there)
			payload_arrives(w, k);
		arrive(w, k);
	}
	w->n_queued -= n;
	w->n_flushed -= n;
	memmove(w->queue, w->queue + n, w->n_queued * sizeof(w->queue[0]));
}

void
deliver_payload(struct world *w)
{
	if (w->n_flushed > 0 && !w->queue[0].payload_is_there)
		payload_arrives(w, &w->queue[0]);
}

static int
test_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	struct world *w = world_of(t);
	struct work *k = &w->queue[w->n_queued];
	enum fault fault = w->fault;

	if (w->is_broken)
		return -1;
	if (w->n_queued == QUEUE_MOST)
		return 0;
	assert_int_equal(bytes % TOKG_LINE, 0);
	assert_true(bytes <= SLOT_BYTES);
	assert_int_equal((uintptr_t)payload % TOKG_LINE, 0);
	assert_true((const uint8_t *)payload >= w->ring &&
		    (const uint8_t *)payload + bytes <= w->ring + w->mask + 1);
	*k = (struct work){.slot = slot, .bytes = bytes, .payload = payload, .hdr = *hdr};
	w->last_order = order;
	if (fault == POST_NOTHING)
		return breaks(w);
	w->n_queued++;
	if (fault == POST_PAYLOAD || fault == POST_ALL) {
		w->n_flushed = w->n_queued;
		deliver(w, w->n_queued - 1);
		deliver_payload(w);
		if (fault == POST_ALL)
			deliver(w, 1);
		return breaks(w);
	}
	return 1;
}

static int
test_ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	struct world *w = world_of(t);

	if (w->is_broken)
		return -1;
	assert_true(lane < LANES_MOST);
	w->ask[lane] = word;
	w->n_asks++;
	return 1;
}

static int
test_flush(struct tokg_transport *t)
{
	struct world *w = world_of(t);

	if (w->is_broken || w->fault == FAIL_FLUSH)
		return breaks(w);
	w->n_flushed = w->n_queued;
	return 0;
}

static void
take_snapshot(struct world *w)
{
	w->snapshot.back = w->back;
	memcpy(w->snapshot.done, w->done, sizeof(w->done));
}

static int
test_poll(struct tokg_transport *t)
{
	struct world *w = world_of(t);

	if (w->is_broken || w->fault == FAIL_POLL)
		return breaks(w);
	if (w->read_asked) {
		if (!w->read_is_old)
			take_snapshot(w);
		memcpy(&w->copy, &w->snapshot, t->read_bytes);
		w->read_asked = false;
		t->n_reads++;
	}
	return 0;
}

static int
test_read_back(struct tokg_transport *t)
{
	struct world *w = world_of(t);

	if (w->is_broken || w->fault == FAIL_READ)
		return breaks(w);
	if (w->read_asked)
		return 0;
	w->read_asked = true;
	take_snapshot(w);
	return 1;
}

static int
test_reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	struct world *w = world_of(t);

	if (w->agent_is_gone) {
		strcpy(err->text, "gone");
		return -1;
	}
	if (w->reconnects_to_wait > 0) {
		w->reconnects_to_wait--;
		return 0;
	}
	w->n_queued = w->n_flushed = 0;
	w->is_broken = w->read_asked = false;
	for (uint32_t i = 0; i < w->g.slots; i++)
		tickets[i] = w->hdr[i].ticket;
	return 1;
}

static const struct tokg_transport_ops test_ops = {
	.name = "test",
	.post = test_post,
	.ask = test_ask,
	.flush = test_flush,
	.poll = test_poll,
	.read_back = test_read_back,
	.reconnect = test_reconnect,
};

void
world_renew(struct world *w, uint64_t tickets)
{
	memset(w->hdr, 0, sizeof(w->hdr));
	memset(w->payload, 0xcc, sizeof(w->payload));
	memset(w->done, 0, sizeof(w->done));
	for (uint32_t i = 0; i < w->g.slots; i++) {
		w->hdr[i].ticket = tickets;
		w->done[i] = TOKG_DONE(tickets, tickets > 0 ? TOKG_OK : 0);
	}
	w->back = (struct tokg_back){.epoch = (uint32_t)++w->last_epoch, .incarnation = 1};
	/* What had failed and was not read as such is posted anew. */
	for (uint32_t i = 0; i < w->n_texts; i++) {
		struct text *t = &w->text[i];

		if (!t->must_fail || t->has_failed || t->seen == NULL)
			continue;
		t->must_fail = false;
		for (uint32_t k = 0; k < t->total; k++)
			t->seen[k] = t->seen[k] == FAILED_EPOCH ? 0 : t->seen[k];
	}
	w->n_published = 0;
	w->n_queued = w->n_flushed = 0;
	w->is_broken = w->read_asked = w->agent_is_gone = false;
	w->fault = NO_FAULT;
	w->t = (struct tokg_transport){
		.ops = &test_ops,
		.geometry = w->g,
		.epoch = w->back.epoch,
		.ring_epoch = 1,
		.back = &w->copy.back,
		.done = w->copy.done,
		.read_bytes = tokg_back_bytes(&w->g, true),
		.n_reads = w->t.n_reads,
		.shed_below = w->sink != NULL ? tokg_sink_shed_below(w->sink) : 0,
	};
}

void
new_sink(struct world *w)
{
	struct tokg_error err = {""};

	if (w->sink != NULL)
		tokg_sink_free(w->sink);
	w->sink = tokg_sink_create(&w->config, &err);
	if (w->sink == NULL)
		fail_msg("%s", err.text);
}

void
new_agent(struct world *w)
{
	struct tokg_error err = {""};

	world_renew(w, 0);
	if (!tokg_sink_attach(w->sink, &w->t, &err))
		fail_msg("%s", err.text);
}

void
give_up(struct world *w, const char *why)
{
	struct tokg_error err = {""};

	assert_int_equal(tokg_sink_recover(w->sink, &err), -1);
	if (strstr(err.text, why) == NULL)
		fail_msg("%s", err.text);
}

static void
on_failed(void *owner, uint64_t serial, enum tokg_status status)
{
	struct world *w = owner;

	assert_true(w->text[serial].must_fail || w->text[serial].vocab == NO_VOCAB);
	w->text[serial].has_failed = true;
	w->n_failed++;
	w->last_failed = serial;
}

static void
on_text(void *owner, const struct tokd_rec *rec, enum tokg_status status)
{
	struct world *w = owner;
	struct text *t = &w->text[rec->serial];

	assert_int_equal(rec->kind, TOKD_REC_BYTES);
	t->finished = true;
	if (status == TOKG_SHED)
		assert_true(rec->serial < w->shed_below);
	else if (status == TOKG_CPU && !t->came_back)
		w->came[w->n_came++] = (uint32_t)rec->serial;
	else if (status != TOKG_OK && status != TOKG_CPU)
		assert_true(t->has_failed);
	t->came_back |= status == TOKG_CPU;
	assert_true(w->n_came < BACK_MOST);
}

static void
on_done(void *owner, uint64_t t_post, uint64_t now)
{
	struct world *w = owner;

	assert_true(t_post <= now);
	w->n_done_calls++;
}

static void
on_token(void *owner, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id)
{
	struct world *w = owner;

	w->n_tokens++;
	w->last_token.lane = lane;
	w->last_token.serial = serial;
	w->last_token.index = index;
	w->last_token.id = id;
}

static void
on_ended(void *owner, uint32_t lane, uint64_t serial, enum tokg_end how)
{
	struct world *w = owner;

	(void)lane;
	w->n_ended++;
	w->last_ended = serial;
	w->last_end = how;
}

static struct world *
make(uint32_t slots, uint64_t ring_bytes, uint64_t out_bytes, uint64_t tickets, uint32_t lanes)
{
	struct world *w = calloc(1, sizeof(*w));
	struct tokg_error err = {""};

	assert_non_null(w);
	w->g = (struct tokg_geometry){.producers = 1,
		.slots = slots,
		.slot_bytes = SLOT_BYTES,
		.flags = TOKG_CHECKED,
		.kind = TOKG_KIND_WORD_POSITION,
		.dtype = TOKG_F32,
		.dim = 8,
		.n_ids = 65536,
		.n_positions = 65536,
		.lanes = lanes,
		.log = lanes > 0 ? LOG_WORDS : 0,
		.out_bytes = out_bytes};
	if (!tokg_geometry_fill(&w->g, &err))
		fail_msg("%s", err.text);
	w->ring = aligned_alloc(4096, ring_bytes);
	assert_non_null(w->ring);
	memset(w->ring, 0x5a, ring_bytes);
	w->mask = ring_bytes - 1;
	w->now = 1000000;
	world_renew(w, tickets);
	w->config = (struct tokg_sink_config){
		.transport = &w->t,
		.data = w->ring,
		.mask = w->mask,
		.n_vocabs = N_VOCABS,
		.vocab = vocabs,
		.batch_ticks = 100,
		.read_ticks = 10,
		.read_ticks_lanes = 10,
		.dead_ticks = 100000,
		.node = -1,
		.failed = on_failed,
		.done = on_done,
		.text = on_text,
		.token = on_token,
		.ended = on_ended,
		.owner = w,
	};
	new_sink(w);
	return w;
}

struct world *
world_make(uint32_t slots, uint64_t ring_bytes, uint64_t out_bytes, uint64_t tickets)
{
	return make(slots, ring_bytes, out_bytes, tickets, 0);
}

struct world *
world_with_lanes(uint32_t slots)
{
	assert_true(slots + LANES_MOST + LOG_WORDS <= SLOTS_MOST);
	return make(slots, 1u << 16, 1u << 17, 0, LANES_MOST);
}

void
world_free(struct world *w)
{
	tokg_sink_free(w->sink);
	for (uint32_t i = 0; i < w->n_texts; i++)
		free(w->text[i].seen);
	free(w->text);
	free(w->ring);
	free(w);
}

void
shed(struct world *w)
{
	w->shed_below = w->n_texts;
	tokg_sink_shed(w->sink, w->head, w->n_records, w->shed_below);
	check_passed(w);
	assert_int_equal(w->tail, w->head);
}

bool
turn(struct world *w, bool idle)
{
	const bool whole = tokg_sink_poll(w->sink, w->head, w->now, idle);

	check_passed(w);
	return whole;
}

bool
is_pending(const struct world *w, uint32_t slot)
{
	return w->hdr[slot].ticket == (w->done[slot] >> 8) + 1;
}

static void
assert_zero(const uint8_t *p, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		assert_int_equal(p[from], 0);
}

static void
consume_batch(struct world *w, const struct tokg_hdr *h, const uint8_t *p, enum tokg_status status)
{
	const struct tokd_rec *rec = NULL;
	uint32_t tokens = 0, n = 0, at = 0;

	for (; at < h->bytes; at += rec->bytes) {
		uint32_t flags = 0;
		const uint32_t *ids;

		rec = (const struct tokd_rec *)(p + at);
		ids = (const uint32_t *)(rec + 1);
		if (rec->kind == TOKD_REC_TEXT)
			continue;
		assert_int_equal(rec->kind, TOKD_REC_TOKENS);
		assert_int_equal(rec->bytes, record_bytes(rec->count) + keys_bytes(rec->flags));
		assert_int_equal(rec->vocab, vocabs[h->vocab]);
		assert_zero(p + at, sizeof(*rec) + 4ull * rec->count, record_bytes(rec->count));
		for (uint64_t i = record_bytes(rec->count); i < rec->bytes; i++)
			assert_int_equal(p[at + i], KEY_BYTE);
		flags |= rec->flags & TOKD_REC_FIRST ? TOKG_FIRST : 0;
		flags |= rec->flags & TOKD_REC_LAST ? TOKG_LAST : 0;
		flags |= rec->flags & TOKD_REC_ABORT ? TOKG_ABORT : 0;
		embedded(w, rec->serial, rec->first, rec->count, ids, flags, status, false);
		if (status != TOKG_OK)
			w->text[rec->serial].batch_failed = true;
		tokens += rec->count;
		n++;
	}
	assert_int_equal(at, h->bytes);
	assert_int_equal(tokens, h->tokens);
	assert_true(n > 1);
	assert_int_equal(rec->kind, TOKD_REC_TOKENS); /* no text behind the ids */
}

void
consume(struct world *w, uint32_t slot, enum tokg_status status)
{
	const struct tokg_hdr *h = &w->hdr[slot];
	const uint8_t *p = w->payload[slot];

	assert_true(is_pending(w, slot));
	assert_int_equal(h->epoch, w->t.epoch);
	assert_int_equal(h->kind, w->g.kind);
	assert_true(h->vocab < N_VOCABS);
	assert_int_equal(h->check, w->g.flags & TOKG_CHECKED ? tokg_check_of(h, p) : 0);
	if (h->flags & TOKG_BATCH) {
		consume_batch(w, h, p, status);
	} else if (h->flags & TOKG_TEXT) {
		assert_int_equal(
			h->flags & ~(uint32_t)TOKG_STRICT, TOKG_FIRST | TOKG_LAST | TOKG_TEXT);
		assert_int_equal(h->tokens | h->vocab | h->first | h->position0, 0);
		assert_zero(p, h->bytes, tokg_align(h->bytes, TOKG_LINE));
		embedded_text(w, h, p, status, !saw_another(status) || (h->flags & TOKG_STRICT));
	} else {
		assert_int_equal(h->bytes, 4 * h->tokens);
		assert_int_equal(h->position0, h->first);
		assert_zero(p, h->bytes, tokg_align(h->bytes, TOKG_LINE));
		assert_int_equal(w->text[h->request].vocab, vocabs[h->vocab]);
		embedded(w, h->request, h->first, h->tokens, (const uint32_t *)p, h->flags, status,
			!saw_another(status) || (h->flags & TOKG_STRICT));
	}
	w->done[slot] = TOKG_DONE(h->ticket, status);
	w->post[w->post_of[slot] % POSTS_KNOWN].done = true;
	w->n_slots_done++;
}

void
consume_all(struct world *w, enum tokg_status status)
{
	for (uint32_t i = 0; i < w->g.slots; i++) {
		const struct tokg_hdr *h = &w->hdr[i];

		if (!is_pending(w, i))
			continue;
		if (status == TOKG_OK && (h->flags & TOKG_TEXT) && is_for_cpu(h->request))
			consume(w, i, TOKG_CPU);
		else
			consume(w, i, status);
	}
}

void
release(struct world *w, uint32_t most)
{
	for (; most > 0 && w->back.released < w->n_published; most--) {
		if (!w->post[w->back.released % POSTS_KNOWN].done)
			return;
		w->back.released++;
	}
}

void
turns(struct world *w, uint32_t n)
{
	for (; n > 0; n--) {
		w->now += 50;
		w->back.heartbeat++;
		assert_true(turn(w, true));
		deliver(w, UINT32_MAX);
	}
}

void
settle_all(struct world *w)
{
	for (uint32_t i = 0; i < 100000 && (w->n_came > 0 || !tokg_sink_is_idle(w->sink, w->head));
		i++) {
		publish_back(w);
		w->now += 50;
		w->back.heartbeat++;
		deliver(w, UINT32_MAX);
		consume_all(w, TOKG_OK);
		release(w, UINT32_MAX);
		assert_true(turn(w, true));
	}
	assert_true(tokg_sink_is_idle(w->sink, w->head));
	assert_int_equal(w->tail, w->head);
}
