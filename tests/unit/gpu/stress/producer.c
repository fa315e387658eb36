/* SPDX-License-Identifier: BSD-3-Clause */
/* A producer: the sink, and the owner of its texts, which knows each token that must come. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stress.h"
#include "kernel/engine_rule.h"
#include "sink/sink.h"
#include "transport/transport_inside.h"

#define RING (1u << 16)
#define OPEN 64 /* texts at once */

enum text_state {
	TEXT_NONE,
	TEXT_WRITTEN,	/* its records are being published */
	TEXT_RAW,	/* its bytes are published */
	TEXT_GENERATES, /* all is published, and it has a lane */
	TEXT_POSTED,	/* no token comes any more: until its records are done */
};

struct text {
	uint64_t serial, end; /* position in the token ring */
	uint32_t n, left;     /* ids; not published yet */
	uint32_t lane;
	uint32_t limit, granted, got;
	uint32_t last, before;
	uint32_t pace; /* takes tokens once in `pace` turns */
	enum text_state state;
	bool cancels, as_ids; /* raw, but the consumer has left it to the CPU */
};

struct producer {
	struct nic nic;
	struct tokg_sink *sink;
	uint32_t number;
	uint64_t dice, now;
	/* the token ring */
	uint8_t *ring;
	uint64_t head, serial, records;
	struct text text[OPEN];
	uint32_t leaves; /* turns until its connection is destroyed */
	bool waits;	 /* for an epoch */
	bool is_dead;	 /* the successor has a new sink */
	bool is_spent;	 /* a slot has had the last ticket */
	uint64_t n_texts, n_tokens, ends[8], n_cancelled, n_plain, n_dropped;
	uint64_t n_deaths, n_breaks, n_regrants;
};

void *
tokg_own_memory(size_t bytes, int node)
{
	(void)node;
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* ---- the sink calls ---- */

static struct text *
text_of(struct producer *p, uint64_t serial)
{
	for (uint32_t i = 0; i < OPEN; i++)
		if (p->text[i].state != TEXT_NONE && p->text[i].serial == serial)
			return &p->text[i];
	return NULL;
}

static void
on_token(void *owner, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id)
{
	struct producer *p = owner;
	struct text *t = text_of(p, serial);
	uint32_t next;

	p->n_tokens++;
	if (t == NULL || t->state != TEXT_GENERATES || t->lane != lane) {
		wrong("a token for text %" PRIu64 ", which takes none", serial);
		return;
	}
	next = tokg_engine_next(t->last, t->before, t->n, N_IDS);
	if (id != next || index != t->got || t->got >= t->granted)
		wrong("text %" PRIu64 ": token %u is %u, must be token %u, %u; %u granted", serial,
			index, id, t->got, next, t->granted);
	t->before = t->last;
	t->last = id;
	t->got++;
}

static void
on_ended(void *owner, uint32_t lane, uint64_t serial, enum tokg_end how)
{
	struct producer *p = owner;
	struct text *t = text_of(p, serial);
	bool right;

	p->ends[how]++;
	if (t == NULL || t->state != TEXT_GENERATES || t->lane != lane) {
		wrong("text %" PRIu64 " ends, which does not generate", serial);
		return;
	}
	switch (how) {
	case TOKG_END_LENGTH:
		right = t->got == t->limit;
		break;
	case TOKG_END_STOP:
		right = tokg_engine_next(t->last, t->before, t->n, N_IDS) == STOP_ID;
		break;
	case TOKG_END_CUT:
		right = p->ends[how] <=
			LANES * (w.n_restarts + __atomic_load_n(&w.n_engines, __ATOMIC_SEQ_CST));
		break;
	case TOKG_END_LOST:
		right = p->ends[how] <= LANES * p->n_regrants;
		break;
	default:
		right = false;
	}
	if (!right)
		wrong("text %" PRIu64 ": ends by %d after %u tokens of %u", serial, how, t->got,
			t->limit);
	t->state = TEXT_POSTED;
}

/* Half-written headers may be all that STRICT sees, in any order. */
static void
on_failed(void *owner, uint64_t serial, enum tokg_status status)
{
	struct text *t = text_of(owner, serial);

	if (t == NULL || !w.any_order || (status != TOKG_BADSUM && status != TOKG_STALE))
		wrong("text %" PRIu64 ": failed with status %d", serial, status);
	w.fate[serial].failed = ((struct producer *)owner)->nic.t.epoch;
	if (t != NULL && t->state == TEXT_GENERATES)
		t->state = TEXT_POSTED;
	else if (t != NULL)
		t->limit = 0;
}

static void
on_text(void *owner, const struct tokd_rec *rec, enum tokg_status status)
{
	struct text *t = text_of(owner, rec->serial);

	if (t == NULL || !is_raw(rec->serial) || t->as_ids) {
		wrong("the bytes of text %" PRIu64 " end, which has none", rec->serial);
	} else if (status != TOKG_CPU) {
		t->state = TEXT_POSTED;
	} else {
		if (request_text(t->serial).well_formed)
			wrong("text %" PRIu64 " was left to the CPU", t->serial);
		t->as_ids = true;
		t->state = TEXT_WRITTEN;
	}
}

/* ---- texts ---- */

static uint32_t
record_bytes(uint64_t bytes)
{
	return (uint32_t)tokg_align(sizeof(struct tokd_rec) + bytes, TOKD_RING_ALIGN);
}

/* There is room for a record of this size, wherever it does not wrap. */
static bool
has_room(const struct producer *p, uint64_t bytes)
{
	return RING - (p->head - atomic_load(tokg_sink_cursor(p->sink))) >=
	       2ull * record_bytes(bytes);
}

/* A record with room for `bytes`, not filled in. */
static struct tokd_rec *
publish(struct producer *p, struct text *t, enum tokd_rec_kind kind, uint64_t bytes)
{
	const uint64_t to_end = RING - (p->head & (RING - 1));
	struct tokd_rec *rec = (struct tokd_rec *)(p->ring + (p->head & (RING - 1)));

	if (record_bytes(bytes) > to_end) {
		*rec = (struct tokd_rec){.bytes = (uint32_t)to_end, .kind = TOKD_REC_PAD};
		p->head += to_end;
		rec = (struct tokd_rec *)p->ring;
	}
	*rec = (struct tokd_rec){.bytes = record_bytes(bytes),
		.kind = (uint16_t)kind,
		.serial = t->serial,
		.vocab = 1,
		.t_publish = p->now};
	p->head += rec->bytes;
	p->records++;
	t->end = p->head;
	return rec;
}

static void
publish_bytes(struct producer *p, struct text *t)
{
	const struct request_text r = request_text(t->serial);
	struct tokd_rec *rec = publish(p, t, TOKD_REC_BYTES, r.n);

	rec->count = r.n;
	rec->flags = TOKD_REC_FIRST | TOKD_REC_LAST;
	memcpy(rec + 1, r.bytes, r.n);
	t->state = TEXT_RAW;
}

static void
publish_ids(struct producer *p, struct text *t, uint32_t count)
{
	struct tokd_rec *rec = publish(p, t, TOKD_REC_TOKENS, 4ull * count);
	uint32_t *ids = (uint32_t *)(rec + 1);

	rec->first = t->n - t->left;
	rec->count = count;
	rec->flags =
		(rec->first == 0 ? TOKD_REC_FIRST : 0) | (count == t->left ? TOKD_REC_LAST : 0);
	if (t->as_ids)
		memcpy(ids, request_text(t->serial).ids + rec->first, 4ull * count);
	else
		for (uint32_t i = 0; i < count; i++)
			ids[i] = id_of(t->serial, rec->first + i);
	t->last = count > 0 ? ids[count - 1] : 0;
	t->left -= count;
}

/* The next record of a text; before its last one a lane is taken. */
static void
continue_text(struct producer *p, struct text *t)
{
	const bool some = t->left > 0 && below(&p->dice, 3) == 0;
	const uint32_t count = some ? 1 + below(&p->dice, t->left) : t->left;

	if (!has_room(p, 4ull * t->left + REQUEST_TEXT_BYTES))
		return;
	if (is_raw(t->serial) && !t->as_ids) {
		publish_bytes(p, t);
		return;
	}
	if (count == t->left && t->limit > 0) {
		t->lane = tokg_sink_generate(p->sink, t->serial, t->limit);
		if (t->lane == TOKG_NO_LANE)
			return;
	}
	publish_ids(p, t, count);
	if (t->left > 0)
		return;
	t->state = t->lane != TOKG_NO_LANE ? TEXT_GENERATES : TEXT_POSTED;
	p->n_plain += t->lane == TOKG_NO_LANE;
}

static uint32_t
ids_of_next(struct producer *p)
{
	if (is_raw(p->serial))
		return request_text(p->serial).n_ids;
	switch (below(&p->dice, 16)) {
	case 0:
		return below(&p->dice, 900);
	case 1:
	case 2:
	case 3:
		return below(&p->dice, 200);
	default:
		return below(&p->dice, 41);
	}
}

static void
begin_text(struct producer *p, struct text *t)
{
	p->serial += PRODUCERS;
	p->n_texts++;
	__atomic_add_fetch(&w.n_begun, 1, __ATOMIC_RELAXED);
	*t = (struct text){.serial = p->serial,
		.n = ids_of_next(p),
		.lane = TOKG_NO_LANE,
		.state = TEXT_WRITTEN,
		.pace = 1 + below(&p->dice, below(&p->dice, 8) == 0 ? 400 : 4),
		.cancels = below(&p->dice, 16) == 0};
	t->left = t->n;
	w.fate[t->serial].ids = t->n;
	if (w.lanes > 0 && !is_raw(t->serial) && below(&p->dice, 8) != 0)
		t->limit = 1 + below(&p->dice, 24);
}

/* Its client takes some, or none any more. */
static void
take_tokens(struct producer *p, struct text *t)
{
	if (below(&p->dice, t->pace) != 0)
		return;
	if (t->cancels && below(&p->dice, 8) == 0) {
		tokg_sink_cancel(p->sink, t->lane);
		t->state = TEXT_POSTED;
		p->n_cancelled++;
	} else if (t->granted - t->got < 16 && t->granted < t->limit) {
		const uint32_t more = 1 + below(&p->dice, 8);

		/* Before the call that grants, which may deliver tokens. */
		t->granted += more < t->limit - t->granted ? more : t->limit - t->granted;
		tokg_sink_grant(p->sink, t->lane, more);
	}
}

static bool
texts_step(struct producer *p)
{
	const bool more = texts_begun() < w.texts;
	bool busy = more;

	for (uint32_t i = 0; i < OPEN; i++) {
		struct text *t = &p->text[i];

		if (t->state == TEXT_POSTED && atomic_load(tokg_sink_cursor(p->sink)) >= t->end) {
			t->state = TEXT_NONE;
			w.fate[t->serial].ended = true;
		}
		if (t->state == TEXT_NONE && more && below(&p->dice, 64) == 0)
			begin_text(p, t);
		if (t->state == TEXT_WRITTEN && below(&p->dice, 4) == 0)
			continue_text(p, t);
		if (t->state == TEXT_GENERATES)
			take_tokens(p, t);
		busy = busy || t->state != TEXT_NONE;
	}
	return busy;
}

static void
drop_texts(struct producer *p)
{
	for (uint32_t i = 0; i < OPEN; i++) {
		if (p->text[i].state == TEXT_NONE)
			continue;
		w.fate[p->text[i].serial].dropped = true;
		p->text[i].state = TEXT_NONE;
		p->n_dropped++;
	}
}

/* ---- its life ---- */

/* Nothing more can be posted here; or there is an error. */
static void
give_up(struct producer *p, const char *why)
{
	if (p->number != PRODUCERS - 1 || strstr(why, "restart tokd-gpu") == NULL)
		wrong("producer %u: %s", p->number, why);
	p->is_spent = true;
	agent_end(p->number);
	drop_texts(p);
}

static void
make_sink(struct producer *p)
{
	static const uint32_t vocab = 1;
	const struct tokg_sink_config c = {
		.transport = &p->nic.t,
		.data = p->ring,
		.mask = RING - 1,
		.start = p->head,
		.start_records = p->records,
		.n_vocabs = 1,
		.vocab = &vocab,
		.batch_ticks = 3,
		.read_ticks = 1,
		.read_ticks_lanes = 1,
		.read_ticks_most = 20,
		.dead_ticks = UINT64_MAX / 2,
		.node = -1,
		.failed = on_failed,
		.text = on_text,
		.token = on_token,
		.ended = on_ended,
		.owner = p,
	};
	struct tokg_error err;

	p->sink = tokg_sink_create(&c, &err);
	if (p->sink == NULL)
		give_up(p, err.text);
}

/* The agent gives a new epoch: to the same sink, or to a successor's. */
static void
come_back(struct producer *p)
{
	const uint32_t epoch = agent_grant(p->number);
	struct tokg_error err;

	if (epoch == 0)
		return;
	p->waits = false;
	nic_connect(&p->nic, epoch);
	p->nic.t.shed_below = p->is_dead ? 0 : tokg_sink_shed_below(p->sink);
	if (p->is_dead) {
		tokg_sink_free(p->sink);
		make_sink(p);
	} else if (!tokg_sink_attach(p->sink, &p->nic.t, &err)) {
		give_up(p, err.text);
	}
	p->is_dead = false;
}

struct producer *
producer_make(uint32_t number, uint64_t seed)
{
	struct producer *p = calloc(1, sizeof(*p));

	p->number = number;
	p->serial = number;
	p->dice = seed;
	p->ring = tokg_own_memory(RING, -1);
	nic_make(&p->nic, number, seed + 500);
	p->is_dead = true;
	come_back(p);
	return p;
}

bool
producer_step(struct producer *p)
{
	struct tokg_error err = {""};
	bool busy;

	p->now++;
	if (INJECT)
		nic_land(&p->nic, below(&p->dice, 64));
	if (p->is_spent)
		return false;
	if (p->leaves > 0 && --p->leaves == 0) {
		nic_connect(&p->nic, 0);
		agent_end(p->number);
		p->waits = true;
	}
	if (p->leaves > 0)
		return true;
	if (p->waits) {
		come_back(p);
		return true;
	}
	busy = texts_step(p);
	if (!tokg_sink_poll(p->sink, p->head, p->now, below(&p->dice, 2) == 0) &&
		tokg_sink_recover(p->sink, &err) < 0)
		give_up(p, err.text);
	return busy || (!p->is_spent && !tokg_sink_is_idle(p->sink, p->head));
}

static bool
is_here(const struct producer *p)
{
	return !p->is_spent && !p->waits && p->leaves == 0;
}

void
producer_break(struct producer *p)
{
	if (!is_here(p))
		return;
	p->nic.is_broken = true;
	p->n_breaks++;
}

void
producer_regrant(struct producer *p)
{
	if (!is_here(p))
		return;
	p->leaves = 1 + below(&p->dice, 200);
	p->n_regrants++;
	/* As with no agent in sight. */
	if (below(&p->dice, 4) == 0)
		tokg_sink_cut(p->sink);
}

void
producer_die(struct producer *p)
{
	if (!is_here(p))
		return;
	p->leaves = 1 + below(&p->dice, 200);
	p->is_dead = true;
	p->n_deaths++;
	drop_texts(p);
}

void
producer_print(const struct producer *p)
{
	printf("# producer %u: %" PRIu64 " texts, %" PRIu64 " without lane, %" PRIu64
	       " tokens; STOP %" PRIu64 ", LENGTH %" PRIu64 ", CUT %" PRIu64 ", LOST %" PRIu64
	       ", cancelled %" PRIu64 "; %" PRIu64 " breaks, %" PRIu64 " agents, %" PRIu64
	       " deaths, %" PRIu64 " texts dropped\n",
		p->number, p->n_texts, p->n_plain, p->n_tokens, p->ends[TOKG_END_STOP],
		p->ends[TOKG_END_LENGTH], p->ends[TOKG_END_CUT], p->ends[TOKG_END_LOST],
		p->n_cancelled, p->n_breaks, p->n_regrants, p->n_deaths, p->n_dropped);
	for (uint32_t i = 0; w.n_wrong > 0 && i < SLOTS; i++)
		printf("# slot %u: header %" PRIx64 ", claim %" PRIx64 ", done %" PRIx64 "\n", i,
			load(tokg_hdr_at(&w.d->geometry, p->number, i) +
				offsetof(struct tokg_hdr, ticket)),
			load(tokg_claim_at(&w.d->geometry, p->number, i)),
			load(tokg_done_at(&w.d->geometry, p->number, i)));
}

void
producer_judge_lanes(struct producer *p)
{
	const uint64_t whole = p->ends[TOKG_END_STOP] + p->ends[TOKG_END_LENGTH];
	const uint64_t all = p->n_texts - p->n_plain - p->n_cancelled - p->n_dropped;
	uint32_t n = 0;

	if (p->is_spent)
		return;
	if (w.lanes > 0 && whole < all / 8)
		wrong("producer %u: %" PRIu64 " of %" PRIu64 " texts are whole", p->number, whole,
			all);
	/* Ends of lanes that were cancelled may be on their way. */
	for (uint32_t i = 0; i < 1000000 && n < w.lanes; i++) {
		sched_yield();
		producer_step(p);
		agent_step();
		while (n < w.lanes &&
			tokg_sink_generate(p->sink, UINT64_MAX - n, 1) != TOKG_NO_LANE)
			n++;
	}
	if (n != w.lanes)
		wrong("producer %u: %u of %u lanes are free at the end", p->number, n, w.lanes);
}

/* The last producer came to its last tickets: a slot had it, and that was done, as all others. */
static void
judge_tickets(const struct producer *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SLOTS; i++) {
		const uint64_t done = load(tokg_done_at(&w.d->geometry, p->number, i)) >> 8;

		n += done == TOKG_TICKET_MAX;
		if (done != load(tokg_hdr_at(&w.d->geometry, p->number, i) +
				    offsetof(struct tokg_hdr, ticket)))
			wrong("producer %u slot %u: not done", p->number, i);
	}
	if (p->is_spent ? n == 0 : p->number == PRODUCERS - 1)
		wrong("no slot of producer %u had its last ticket", p->number);
}

/* In one epoch each id is delivered once; what is not done then comes again in the next. */
static bool
is_right(const struct fate *f, const struct delivered *d)
{
	const bool whole =
		d->ids == f->ids && d->lasts == 1 && d->index_sum == f->ids * (f->ids - 1ull) / 2;

	if (f->dropped || f->failed != 0)
		return d->epochs ||
		       (d->ids <= f->ids && d->lasts <= 1 && !(whole && d->epoch == f->failed));
	return d->epochs ? d->ids >= f->ids && d->lasts > 0 : whole;
}

void
producer_judge(struct producer *p)
{
	uint64_t n_failed = 0;

	for (uint64_t i = p->number + PRODUCERS; i <= p->serial; i += PRODUCERS) {
		const struct fate *f = &w.fate[i];

		n_failed += f->failed != 0;
		if (!f->ended && !f->dropped)
			wrong("text %" PRIu64 " has not ended", i);
		else if (!is_right(f, &w.delivered[i]))
			wrong("text %" PRIu64 ": %u ids of %u were delivered", i,
				w.delivered[i].ids, f->ids);
	}
	producer_print(p);
	printf("# %" PRIu64 " texts failed after STRICT\n", n_failed);
	if (p->n_texts < w.texts / 20 || p->n_dropped > p->n_texts / 3)
		wrong("producer %u: %" PRIu64 " texts, of these %" PRIu64 " dropped", p->number,
			p->n_texts, p->n_dropped);
	judge_tickets(p);
}
