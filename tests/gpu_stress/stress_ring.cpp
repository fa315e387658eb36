/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real consumer, as threads of the device `cpu`, under producers and an agent made for it: what
 * gpu_ring.h promises, on very many slots. Built twice, the consumer's source with it:
 *
 *   with ThreadSanitizer   nothing is injected; payloads and rows are plain memory. Producers and
 *                          agent are threads of their own.
 *   with -DTOKG_INJECT     words of the ring are relaxed atomics. One thread is producers, NIC,
 *                          agent and holder, by turns at random, and lets fail what may fail:
 *                          writes land in pieces of 8 bytes, late, in any order; producers die with
 *                          writes in flight; connections break; the consumer's threads end at any
 *                          access to the ring.
 *
 * Such a run proves the protocol's logic, not a GPU's memory order or speed.
 *
 * stress_ring [--in-order] [--no-check]. TOKG_STRESS_SLOTS: how many, TOKG_STRESS_SEED. --no-check:
 * without the check word the same must be found to go wrong, and that is then the test.
 */
#include "../../lib/gpu_sink/kernel/device_cpu.cpp"

#include <atomic>
#include <cinttypes>
#include <deque>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "../../lib/gpu_sink/check.h"
}

#ifdef TOKG_INJECT
#define INJECT 1
#else
#define INJECT 0
#endif

namespace stress
{

constexpr uint32_t PRODUCERS = 3, SLOTS = 8, DIM = 4, IDS = 1 << 20, MOST_IDS = 200, WORKERS = 2;
constexpr uint64_t OUT_BYTES = 1 << 16;

struct options {
	bool any_order = INJECT, check = true;
	uint64_t slots = 0, seed = 1;
};

/* xorshift64* (Vigna) */
struct random_numbers {
	uint64_t state;

	uint64_t
	next()
	{
		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		return state * 0x2545f4914f6cdd1dull;
	}
	uint32_t
	below(uint32_t n)
	{
		return (uint32_t)((next() >> 32) * n >> 32);
	}
};

std::atomic<bool> over;
std::atomic<uint64_t> n_wrong, n_posted;

/* Goes on: what else is wrong is worth knowing. */
void __attribute__((format(printf, 1, 2))) wrong(const char *format, ...)
{
	va_list ap;

	if (n_wrong++ < 10) {
		printf("# WRONG: ");
		va_start(ap, format);
		vprintf(format, ap);
		va_end(ap);
		printf("\n");
	}
}

/* What a request's ids are follows from its number. */
uint32_t
id_of(uint64_t request, uint32_t i)
{
	return (uint32_t)((request * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull) >> 40) %
	       IDS;
}

/* Rows of id are {id, -id, id / 2, 1}: exact in fp32. */
float
element(uint32_t id, uint32_t i)
{
	return i == 0 ? (float)id : i == 1 ? -(float)id : i == 2 ? (float)id / 2 : 1.0f;
}

/* Words of the ring. With -DTOKG_INJECT everything is one. */
void
put(uint64_t *p, uint64_t v)
{
	if (INJECT)
		__atomic_store_n(p, v, __ATOMIC_RELAXED);
	else
		*p = v;
}

struct world;

enum { LIVES, DYING, GONE };

struct text {
	uint64_t request;
	uint32_t n; /* requests in the slot; more than one: a BATCH */
	uint32_t tokens[4];
	bool strict;
};

struct piece {
	uint64_t *to;
	uint64_t value;
	uint32_t slot;
	bool header;
};

struct producer {
	world *w;
	uint32_t place, epoch = 1;
	random_numbers r;
	struct slot {
		bool out = false;
		text t;
		uint64_t ticket = 0;
		struct tokg_hdr hdr;
		std::vector<uint64_t> payload;
	} slot[SLOTS];
	std::deque<uint64_t> room; /* bytes that each posted slot took, not given back yet */
	std::deque<text> again;
	std::vector<piece> wire;
	bool strict_waits = false; /* a header behind its payload's READ */
	uint32_t strict_slot = 0, state = LIVES, breaking = 0;
	uint64_t posted = 0, position = 0, used = 0, released = 0, next_request = 0;
	uint64_t n_again = 0, n_failed = 0;

	uint64_t *word(uint64_t offset);
	uint64_t back(uint64_t offset);
	void begin();
	void step();
	bool post();
	void write(uint32_t s, bool header);
	void land(uint32_t n);
	void read_back();
	void resume();
	bool idle();
	bool flying(uint32_t s);
};

struct held {
	uint32_t producer, slot;
	uint64_t ticket;
	const float *rows;
	uint64_t request;
	uint32_t tokens, epoch;
	uint64_t until;
};

/* Of a slot. */
struct seen {
	uint64_t ticket = 0;	/* that the last entry was of */
	uint32_t delivered = 0; /* its parts that were, a bit each */
	uint64_t passed = 0;	/* last ticket that `released` went by */
};

struct agent {
	world *w;
	random_numbers r;
	uint64_t taken = 0, turn[PRODUCERS] = {}, steps = 0;
	uint64_t n_entries = 0, n_redo = 0, n_dropped = 0, n_holes = 0;
	uint64_t status[8] = {};
	std::vector<held> holds;
	seen slot[PRODUCERS][SLOTS];

	void step();
	bool take();
	void deliver(const struct tokg_out_entry *e);
	void look(const held &h);
	void release(uint32_t p);
	bool free_to_give(uint32_t p);
};

struct world {
	options o;
	struct tokg_geometry g = {};
	struct tokg_device *d = nullptr;
	cpu_device *cpu = nullptr;
	std::vector<float> table;
	producer p[PRODUCERS];
	agent a;
	/* Requests of producer i are i, i + PRODUCERS, ...: times delivered, and what came of them.
	 */
	std::vector<uint8_t> delivered, ended, dead;
	uint64_t n_deaths = 0, n_breaks = 0, n_restarts = 0;

	uint64_t
	load(uint64_t offset)
	{
		return __atomic_load_n(
			(uint64_t *)((uint8_t *)d->region + offset), __ATOMIC_ACQUIRE);
	}
};

uint64_t *
producer::word(uint64_t offset)
{
	return (uint64_t *)((uint8_t *)w->d->region + offset);
}

/* Tickets go on; slot, positions and `released` begin anew. */
void
producer::begin()
{
	for (uint32_t s = 0; s < SLOTS; s++) {
		slot[s].out = false;
		slot[s].ticket =
			w->load(tokg_hdr_at(&w->g, place, s) + offsetof(struct tokg_hdr, ticket));
	}
	room.clear();
	again.clear();
	strict_waits = false;
	posted = position = used = released = 0;
	breaking = 0;
	state = LIVES;
}

bool
producer::flying(uint32_t s)
{
	for (const piece &x : wire)
		if (x.slot == s)
			return true;
	return false;
}

/* Pieces of a slot's header or payload, to the wire; without injection to the ring at once. */
void
producer::write(uint32_t s, bool header)
{
	const uint64_t at =
		header ? tokg_hdr_at(&w->g, place, s) : tokg_payload_at(&w->g, place, s);
	const uint64_t n = header ? 8 : tokg_align(slot[s].hdr.bytes, TOKG_LINE) / 8;
	uint64_t words[8];

	memcpy(words, &slot[s].hdr, sizeof(words));
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t v = header ? words[i] : slot[s].payload[i];

		if (INJECT)
			wire.push_back({word(at) + i, v, s, header});
		else if (header && i == 7)
			__atomic_store_n(word(at) + i, v, __ATOMIC_RELEASE);
		else
			put(word(at) + i, v);
	}
}

/* So many pieces come to memory. */
void
producer::land(uint32_t n)
{
	for (; n > 0 && !wire.empty(); n--) {
		const size_t i = w->o.any_order ? r.below((uint32_t)wire.size()) : 0;

		__atomic_store_n(wire[i].to, wire[i].value,
			w->o.any_order ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
		wire.erase(wire.begin() + (ptrdiff_t)i);
	}
}

bool
producer::post()
{
	const uint32_t s = (uint32_t)(posted % SLOTS);
	const bool is_again = !again.empty();
	uint64_t bytes = 0;
	uint32_t total = 0, off = 0;
	text t = {};

	if (slot[s].out || strict_waits || over)
		return false;
	if (is_again) {
		t = again.front();
	} else {
		if (n_posted >= w->o.slots)
			return false;
		t.n = r.below(4) == 0 ? 1 + r.below(4) : 1;
		t.request = next_request;
		for (uint32_t i = 0; i < t.n; i++)
			t.tokens[i] = r.below(t.n > 1 ? 40 : MOST_IDS) + (t.n > 1 ? 0 : 1);
	}
	for (uint32_t i = 0; i < t.n; i++)
		bytes += tokg_out_bytes(t.tokens[i], w->g.row_bytes);
	/* Rows of a slot do not wrap: the rest is given up. */
	const uint64_t rest = OUT_BYTES - (position & (OUT_BYTES - 1));
	const uint64_t skip = rest < bytes ? rest : 0;

	if (used + skip + bytes > OUT_BYTES)
		return false;
	if (is_again)
		again.pop_front();
	else
		next_request += t.n * PRODUCERS;
	slot[s].t = t;
	slot[s].out = true;
	slot[s].ticket++;
	slot[s].payload.assign(w->g.slot_bytes / 8, 0);
	uint8_t *const to = (uint8_t *)slot[s].payload.data();

	for (uint32_t i = 0; i < t.n; i++) {
		const uint64_t request = t.request + (uint64_t)i * PRODUCERS;

		if (t.n > 1) {
			struct tokd_rec rec = {};

			rec.bytes = (uint32_t)tokg_align(
				sizeof(rec) + 4 * t.tokens[i], TOKD_RING_ALIGN);
			rec.kind = TOKD_REC_TOKENS;
			rec.flags = TOKD_REC_FIRST | TOKD_REC_LAST;
			rec.serial = request;
			rec.count = t.tokens[i];
			memcpy(to + off, &rec, sizeof(rec));
			for (uint32_t k = 0; k < t.tokens[i]; k++)
				((uint32_t *)(to + off + sizeof(rec)))[k] = id_of(request, k);
			off += rec.bytes;
		} else {
			for (uint32_t k = 0; k < t.tokens[i]; k++)
				((uint32_t *)to)[k] = id_of(request, k);
			off = 4 * t.tokens[i];
		}
		total += t.tokens[i];
	}
	struct tokg_hdr &h = slot[s].hdr;

	h = {};
	h.request = t.request;
	h.kind = TOKG_KIND_WORD;
	h.bytes = off;
	h.tokens = total;
	h.epoch = epoch;
	h.out_off = position + skip;
	h.flags = t.n > 1 ? TOKG_BATCH : TOKG_FIRST | TOKG_LAST;
	h.flags |= t.strict ? TOKG_STRICT : 0;
	h.ticket = slot[s].ticket;
	h.check = w->o.check ? tokg_check_of(&h, to) : 0;
	position += skip + bytes;
	used += skip + bytes;
	room.push_back(skip + bytes);
	posted++;
	n_posted++;
	write(s, false);
	if (t.strict) {
		strict_waits = true;
		strict_slot = s;
	} else {
		write(s, true);
	}
	return true;
}

/* One READ. Of a slot with writes in flight it says nothing: they are before it. */
void
producer::read_back()
{
	const uint64_t now =
		w->load(tokg_back_at(&w->g, place) + offsetof(struct tokg_back, released));

	for (; released < now && !room.empty(); released++) {
		used -= room.front();
		room.pop_front();
	}
	for (uint32_t s = 0; s < SLOTS; s++) {
		if (!slot[s].out || flying(s))
			continue;
		const uint64_t done = w->load(tokg_done_at(&w->g, place, s));
		text &t = slot[s].t;

		if (done >> 8 > slot[s].ticket || done >> 8 < slot[s].ticket - 1)
			wrong("place %u slot %u: done %" PRIx64 ", ticket %" PRIx64, place, s, done,
				slot[s].ticket);
		if (done >> 8 != slot[s].ticket)
			continue;
		slot[s].out = false;
		if ((done & 255) != TOKG_OK && !t.strict) {
			t.strict = true;
			again.push_back(t);
			n_again++;
			continue;
		}
		if ((done & 255) != TOKG_OK)
			n_failed++;
		for (uint32_t i = 0; i < t.n; i++)
			w->ended[t.request + (uint64_t)i * PRODUCERS] = done & 255;
	}
}

/* The new connection of the same place: the old one's writes are gone. */
void
producer::resume()
{
	wire.clear();
	strict_waits = false;
	for (uint64_t n = posted < SLOTS ? 0 : posted - SLOTS; n < posted; n++) {
		const uint32_t s = (uint32_t)(n % SLOTS);
		const uint64_t at =
			tokg_hdr_at(&w->g, place, s) + offsetof(struct tokg_hdr, ticket);

		if (!slot[s].out || w->load(at) == slot[s].ticket)
			continue;
		write(s, false);
		if (slot[s].t.strict)
			while (!wire.empty())
				land(1);
		write(s, true);
	}
	breaking = 0;
}

bool
producer::idle()
{
	for (const struct slot &s : slot)
		if (s.out)
			return false;
	return again.empty() && wire.empty() && n_posted >= w->o.slots;
}

void
producer::step()
{
	land(r.below(64));
	if (state != LIVES)
		return;
	if (breaking > 0) {
		if (--breaking == 0)
			resume();
		return;
	}
	if (strict_waits && wire.empty()) {
		strict_waits = false;
		write(strict_slot, true);
		/* A header of which half is late for long is one more BADSUM, and then the end. */
		if (r.below(8) != 0)
			land(8);
	}
	for (uint32_t n = r.below(4); n > 0 && post(); n--)
		;
	read_back();
}

/* A holder looks at rows. */
void
agent::look(const held &h)
{
	for (uint32_t i = 0; i < h.tokens; i++) {
		const uint32_t id = id_of(h.request, i);

		for (uint32_t k = 0; k < DIM; k++) {
			if (h.rows[i * DIM + k] != element(id, k)) {
				wrong("request %" PRIu64 " row %u: %f, should be %f", h.request, i,
					(double)h.rows[i * DIM + k], (double)element(id, k));
				return;
			}
		}
	}
}

void
agent::deliver(const struct tokg_out_entry *e)
{
	held h = {};

	if (e->request >= w->delivered.size() || e->request % PRODUCERS != e->producer) {
		wrong("request %" PRIu64 " does not exist", e->request);
		return;
	}
	if (w->delivered[e->request]++ > 0)
		wrong("request %" PRIu64 " is there twice", e->request);
	h.producer = e->producer;
	h.slot = e->slot;
	h.ticket = e->ticket;
	h.request = e->request;
	h.tokens = e->tokens;
	h.rows = (const float *)((uint8_t *)w->d->outputs + e->producer * OUT_BYTES +
				 (e->out_off & (OUT_BYTES - 1)));
	h.until = steps + r.below(64);
	look(h);
	holds.push_back(h);
}

bool
agent::take()
{
	const struct tokg_out_entry *const e = tokg_outbox_entry(w->d->outbox, taken);

	if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != taken + 1)
		return false;
	if (__atomic_load_n(&w->d->outbox->reserved, __ATOMIC_RELAXED) - taken > w->d->outbox->n)
		wrong("the outbox has overflowed at %" PRIu64, taken);
	taken++;
	if (e->status == 0) {
		n_holes++;
		return true;
	}
	n_entries++;
	n_redo += e->redo;
	status[e->status & 7]++;
	if (e->producer >= PRODUCERS || e->slot >= SLOTS || e->part >= 32) {
		wrong("entry %" PRIu64 " is of place %u slot %u", taken - 1, e->producer, e->slot);
		return true;
	}
	seen &s = slot[e->producer][e->slot];

	if (e->ticket < s.ticket) {
		wrong("an entry for ticket %" PRIx64 " after %" PRIx64, e->ticket, s.ticket);
	} else if (e->ticket > s.ticket) {
		s.ticket = e->ticket;
		s.delivered = 0;
	}
	if (e->status != TOKG_OK)
		return true;
	/* All that a dead producer had published was read before its place was given away. */
	if (e->epoch != w->p[e->producer].epoch)
		wrong("request %" PRIu64 " is of epoch %u, of a predecessor", e->request, e->epoch);
	if (s.delivered >> e->part & 1) {
		n_dropped++;
		if (e->redo == 0)
			wrong("request %" PRIu64 " was embedded twice and is not marked",
				e->request);
	} else {
		s.delivered |= 1u << e->part;
		deliver(e);
	}
	return true;
}

/* In the order of posting: done, all said of it read, and nothing of it held. */
void
agent::release(uint32_t p)
{
	for (;;) {
		const uint32_t i = (uint32_t)(turn[p] % SLOTS);
		seen &s = slot[p][i];
		const uint64_t done = w->load(tokg_done_at(&w->g, p, i)) >> 8;
		const uint64_t reserved =
			__atomic_load_n(&w->d->outbox->reserved, __ATOMIC_ACQUIRE);

		if (done == s.passed)
			return;
		while (taken < reserved && take())
			;
		if (taken < reserved)
			return;
		for (const held &h : holds)
			if (h.producer == p && h.slot == i && h.ticket == s.passed + 1)
				return;
		s.passed++;
		turn[p]++;
		w->d->ops->write_u64(w->d,
			tokg_back_at(&w->g, p) + offsetof(struct tokg_back, released), turn[p]);
	}
}

/* Are all slots of the place done, and its outputs back? */
bool
agent::free_to_give(uint32_t p)
{
	for (uint32_t s = 0; s < SLOTS; s++)
		if (w->load(tokg_hdr_at(&w->g, p, s) + offsetof(struct tokg_hdr, ticket)) !=
			w->load(tokg_done_at(&w->g, p, s)) >> 8)
			return false;
	while (take())
		;
	for (const held &h : holds)
		if (h.producer == p)
			return false;
	return taken == __atomic_load_n(&w->d->outbox->reserved, __ATOMIC_ACQUIRE);
}

void
agent::step()
{
	steps++;
	for (uint32_t n = r.below(8); n > 0 && take(); n--)
		;
	for (size_t i = 0; i < holds.size();) {
		if (holds[i].until > steps) {
			i++;
			continue;
		}
		look(holds[i]); /* the last time */
		holds[i] = holds.back();
		holds.pop_back();
	}
	for (uint32_t p = 0; p < PRODUCERS; p++)
		if (w->p[p].state != DYING || !INJECT)
			release(p);
}

/* -- what goes wrong -- */

std::atomic<uint32_t> killing; /* the consumer's threads end, each somewhere */
cpu_device *victim;

/* The connection of a dead producer has ended; then its epoch; then there is a successor. */
void
bury(world *w, uint32_t i, uint64_t *wait)
{
	producer &p = w->p[i];
	const uint64_t back = tokg_back_at(&w->g, i);

	if (*wait > 0) {
		--*wait;
		return;
	}
	if (p.state == DYING) {
		p.wire.clear(); /* the queue pair is destroyed */
		w->d->ops->write_u64(w->d, back + offsetof(struct tokg_back, epoch),
			(uint64_t)w->d->incarnation << 32);
		p.state = GONE;
	}
	if (!w->a.free_to_give(i))
		return;
	for (uint32_t s = 0; s < SLOTS; s++)
		w->a.slot[i][s].passed = w->load(tokg_done_at(&w->g, i, s)) >> 8;
	w->a.turn[i] = 0;
	p.epoch++;
	w->d->ops->write_u64(w->d, back + offsetof(struct tokg_back, released), 0);
	w->d->ops->write_u64(w->d, back + offsetof(struct tokg_back, epoch),
		(uint64_t)w->d->incarnation << 32 | p.epoch);
	p.begin();
}

void
kill_producer(world *w, uint32_t i)
{
	producer &p = w->p[i];
	const auto lose = [w](const text &t) {
		for (uint32_t k = 0; k < t.n; k++)
			w->dead[t.request + (uint64_t)k * PRODUCERS] = 1;
	};

	p.state = DYING;
	for (const auto &s : p.slot)
		if (s.out)
			lose(s.t);
	for (const text &t : p.again)
		lose(t);
	w->n_deaths++;
}

void
restart_consumer(world *w)
{
	struct tokg_error why;

	if (w->d->ops->stop(w->d, TOKG_STOP_NOW, 60000, &why) < 0) {
		printf("Bail out! %s\n", why.text);
		exit(1);
	}
	killing = 0;
	while (w->a.take())
		;
	if (w->d->ops->start(w->d, w->d->incarnation + 1, &why) < 0) {
		printf("Bail out! %s\n", why.text);
		exit(1);
	}
	w->n_restarts++;
}

/* Told to end, or all of its threads end by themselves while the others go on. */
bool
consumer_ends(world *w, random_numbers *r)
{
	if (killing == 0 && r->below(4) == 0)
		return true;
	killing = 1;
	return __atomic_load_n(&w->cpu->ended, __ATOMIC_ACQUIRE) == w->cpu->running;
}

/* -- a run -- */

void
set_up(world *w)
{
	struct tokg_device_config c = {};
	struct tokg_error why;

	c.geometry.producers = PRODUCERS;
	c.geometry.slots = SLOTS;
	c.geometry.slot_bytes = TOKG_SLOT_BYTES_MIN;
	c.geometry.flags = w->o.check ? TOKG_CHECKED : 0;
	c.geometry.kind = c.tables.kind = TOKG_KIND_WORD;
	c.geometry.dtype = c.tables.dtype = TOKG_F32;
	c.geometry.dim = c.tables.dim = DIM;
	c.geometry.n_ids = c.tables.n_ids = IDS;
	c.geometry.out_bytes = OUT_BYTES;
	w->table.resize((size_t)IDS * DIM);
	for (uint32_t i = 0; i < IDS * DIM; i++)
		w->table[i] = element(i / DIM, i % DIM);
	c.tables.word = w->table.data();
	c.ring_epoch = 1;
	c.workers = WORKERS;
	c.heads = w->o.seed & 1;
	c.first_cpu = -1;
	if (!tokg_geometry_fill(&c.geometry, &why) || !(w->d = tokg_device_cpu(&c, &why))) {
		printf("Bail out! %s\n", why.text);
		exit(1);
	}
	w->g = w->d->geometry;
	victim = w->cpu = (cpu_device *)w->d;
	const size_t most = (w->o.slots + 64) * 4 * PRODUCERS;

	w->delivered.resize(most);
	w->ended.resize(most);
	w->dead.resize(most);
	w->a.w = w;
	w->a.r.state = w->o.seed * 77 + 5;
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		/* Tickets near 1, near 2^32, near the last. */
		const uint64_t most_uses = w->o.slots / SLOTS * 4 + 1000;
		const uint64_t first[] = {0, (1ull << 32) - 20, TOKG_TICKET_MAX - most_uses};

		for (uint32_t s = 0; s < SLOTS; s++) {
			w->a.slot[i][s].passed = first[i % 3];
			w->d->ops->write_u64(w->d, tokg_done_at(&w->g, i, s),
				TOKG_DONE(first[i % 3], first[i % 3] ? TOKG_OK : 0));
			w->d->ops->write_u64(w->d,
				tokg_hdr_at(&w->g, i, s) + offsetof(struct tokg_hdr, ticket),
				first[i % 3]);
		}
		w->d->ops->write_u64(
			w->d, tokg_back_at(&w->g, i) + offsetof(struct tokg_back, epoch), 1);
		w->p[i].w = w;
		w->p[i].place = i;
		w->p[i].next_request = i;
		w->p[i].r.state = w->o.seed * 1000 + i + 1;
		w->p[i].begin();
	}
	if (w->d->ops->start(w->d, 1, &why) < 0) {
		printf("Bail out! %s\n", why.text);
		exit(1);
	}
}

bool
all_idle(world *w)
{
	for (producer &p : w->p)
		if (p.state != LIVES || p.breaking > 0 || p.strict_waits || !p.idle())
			return false;
	return true;
}

/* Everything by turns, in this thread. */
void
run_injected(world *w)
{
	random_numbers r = {w->o.seed * 31 + 7};
	uint64_t wait[PRODUCERS] = {}, last = n_posted, since = tokg_now();
	uint64_t next_restart = 500;

	while ((!all_idle(w) || killing != 0) && (w->o.check || !w->o.any_order || n_wrong == 0)) {
		const uint32_t i = r.below(PRODUCERS);
		producer &p = w->p[i];

		p.step();
		w->a.step();
		if (p.state != LIVES) {
			bury(w, i, &wait[i]);
		} else if (r.below(4096) == 0) {
			kill_producer(w, i);
			wait[i] = r.below(200);
		} else if (r.below(4096) == 0 && p.breaking == 0) {
			p.breaking = 1 + r.below(100);
			w->n_breaks++;
		}
		if ((killing != 0 || n_posted >= next_restart) && consumer_ends(w, &r)) {
			restart_consumer(w);
			next_restart = n_posted + 100 + r.below(500);
		}
		/* On few cores the consumer must have its turn. */
		if (r.below(8) == 0)
			sched_yield();
		if (n_posted != last) {
			last = n_posted;
			since = tokg_now();
		} else if (tokg_now() - since > 60000000000ull) {
			wrong("nothing has moved for 60 s");
			break;
		}
	}
}

/* Producers and agent as threads. */
void
run_threads(world *w)
{
	std::vector<std::thread> threads;

	for (producer &p : w->p)
		threads.emplace_back([&p] {
			const uint64_t until = tokg_now() + 300000000000ull;

			while (!p.idle() && tokg_now() < until) {
				p.step();
				sched_yield();
			}
		});
	std::thread agent([w] {
		while (!over) {
			w->a.step();
			sched_yield();
		}
	});

	for (std::thread &t : threads)
		t.join();
	over = true;
	agent.join();
}

/* Nothing is out: all that is told of must have come to its end, and once. */
void
judge(world *w)
{
	uint64_t requests = 0, failed = 0, of_the_dead = 0;

	while (w->a.take())
		;
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		for (uint64_t q = i; q < w->p[i].next_request; q += PRODUCERS) {
			requests++;
			of_the_dead += w->dead[q];
			failed += w->ended[q] != TOKG_OK && !w->dead[q];
			if (w->ended[q] == 0 && !w->dead[q])
				wrong("request %" PRIu64 " is lost", q);
			if (w->ended[q] == TOKG_OK && w->delivered[q] != 1)
				wrong("request %" PRIu64 " is done and was delivered %u times", q,
					w->delivered[q]);
			if (w->ended[q] > TOKG_OK && w->delivered[q] != 0)
				wrong("request %" PRIu64 " failed and was delivered", q);
		}
	}
	uint64_t again = 0;

	for (const producer &p : w->p)
		again += p.n_again;
	printf("# %" PRIu64 " slots, %" PRIu64 " requests, %" PRIu64 " slots posted again, %" PRIu64
	       " requests given up after STRICT, %" PRIu64 " of the dead\n",
		n_posted.load(), requests, again, failed, of_the_dead);
	printf("# %" PRIu64 " entries: OK %" PRIu64 ", BADSUM %" PRIu64 ", STALE %" PRIu64
	       ", BADHDR %" PRIu64 "; %" PRIu64 " marked as done again, %" PRIu64
	       " of them delivered before, %" PRIu64 " never written\n",
		w->a.n_entries, w->a.status[1], w->a.status[2], w->a.status[3], w->a.status[4],
		w->a.n_redo, w->a.n_dropped, w->a.n_holes);
	printf("# %" PRIu64 " producers died, %" PRIu64 " connections broke, %" PRIu64
	       " restarts of the consumer; wrong: %" PRIu64 "\n",
		w->n_deaths, w->n_breaks, w->n_restarts, n_wrong.load());
}

} // namespace stress

#ifdef TOKG_INJECT
/* Called by the consumer's threads before each access to what is shared. */
extern "C" void
tokg_inject_step(const char *what, const void *at)
{
	static thread_local uint64_t state;
	static thread_local uint32_t left;
	static thread_local bool dies, changed;

	if (state == 0)
		state = (uint64_t)(uintptr_t)&state ^ tokg_now();
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	const uint32_t n = (uint32_t)(state >> 33);

	if (__builtin_expect(n % 2048 == 0, 0))
		sched_yield();
	if (stress::killing.load(std::memory_order_relaxed) != 0) {
		if (!dies) {
			dies = true;
			left = n % 1000;
		}
		/* Gladly just after something was given out; who waits for work need not for long.
		 */
		left -= left < 20 ? left > 0 : what[0] == 'p' ? 20 : 1;
		if (left == 0 || (changed && n % 4 == 0)) {
			__atomic_fetch_add(&stress::victim->ended, 1, __ATOMIC_RELEASE);
			pthread_exit(NULL);
		}
	}
	changed = what[0] == 'a' || what[0] == 'c' || strcmp(what, "store release") == 0;
}
#endif

int
main(int argc, char **argv)
{
	static stress::world w;
	const char *const slots = getenv("TOKG_STRESS_SLOTS"), *const seed =
								       getenv("TOKG_STRESS_SEED");
	struct tokg_error why;
	bool right;

	for (int i = 1; i < argc; i++) {
		const std::string arg = argv[i];

		if (arg == "--in-order")
			w.o.any_order = false;
		else if (arg == "--no-check")
			w.o.check = false;
	}
	w.o.slots = slots != NULL   ? strtoull(slots, NULL, 10)
		    : !INJECT	    ? 10000
		    : w.o.any_order ? 60000
				    : 40000;
	if (seed != NULL)
		w.o.seed = strtoull(seed, NULL, 10);
	printf("1..1\n");
	stress::set_up(&w);
	if (INJECT)
		stress::run_injected(&w);
	else
		stress::run_threads(&w);
	const bool must_fail = !w.o.check && w.o.any_order;

	if (must_fail) {
		printf("# without the check word: wrong after %" PRIu64 " slots\n",
			stress::n_posted.load());
	} else {
		if (w.d->ops->stop(w.d, TOKG_STOP_NOW, 60000, &why) < 0)
			stress::wrong("%s", why.text);
		stress::judge(&w);
	}
	right = (stress::n_wrong > 0) == must_fail;
	printf("%s 1 - %s%s\n", right ? "ok" : "not ok",
		must_fail	? "any order without the check word is found to go wrong"
		: w.o.any_order ? "any order"
				: "in order",
		INJECT ? ", injected" : ", threads");
	fflush(stdout);
	_exit(right ? 0 : 1);
}
