/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A producer: the sink as it is, over a transport of this file, and the owner of its texts, which
 * knows every token that must come. With TOKG_INJECT writes land in pieces of 8 bytes, late;
 * without it at once.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "generate.h"
#include "kernel/engine_rule.h"
#include "sink/sink.h"
#include "transport/transport_inside.h"

#define RING (1u << 16)
#define WIRE 65536
#define OPEN 64 /* texts at once */

enum text_state { TEXT_NONE, TEXT_WRITTEN, TEXT_GENERATES, TEXT_ENDED };

struct text {
	uint64_t serial;
	uint32_t n, left; /* ids; not published yet */
	uint32_t lane;
	uint32_t limit, granted, got;
	uint32_t last, before, prompt;
	uint32_t pace; /* it takes tokens once in so many turns */
	enum text_state state;
	bool cancels;
};

struct piece {
	uint64_t *to;
	uint64_t value;
};

struct side {
	struct tokg_transport t; /* first */
	struct agent *a;
	struct tokg_sink *sink;
	uint32_t producer;
	uint64_t dice, now;
	bool any_order;
	/* the wire: pieces in order, what has landed is at the front */
	struct piece *wire;
	uint32_t flying;
	bool is_broken, read_asked;
	uint64_t *copy; /* the back area as it was read */
	/* the token ring */
	uint8_t *ring;
	uint64_t head, serial, records;
	struct text text[OPEN];
	bool waits; /* for an epoch */
	bool is_dead;
	uint64_t n_texts, n_tokens, ends[8], n_cancelled, n_plain, n_deaths, n_breaks, n_regrants;
	uint64_t n_dropped; /* texts, by deaths */
};

uint64_t n_restarts;

static uint64_t *
word_at(const struct side *s, uint64_t offset)
{
	return (uint64_t *)((uint8_t *)s->a->d->region + offset);
}

/* A piece that lands may not pass an earlier one of the same word. */
static void
land_one(struct side *s)
{
	uint32_t i = s->any_order ? below(&s->dice, s->flying) : 0;

	for (uint32_t k = 0; k < i; k++)
		if (s->wire[k].to == s->wire[i].to)
			i = k;
	__atomic_store_n(s->wire[i].to, s->wire[i].value,
		s->any_order ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
	s->flying--;
	memmove(s->wire + i, s->wire + i + 1, (s->flying - i) * sizeof(*s->wire));
}

static void
land_all(struct side *s)
{
	while (s->flying > 0)
		land_one(s);
}

static void
fly(struct side *s, uint64_t offset, const void *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes / 8; i++) {
		memcpy(&s->wire[s->flying].value, (const uint8_t *)from + 8ull * i, 8);
		s->wire[s->flying++].to = word_at(s, offset) + i;
	}
}

static int
side_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	struct side *s = (struct side *)t;
	const uint64_t at = tokg_payload_at(&t->geometry, t->producer, slot);
	const uint64_t hdr_at = tokg_hdr_at(&t->geometry, t->producer, slot);

	if (s->is_broken)
		return -1;
	if (!INJECT) {
		memcpy(word_at(s, at), payload, bytes);
		memcpy(word_at(s, hdr_at), hdr, offsetof(struct tokg_hdr, ticket));
		__atomic_store_n(word_at(s, hdr_at) + 7, hdr->ticket, __ATOMIC_RELEASE);
		return 1;
	}
	if (s->flying + (bytes + sizeof(*hdr)) / 8 > WIRE)
		return 0;
	fly(s, at, payload, bytes);
	if (order == TOKG_ORDER_STRICT)
		land_all(s);
	fly(s, hdr_at, hdr, sizeof(*hdr));
	return 1;
}

static int
side_ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	struct side *s = (struct side *)t;
	const uint64_t at = tokg_ask_at(&t->geometry, t->producer, lane);

	if (s->is_broken)
		return -1;
	if (!INJECT) {
		__atomic_store_n(word_at(s, at), word, __ATOMIC_RELEASE);
		return 1;
	}
	/* The queue is full, now and then. */
	if (s->flying == WIRE || below(&s->dice, 16) == 0)
		return 0;
	fly(s, at, &word, sizeof(word));
	return 1;
}

static int
side_flush(struct tokg_transport *t)
{
	return ((struct side *)t)->is_broken ? -1 : 0;
}

/* The log may be older than `ended`, and that than `done`. */
static void
read_now(struct side *s)
{
	const uint64_t *from = word_at(s, tokg_back_at(&s->t.geometry, s->t.producer));

	for (uint32_t i = s->t.read_bytes / 8; i-- > 0;) {
		s->copy[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
		if (INJECT && i == (sizeof(struct tokg_back) / 8 + SLOTS + LANES) &&
			below(&s->dice, 8) == 0)
			sched_yield();
	}
	s->t.n_reads++;
	s->read_asked = false;
}

static int
side_poll(struct tokg_transport *t)
{
	struct side *s = (struct side *)t;

	if (s->is_broken)
		return -1;
	/* A READ pushes the writes before it. */
	if (s->read_asked && below(&s->dice, 4) == 0) {
		land_all(s);
		read_now(s);
	}
	return 0;
}

static int
side_read_back(struct tokg_transport *t)
{
	struct side *s = (struct side *)t;

	if (s->is_broken)
		return -1;
	if (s->read_asked)
		return 0;
	s->read_asked = true;
	if (!INJECT)
		read_now(s);
	return 1;
}

static int
side_reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	struct side *s = (struct side *)t;

	(void)err;
	s->flying = 0;
	s->is_broken = s->read_asked = false;
	for (uint32_t i = 0; i < SLOTS; i++)
		tickets[i] = region_load(s->a->d, tokg_hdr_at(&t->geometry, t->producer, i) +
							  offsetof(struct tokg_hdr, ticket));
	return 1;
}

static const struct tokg_transport_ops ops = {
	.name = "test",
	.post = side_post,
	.ask = side_ask,
	.flush = side_flush,
	.poll = side_poll,
	.read_back = side_read_back,
	.reconnect = side_reconnect,
};

/* -- the owner of the texts -- */

static struct text *
text_of(struct side *s, uint64_t serial)
{
	for (uint32_t i = 0; i < OPEN; i++)
		if (s->text[i].state != TEXT_NONE && s->text[i].serial == serial)
			return &s->text[i];
	return NULL;
}

static void
on_token(void *owner, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id)
{
	struct side *s = owner;
	struct text *t = text_of(s, serial);
	uint32_t next;

	s->n_tokens++;
	if (t == NULL || t->state != TEXT_GENERATES || t->lane != lane) {
		wrong("producer %u: a token for text %" PRIu64 ", which takes none", s->producer,
			serial);
		return;
	}
	next = tokg_engine_next(t->last, t->before, t->prompt, N_IDS);
	if (id != next || index != t->got || t->got >= t->granted)
		wrong("producer %u text %" PRIu64 ": token %u is %u, must be token %u, %u; %u "
		      "granted",
			s->producer, serial, index, id, t->got, next, t->granted);
	t->before = t->last;
	t->last = id;
	t->got++;
}

static void
on_ended(void *owner, uint32_t lane, uint64_t serial, enum tokg_end how)
{
	struct side *s = owner;
	struct text *t = text_of(s, serial);
	bool right;

	s->ends[how]++;
	if (t == NULL || t->state != TEXT_GENERATES || t->lane != lane) {
		wrong("producer %u: text %" PRIu64 " ends, which does not generate", s->producer,
			serial);
		return;
	}
	switch (how) {
	case TOKG_END_LENGTH:
		right = t->got == t->limit;
		break;
	case TOKG_END_STOP:
		right = tokg_engine_next(t->last, t->before, t->prompt, N_IDS) == STOP_ID;
		break;
	case TOKG_END_CUT:
		right = s->ends[how] <=
			LANES * (n_restarts + __atomic_load_n(&n_engines, __ATOMIC_SEQ_CST));
		break;
	case TOKG_END_LOST:
		right = s->ends[how] <= LANES * s->n_regrants;
		break;
	default:
		right = false;
	}
	if (!right)
		wrong("producer %u text %" PRIu64 ": ends by %d after %u tokens of %u", s->producer,
			serial, how, t->got, t->limit);
	t->state = TEXT_ENDED;
}

/* Half-written headers may be all that STRICT sees, in any order. */
static void
on_failed(void *owner, uint64_t serial, enum tokg_status status)
{
	struct side *s = owner;
	struct text *t = text_of(s, serial);

	if (!s->any_order || (status != TOKG_BADSUM && status != TOKG_STALE))
		wrong("producer %u text %" PRIu64 ": failed with status %d", s->producer, serial,
			status);
	if (t != NULL && t->state == TEXT_GENERATES)
		t->state = TEXT_ENDED;
	else if (t != NULL)
		t->limit = 0;
}

static uint32_t
record_bytes(uint32_t count)
{
	return (uint32_t)tokg_align(sizeof(struct tokd_rec) + 4ull * count, TOKD_RING_ALIGN);
}

static bool
has_room(const struct side *s, uint32_t count)
{
	const uint64_t used = s->head - atomic_load(tokg_sink_cursor(s->sink));

	return RING - used >= 2ull * record_bytes(count); /* it does not wrap */
}

/* A record of the text's next ids, for which there is room. */
static void
publish(struct side *s, struct text *t, uint32_t count)
{
	const uint32_t bytes = record_bytes(count);
	const uint64_t to_end = RING - (s->head & (RING - 1));
	struct tokd_rec *rec = (struct tokd_rec *)(s->ring + (s->head & (RING - 1)));
	uint32_t *ids;

	if (bytes > to_end) {
		*rec = (struct tokd_rec){.bytes = (uint32_t)to_end, .kind = TOKD_REC_PAD};
		s->head += to_end;
		rec = (struct tokd_rec *)s->ring;
	}
	*rec = (struct tokd_rec){.bytes = bytes,
		.kind = TOKD_REC_TOKENS,
		.serial = t->serial,
		.first = t->n - t->left,
		.count = count,
		.vocab = 1,
		.t_publish = s->now};
	rec->flags =
		(rec->first == 0 ? TOKD_REC_FIRST : 0) | (count == t->left ? TOKD_REC_LAST : 0);
	ids = (uint32_t *)(rec + 1);
	for (uint32_t i = 0; i < count; i++)
		ids[i] = (uint32_t)(t->serial * 31 + (rec->first + i) * 7) % N_IDS;
	t->last = ids[count - 1];
	t->left -= count;
	s->head += bytes;
	s->records++;
}

/* The next record of a text; before its last one a lane is taken. */
static void
continue_text(struct side *s, struct text *t)
{
	const uint32_t count = below(&s->dice, 3) == 0 ? 1 + below(&s->dice, t->left) : t->left;

	if (!has_room(s, count))
		return;
	if (count == t->left && t->limit > 0) {
		t->lane = tokg_sink_generate(s->sink, t->serial, t->limit);
		if (t->lane == TOKG_NO_LANE)
			return;
	}
	publish(s, t, count);
	if (t->left > 0)
		return;
	t->state = t->lane != TOKG_NO_LANE ? TEXT_GENERATES : TEXT_NONE;
	s->n_plain += t->lane == TOKG_NO_LANE;
}

static void
begin_text(struct side *s, struct text *t)
{
	*t = (struct text){.serial = ++s->serial,
		.n = below(&s->dice, 16) == 0 ? 1 + below(&s->dice, 900) : 1 + below(&s->dice, 40),
		.lane = TOKG_NO_LANE,
		.state = TEXT_WRITTEN,
		.pace = 1 + below(&s->dice, below(&s->dice, 8) == 0 ? 400 : 4),
		.cancels = below(&s->dice, 16) == 0};
	t->left = t->prompt = t->n;
	t->limit = below(&s->dice, 8) == 0 ? 0 : 1 + below(&s->dice, 24);
	s->n_texts++;
}

/* Its client takes some, or none any more. */
static void
take_tokens(struct side *s, struct text *t)
{
	if (below(&s->dice, t->pace) != 0)
		return;
	if (t->cancels && below(&s->dice, 8) == 0) {
		tokg_sink_cancel(s->sink, t->lane);
		t->state = TEXT_NONE;
		s->n_cancelled++;
	} else if (t->granted - t->got < 16 && t->granted < t->limit) {
		const uint32_t more = 1 + below(&s->dice, 8);

		/* Before: they may come within the call that grants. */
		t->granted += more < t->limit - t->granted ? more : t->limit - t->granted;
		tokg_sink_grant(s->sink, t->lane, more);
	}
}

static bool
texts_step(struct side *s, bool more)
{
	bool busy = false;

	for (uint32_t i = 0; i < OPEN; i++) {
		struct text *t = &s->text[i];

		if (t->state == TEXT_ENDED)
			t->state = TEXT_NONE;
		if (t->state == TEXT_NONE && more && below(&s->dice, 64) == 0)
			begin_text(s, t);
		if (t->state == TEXT_WRITTEN && below(&s->dice, 4) == 0)
			continue_text(s, t);
		if (t->state == TEXT_GENERATES)
			take_tokens(s, t);
		busy = busy || t->state != TEXT_NONE;
	}
	return busy;
}

/* -- its life -- */

static void
first_read(struct side *s)
{
	land_all(s);
	s->t.read_bytes = tokg_back_bytes(&s->t.geometry, true);
	read_now(s);
}

static void
link_up(struct side *s, uint32_t epoch)
{
	s->t.epoch = epoch;
	s->t.shed_below = s->sink != NULL ? tokg_sink_shed_below(s->sink) : 0;
	s->t.read_bytes = tokg_back_bytes(&s->t.geometry, true);
	s->is_broken = s->read_asked = false;
	s->flying = 0;
	s->waits = false;
}

static void
make_sink(struct side *s)
{
	static const uint32_t vocab = 1;
	const struct tokg_sink_config c = {
		.transport = &s->t,
		.data = s->ring,
		.mask = RING - 1,
		.start = s->head,
		.start_records = s->records,
		.n_vocabs = 1,
		.vocab = &vocab,
		.batch_ticks = 3,
		.read_ticks = 1,
		.read_ticks_lanes = 1,
		.read_ticks_most = 20,
		.dead_ticks = UINT64_MAX / 2,
		.node = -1,
		.failed = on_failed,
		.token = on_token,
		.ended = on_ended,
		.owner = s,
	};
	struct tokg_error err;

	s->sink = tokg_sink_create(&c, &err);
	if (s->sink == NULL) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
}

/* The first READ of a set-up is waited for. */
static int
set_up_read(struct tokg_transport *t)
{
	first_read((struct side *)t);
	return 1;
}

static const struct tokg_transport_ops set_up_ops = {
	.name = "test", .read_back = set_up_read, .poll = side_flush};

void *
tokg_own_memory(size_t bytes, int node)
{
	(void)node;
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

struct side *
side_make(struct agent *a, uint32_t producer, uint64_t seed, bool any_order)
{
	struct side *s = calloc(1, sizeof(*s));

	s->a = a;
	s->producer = producer;
	s->dice = seed;
	s->any_order = any_order;
	s->wire = calloc(WIRE, sizeof(*s->wire));
	s->ring = tokg_own_memory(RING, -1);
	s->copy = tokg_own_memory(a->d->geometry.back_stride, -1);
	s->t = (struct tokg_transport){.ops = &set_up_ops,
		.geometry = a->d->geometry,
		.producer = producer,
		.ring_epoch = 1,
		.back = (struct tokg_back *)s->copy,
		.done = s->copy + sizeof(struct tokg_back) / 8};
	link_up(s, agent_grant(a, producer));
	make_sink(s);
	s->t.ops = &ops;
	return s;
}

/* The agent gives a new epoch: to the same sink, or to a successor's. */
static void
come_back(struct side *s)
{
	const uint32_t epoch = agent_grant(s->a, s->producer);
	struct tokg_error err;

	if (epoch == 0)
		return;
	link_up(s, epoch);
	s->t.ops = &set_up_ops;
	if (s->is_dead) {
		tokg_sink_free(s->sink);
		s->sink = NULL;
		s->t.shed_below = 0;
		make_sink(s);
	} else if (!tokg_sink_attach(s->sink, &s->t, &err)) {
		wrong("%s", err.text);
	}
	s->t.ops = &ops;
	s->is_dead = false;
}

bool
side_step(struct side *s, bool more)
{
	struct tokg_error err = {""};
	bool busy;

	s->now++;
	for (uint32_t n = INJECT ? below(&s->dice, 64) : 0; n > 0 && s->flying > 0; n--)
		land_one(s);
	if (s->waits) {
		come_back(s);
		return true;
	}
	busy = texts_step(s, more);
	if (!tokg_sink_poll(s->sink, s->head, s->now, below(&s->dice, 2) == 0) &&
		tokg_sink_recover(s->sink, &err) < 0)
		wrong("producer %u: %s", s->producer, err.text);
	return busy || !tokg_sink_is_idle(s->sink, s->head);
}

void
side_break(struct side *s)
{
	if (s->waits)
		return;
	s->is_broken = true;
	s->n_breaks++;
}

static void
leave(struct side *s)
{
	s->flying = 0; /* the queue pair is destroyed */
	agent_end(s->a, s->producer);
	s->waits = true;
}

void
side_regrant(struct side *s)
{
	if (s->waits)
		return;
	leave(s);
	s->n_regrants++;
	/* As with no agent in sight. */
	if (below(&s->dice, 4) == 0)
		tokg_sink_cut(s->sink);
}

void
side_die(struct side *s)
{
	if (s->waits)
		return;
	leave(s);
	s->is_dead = true;
	s->n_deaths++;
	for (uint32_t i = 0; i < OPEN; i++) {
		s->n_dropped += s->text[i].state != TEXT_NONE;
		s->text[i].state = TEXT_NONE;
	}
}

uint64_t
side_texts(const struct side *s)
{
	return s->n_texts;
}

void
side_judge(struct side *s)
{
	const uint64_t whole = s->ends[TOKG_END_STOP] + s->ends[TOKG_END_LENGTH];
	const uint64_t all = s->n_texts - s->n_plain - s->n_cancelled - s->n_dropped;
	uint32_t n = 0;

	if (whole < all / 8)
		wrong("producer %u: %" PRIu64 " of %" PRIu64 " texts are whole", s->producer, whole,
			all);
	/* Ends of lanes that were cancelled may be on their way. */
	for (uint32_t i = 0; i < 1000000 && n < LANES; i++) {
		sched_yield();
		side_step(s, false);
		agent_step(s->a);
		while (n < LANES && tokg_sink_generate(s->sink, UINT64_MAX - n, 1) != TOKG_NO_LANE)
			n++;
	}
	if (n != LANES)
		wrong("producer %u: %u of %u lanes are free at the end", s->producer, n, LANES);
	printf("# producer %u: %" PRIu64 " texts, %" PRIu64 " without lane, %" PRIu64
	       " tokens; STOP %" PRIu64 ", LENGTH %" PRIu64 ", CUT %" PRIu64 ", LOST %" PRIu64
	       ", cancelled %" PRIu64 "; %" PRIu64 " breaks, %" PRIu64 " agents, %" PRIu64
	       " deaths\n",
		s->producer, s->n_texts, s->n_plain, s->n_tokens, s->ends[TOKG_END_STOP],
		s->ends[TOKG_END_LENGTH], s->ends[TOKG_END_CUT], s->ends[TOKG_END_LOST],
		s->n_cancelled, s->n_breaks, s->n_regrants, s->n_deaths);
	tokg_sink_free(s->sink);
	munmap(s->ring, RING);
	munmap(s->copy, s->a->d->geometry.back_stride);
	free(s->wire);
	free(s);
}
