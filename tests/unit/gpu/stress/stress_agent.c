/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokd-gpu, as far as producers see it: reads the outbox, releases outputs, grants epochs. It is
 * its own subscriber, which holds rows for a while and compares them at the beginning and the end.
 */
#include <stdlib.h>
#include <string.h>

#include "stress.h"

#define HOLDS_MAX 1024

struct held {
	struct tokg_out_entry e;
	uint64_t until; /* step */
};

/* Of a slot. */
struct seen {
	uint64_t ticket;    /* of the last entry */
	uint32_t delivered; /* its parts, a bit each */
	uint32_t unmarked;  /* ... for which an entry without `redo` has come */
	uint64_t passed;    /* last ticket that `released` has passed */
};

static struct {
	uint64_t taken; /* entries of the outbox */
	uint64_t steps, dice, turn[PRODUCERS];
	uint32_t epoch[PRODUCERS], last_epoch, n_holds;
	uint64_t n_redo, n_dropped, n_holes, n_late, n_texts, n_parts, status[16];
	struct held hold[HOLDS_MAX];
	struct seen slot[PRODUCERS][SLOTS];
} a;

static uint64_t
done_of(uint32_t producer, uint32_t slot)
{
	return load(tokg_done_at(&w.d->geometry, producer, slot)) >> 8;
}

static void
back_write(uint32_t producer, size_t field, uint64_t value)
{
	w.d->ops->write_u64(w.d, tokg_back_at(&w.d->geometry, producer) + field, value);
}

static void
epoch_write(uint32_t producer, uint32_t epoch)
{
	back_write(producer, offsetof(struct tokg_back, epoch),
		(uint64_t)w.d->incarnation << 32 | epoch);
}

static void
misled(const char *what, const struct tokg_out_entry *e)
{
	__atomic_add_fetch(&w.n_misled, 1, __ATOMIC_RELAXED);
	wrong("%s: text %" PRIu64 ", ids %u to %u", what, e->request, e->first,
		e->first + e->tokens);
}

/* Compares rows. Of an id they are {id, -id, id / 2, 1}. With late workers nothing is promised. */
static void
look(const struct tokg_out_entry *e)
{
	const float *row = (const float *)((uint8_t *)w.d->outputs + e->producer * OUT_BYTES +
					   (e->out_off & (OUT_BYTES - 1)));
	struct request_text t;

	if (w.late)
		return;
	if (is_raw(e->request)) {
		t = request_text(e->request);
		if (e->flags & TOKG_TEXT ? e->first != 0 || e->tokens != t.n_ids
					 : (uint64_t)e->first + e->tokens > t.n_ids) {
			misled("not the ids of its bytes", e);
			return;
		}
	}
	for (uint32_t i = e->first; i < e->first + e->tokens; i++, row += DIM) {
		const float id = (float)(is_raw(e->request) ? t.ids[i] : id_of(e->request, i));

		if (row[0] != id || row[1] != -id || row[2] != id / 2 || row[3] != 1) {
			misled("a wrong row", e);
			return;
		}
	}
}

static void
deliver(const struct tokg_out_entry *e)
{
	struct delivered *d;

	if (e->request % PRODUCERS != e->producer || e->request >= SERIALS) {
		misled("no such text", e);
		return;
	}
	d = &w.delivered[e->request];
	d->epochs |= d->epoch != 0 && d->epoch != e->epoch;
	d->epoch = e->epoch;
	d->ids += e->tokens;
	d->lasts += (e->flags & TOKG_LAST) != 0;
	d->index_sum += (2ull * e->first + e->tokens - 1) * e->tokens / 2;
	a.n_texts += (e->flags & TOKG_TEXT) != 0;
	look(e);
	if (a.n_holds == HOLDS_MAX)
		bail_out("too many outputs are held");
	a.hold[a.n_holds++] = (struct held){*e, a.steps + below(&a.dice, 16)};
}

bool
agent_take(void)
{
	const struct tokg_out_entry *const e = tokg_outbox_entry(w.d->outbox, a.taken);
	struct seen *s;
	uint32_t part;

	if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != a.taken + 1)
		return false;
	if (__atomic_load_n(&w.d->outbox->reserved, __ATOMIC_RELAXED) - a.taken > w.d->outbox->n)
		wrong("the outbox has overflowed at %" PRIu64, a.taken);
	a.taken++;
	a.n_redo += e->redo;
	a.n_parts += e->part > 0;
	a.n_holes += e->status == 0;
	if (e->status == 0)
		return true;
	a.status[e->status & 15]++;
	if (e->producer >= PRODUCERS || e->slot >= SLOTS || e->part >= 32) {
		wrong("entry %" PRIu64 " is of producer %u slot %u", a.taken - 1, e->producer,
			e->slot);
		return true;
	}
	if (w.external)
		engine_offer(e);
	s = &a.slot[e->producer][e->slot];
	part = 1u << e->part;
	a.n_late += e->incarnation < w.d->incarnation;
	if (e->ticket < s->ticket) {
		if (!w.late)
			wrong("an entry for ticket %" PRIx64 " after %" PRIx64, e->ticket,
				s->ticket);
		return true;
	}
	if (e->ticket > s->ticket) {
		s->ticket = e->ticket;
		s->delivered = s->unmarked = 0;
	}
	if (e->status != TOKG_OK)
		return true;
	/* All that a dead producer has published is read before its successor comes. */
	if (e->epoch != a.epoch[e->producer]) {
		if (w.late)
			return true;
		wrong("text %" PRIu64 " is of epoch %u, of a predecessor", e->request, e->epoch);
	}
	if (!e->redo && ((w.late ? s->unmarked : s->delivered) & part))
		wrong("text %" PRIu64 " was embedded twice and is not marked", e->request);
	s->unmarked |= e->redo ? 0 : part;
	if (s->delivered & part)
		a.n_dropped++;
	else
		deliver(e);
	s->delivered |= part;
	return true;
}

static bool
take_all(void)
{
	while (agent_take())
		;
	return a.taken == __atomic_load_n(&w.d->outbox->reserved, __ATOMIC_ACQUIRE);
}

static bool
is_held(uint32_t producer, uint32_t slot)
{
	for (uint32_t i = 0; i < a.n_holds; i++)
		if (a.hold[i].e.producer == producer && (slot == SLOTS || a.hold[i].e.slot == slot))
			return true;
	return false;
}

/* In the order of posting: slots that are done, whose entries are read, and of which no output is
 * held. */
static void
release(uint32_t p)
{
	for (;;) {
		const uint32_t i = (uint32_t)(a.turn[p] % SLOTS);
		struct seen *const s = &a.slot[p][i];

		if (done_of(p, i) == s->passed || !take_all() || is_held(p, i))
			return;
		s->passed++;
		back_write(p, offsetof(struct tokg_back, released), ++a.turn[p]);
	}
}

void
agent_step(void)
{
	a.steps++;
	for (uint32_t n = below(&a.dice, 8); n > 0 && agent_take(); n--)
		;
	for (uint32_t i = 0; i < a.n_holds;) {
		if (a.hold[i].until > a.steps) {
			i++;
			continue;
		}
		look(&a.hold[i].e);
		a.hold[i] = a.hold[--a.n_holds];
	}
	for (uint32_t p = 0; p < PRODUCERS; p++) {
		back_write(p, offsetof(struct tokg_back, heartbeat), a.steps);
		release(p);
	}
}

void
agent_end(uint32_t producer)
{
	epoch_write(producer, 0);
}

static uint32_t
turn_at(uint64_t offset)
{
	return TOKG_LANE_TURN(load(offset));
}

uint32_t
agent_grant(uint32_t producer)
{
	const struct tokg_geometry *g = &w.d->geometry;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (load(tokg_hdr_at(g, producer, i) + offsetof(struct tokg_hdr, ticket)) !=
			done_of(producer, i))
			return 0;
	for (uint32_t i = 0; i < w.lanes; i++)
		if (turn_at(tokg_opened_at(g, producer, i)) !=
			turn_at(tokg_ended_at(g, producer, i)))
			return 0;
	if (!take_all() || is_held(producer, SLOTS))
		return 0;
	for (uint32_t i = 0; i < SLOTS; i++)
		a.slot[producer][i].passed = done_of(producer, i);
	for (uint32_t i = 0; i < w.lanes; i++)
		w.d->ops->write_u64(w.d, tokg_ask_at(g, producer, i), 0);
	a.turn[producer] = 0;
	back_write(producer, offsetof(struct tokg_back, released), 0);
	a.epoch[producer] = ++a.last_epoch;
	epoch_write(producer, a.last_epoch);
	return a.last_epoch;
}

void
agent_judge(void)
{
	take_all(); /* the last may have no seq: the consumer was stopped */
	printf("# %" PRIu64 " entries: OK %" PRIu64 ", BADSUM %" PRIu64 ", STALE %" PRIu64
	       ", BADHDR %" PRIu64 ", CPU %" PRIu64 "; %" PRIu64 " marked as done again, %" PRIu64
	       " of them delivered before, %" PRIu64 " never written; %" PRIu64 " texts encoded\n",
		a.taken, a.status[TOKG_OK], a.status[TOKG_BADSUM], a.status[TOKG_STALE],
		a.status[TOKG_BADHDR], a.status[TOKG_CPU], a.n_redo, a.n_dropped, a.n_holes,
		a.n_texts);
	if (a.n_texts == 0 || a.status[TOKG_CPU] == 0)
		wrong("there were no texts of a kind");
	if (a.n_parts == 0)
		wrong("there was no BATCH");
	if (INJECT && a.n_redo == 0)
		wrong("nothing was done again");
	if (INJECT && w.any_order && a.status[TOKG_BADSUM] == 0)
		wrong("no payload was found damaged");
	if (w.late && a.n_late == 0)
		wrong("no worker was late");
}
