/* SPDX-License-Identifier: BSD-3-Clause */
#include "producers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "tables_inside.h"

bool
tokg_producers_create(struct tokg_producers *p, struct tokg_device *device, uint32_t ring_epoch,
	const struct tokg_producers_calls *calls)
{
	const struct tokg_geometry *g = &device->geometry;

	memset(p, 0, sizeof(*p));
	p->calls = *calls;
	p->device = device;
	p->geometry = *g;
	p->ring_epoch = ring_epoch;
	p->producer = calloc(g->producers, sizeof(*p->producer));
	p->done = calloc(g->slots, sizeof(*p->done));
	p->hdr = calloc(g->slots, sizeof(*p->hdr));
	p->lane = calloc(2 * g->lanes + 1, sizeof(*p->lane));
	if (p->producer == NULL || p->done == NULL || p->hdr == NULL || p->lane == NULL) {
		tokg_producers_free(p);
		return false;
	}
	for (uint32_t i = 0; i < g->producers; i++) {
		if (!tokg_postings_create(&p->producer[i].postings, g)) {
			tokg_producers_free(p);
			return false;
		}
	}
	return true;
}

void
tokg_producers_free(struct tokg_producers *p)
{
	for (uint32_t i = 0; p->producer != NULL && i < p->geometry.producers; i++)
		tokg_postings_free(&p->producer[i].postings);
	free(p->producer);
	free(p->done);
	free(p->hdr);
	free(p->lane);
	memset(p, 0, sizeof(*p));
}

static void
write_word(struct tokg_producers *p, uint32_t producer, size_t field, uint64_t value)
{
	const uint64_t at = tokg_back_at(&p->geometry, producer) + field;

	if (p->device->ops->write_u64(p->device, at, value) < 0)
		p->broken = true;
}

/* The thread that delivers does not wait for it: on a GPU that takes longer than the write. */
static void
write_word_later(struct tokg_producers *p, uint32_t producer, size_t field, uint64_t value)
{
	const uint64_t at = tokg_back_at(&p->geometry, producer) + field;

	if (p->device->ops->write_u64_later(p->device, at, value) < 0)
		p->broken = true;
}

/* Epoch and incarnation share a word. */
static void
write_epoch(struct tokg_producers *p, uint32_t producer, uint32_t epoch)
{
	static_assert(offsetof(struct tokg_back, epoch) % 8 == 0 &&
			      offsetof(struct tokg_back, incarnation) ==
				      offsetof(struct tokg_back, epoch) + 4,
		"written as one word");
	write_word(p, producer, offsetof(struct tokg_back, epoch),
		epoch | (uint64_t)p->device->incarnation << 32);
}

static bool
read_done(struct tokg_producers *p, uint32_t producer)
{
	if (p->device->ops->read(p->device, tokg_done_at(&p->geometry, producer, 0), p->done,
		    p->geometry.slots * sizeof(*p->done)) < 0)
		p->broken = true;
	return !p->broken;
}

bool
tokg_producers_taken(struct tokg_producers *p, uint64_t *n)
{
	if (p->device->ops->taken(p->device, n) < 0)
		p->broken = true;
	return !p->broken;
}

void
tokg_producers_end(struct tokg_producers *p, uint32_t producer)
{
	struct tokg_producer *t = &p->producer[producer];

	if (t->state == TOKG_PRODUCER_FREE || t->state == TOKG_PRODUCER_ENDING)
		return;
	if (t->state == TOKG_PRODUCER_TAKEN)
		p->calls.disconnect(p->calls.owner, t->link);
	t->state = TOKG_PRODUCER_ENDING;
	p->calls.fence(p->calls.owner, producer);
	write_epoch(p, producer, 0);
	t->since_ns = 0;
	t->all_done = false;
	p->ended++;
}

static int
resume(struct tokg_producers *p, const struct tokg_hello *h, uint64_t link, uint32_t *producer,
	struct tokg_error *err)
{
	struct tokg_producer *t;
	uint64_t before;

	if (h->ring_epoch != p->ring_epoch) {
		tokg_agent_wrong(
			err, "no producer slot to resume: the agent was restarted meanwhile");
		return -1;
	}
	t = h->resume < p->geometry.producers ? &p->producer[h->resume] : NULL;
	if (t == NULL || (t->state != TOKG_PRODUCER_TAKEN && t->state != TOKG_PRODUCER_KEPT) ||
		t->epoch != h->epoch || t->instance != h->instance || t->worker != h->worker) {
		tokg_agent_wrong(err,
			"producer %u, epoch %u cannot be resumed: it ended %d ms after its "
			"connection, or belongs to another worker; ask for a new one",
			h->resume, h->epoch, (int)(TOKG_KEEP_NS / 1000000));
		return -1;
	}
	before = t->link;
	t->link = link;
	if (t->state == TOKG_PRODUCER_TAKEN && before != link)
		p->calls.disconnect(p->calls.owner, before);
	t->state = TOKG_PRODUCER_TAKEN;
	*producer = h->resume;
	p->resumes++;
	return 1;
}

/*
 * A successor must not get what its predecessor asked for. What still lands has the epoch of that,
 * but its bits wrap.
 */
static void
clear_asks(struct tokg_producers *p, uint32_t producer)
{
	struct tokg_device *const d = p->device;
	const uint32_t n = p->geometry.lanes;
	const uint64_t at = tokg_ask_at(&p->geometry, producer, 0);

	/* A write to a GPU is slow, and few lanes were used. */
	if (n > 0 && d->ops->read(d, at, p->lane, 8ull * n) < 0)
		p->broken = true;
	for (uint32_t i = 0; i < n && !p->broken; i++)
		p->broken = p->lane[i] != 0 && d->ops->write_u64(d, at + 8ull * i, 0) < 0;
}

static bool
ids_fit(const struct tokg_producers *p, const struct tokg_hello *h, struct tokg_error *err)
{
	for (uint32_t i = 0; i < h->n_vocabs; i++) {
		if (h->n_ids[i] > p->geometry.n_ids)
			return tokg_agent_wrong(err,
				"vocabulary 0x%08x has %u ids, the table %u rows: give tokd-gpu "
				"the table of its model",
				h->vocab[i], h->n_ids[i], p->geometry.n_ids);
	}
	return true;
}

/* A worker with a new hello will not resume its old producer slot. */
static void
end_predecessor(struct tokg_producers *p, const struct tokg_hello *h)
{
	for (uint32_t i = 0; i < p->geometry.producers; i++) {
		struct tokg_producer *t = &p->producer[i];

		if (t->state == TOKG_PRODUCER_FREE || t->instance != h->instance ||
			t->worker != h->worker)
			continue;
		tokg_producers_end(p, i);
		t->shed_below = h->shed_below;
		t->shed_due = false; /* the successor's is the same */
	}
}

int
tokg_producers_grant(struct tokg_producers *p, const struct tokg_hello *h, uint64_t link,
	uint64_t now_ns, uint32_t *producer, struct tokg_error *err)
{
	uint32_t soon = 0, i;
	struct tokg_producer *t;

	if (!ids_fit(p, h, err))
		return -1;
	if (h->resume != TOKG_NO_PRODUCER)
		return resume(p, h, link, producer, err);
	end_predecessor(p, h);
	for (i = 0; i < p->geometry.producers && p->producer[i].state != TOKG_PRODUCER_FREE; i++)
		soon += p->producer[i].state != TOKG_PRODUCER_TAKEN;
	if (i == p->geometry.producers) {
		tokg_agent_wrong(err,
			soon > 0
				? "all %u producer slots are taken, %u of them are ending: try again"
				: "all %u producer slots are taken: raise --producers of tokd-gpu",
			p->geometry.producers, soon);
		return soon > 0 ? 0 : -1;
	}
	t = &p->producer[i];
	if (!read_done(p, i)) {
		tokg_agent_wrong(err, "the device does not answer");
		return -1;
	}
	for (uint32_t s = 0; s < p->geometry.slots; s++)
		p->done[s] >>= 8;
	tokg_postings_begin(&t->postings, p->done);
	if (++p->last_epoch == 0)
		p->last_epoch = 1;
	t->state = TOKG_PRODUCER_TAKEN;
	t->epoch = p->last_epoch;
	t->worker = h->worker;
	t->instance = h->instance;
	t->link = link;
	t->since_ns = now_ns;
	t->released = 0;
	t->shed_below = h->shed_below;
	t->shed_due = h->shed_below != 0;
	write_word(p, i, offsetof(struct tokg_back, released), 0);
	clear_asks(p, i);
	write_epoch(p, i, t->epoch);
	p->grants++;
	*producer = i;
	return 1;
}

void
tokg_producers_left(struct tokg_producers *p, uint64_t link, uint64_t now_ns)
{
	for (uint32_t i = 0; i < p->geometry.producers; i++) {
		struct tokg_producer *t = &p->producer[i];

		if (t->state == TOKG_PRODUCER_TAKEN && t->link == link) {
			t->state = TOKG_PRODUCER_KEPT;
			t->since_ns = now_ns;
		}
	}
}

/* `now_ns` may be older than `since_ns`. */
static bool
is_expired(uint64_t now_ns, uint64_t since_ns, uint64_t limit_ns)
{
	return now_ns > since_ns && now_ns - since_ns >= limit_ns;
}

/* Call when all slots are done. True: no text has a lane. */
static bool
all_ended(struct tokg_producers *p, uint32_t producer)
{
	const struct tokg_geometry *g = &p->geometry;
	const size_t bytes = g->lanes * sizeof(*p->lane);
	const uint64_t *opened = p->lane, *ended = p->lane + g->lanes;

	if (g->lanes == 0)
		return true;
	if (p->device->ops->read(p->device, tokg_opened_at(g, producer, 0), p->lane, bytes) < 0 ||
		p->device->ops->read(
			p->device, tokg_ended_at(g, producer, 0), p->lane + g->lanes, bytes) < 0)
		p->broken = true;
	for (uint32_t i = 0; i < g->lanes; i++) {
		if (TOKG_LANE_TURN(opened[i]) != TOKG_LANE_TURN(ended[i]))
			return false;
	}
	return !p->broken;
}

/* All published slots are done. */
static bool
all_done(struct tokg_producers *p, uint32_t producer)
{
	if (p->device->ops->read(p->device, tokg_hdr_at(&p->geometry, producer, 0), p->hdr,
		    p->geometry.slots * sizeof(*p->hdr)) < 0)
		p->broken = true;
	if (!read_done(p, producer))
		return false;
	for (uint32_t s = 0; s < p->geometry.slots; s++) {
		if (p->hdr[s].ticket == (p->done[s] >> 8) + 1)
			return false;
	}
	return true;
}

/*
 * The consumer writes outbox entries before `done`: when all slots are done, all entries are in the
 * outbox. Entries that are still pending then follow a slot that was never published.
 */
static void
check_ending(struct tokg_producers *p, uint32_t i, uint64_t now_ns, uint64_t read)
{
	struct tokg_producer *t = &p->producer[i];
	uint32_t dropped;

	if (!t->all_done) {
		if (!is_expired(now_ns, t->since_ns, TOKG_ENDING_CHECK_NS))
			return;
		t->since_ns = now_ns;
		t->all_done =
			all_done(p, i) && all_ended(p, i) && tokg_producers_taken(p, &t->all_read);
	}
	if (!t->all_done || read < t->all_read)
		return;
	tokg_postings_settle(&t->postings, NULL);
	dropped = tokg_postings_drop_pending(&t->postings);
	if (dropped > 0)
		tokg_log_warning(
			"producer %u: dropped %u entries after a slot that was never posted", i,
			dropped);
	if (tokg_postings_idle(&t->postings))
		t->state = TOKG_PRODUCER_FREE;
}

void
tokg_producers_poll(struct tokg_producers *p, uint64_t now_ns, uint64_t read)
{
	const bool beat = now_ns - p->beat_ns >= TOKG_HEARTBEAT_NS;

	if (beat) {
		p->beat_ns = now_ns;
		p->heartbeat++;
	}
	for (uint32_t i = 0; i < p->geometry.producers; i++) {
		struct tokg_producer *t = &p->producer[i];

		if (t->state == TOKG_PRODUCER_FREE)
			continue;
		if (beat)
			write_word_later(p, i, offsetof(struct tokg_back, heartbeat), p->heartbeat);
		if (t->state == TOKG_PRODUCER_KEPT && is_expired(now_ns, t->since_ns, TOKG_KEEP_NS))
			tokg_producers_end(p, i);
		if (t->state == TOKG_PRODUCER_ENDING)
			check_ending(p, i, now_ns, read);
	}
}

void
tokg_producers_settle(struct tokg_producers *p)
{
	for (uint32_t i = 0; i < p->geometry.producers; i++) {
		struct tokg_postings *q = &p->producer[i].postings;

		if (tokg_postings_waits(q) && read_done(p, i))
			tokg_postings_settle(q, p->done);
	}
}

void
tokg_producers_release(struct tokg_producers *p, uint64_t passed)
{
	for (uint32_t i = 0; i < p->geometry.producers; i++) {
		struct tokg_producer *t = &p->producer[i];
		const uint64_t oldest = tokg_postings_oldest(&t->postings);
		uint64_t released;

		if (oldest == UINT64_MAX || oldest > passed || !read_done(p, i))
			continue;
		released = tokg_postings_release(&t->postings, passed, p->done);
		if (released == t->released)
			continue;
		t->released = released;
		if (t->state != TOKG_PRODUCER_ENDING)
			write_word_later(p, i, offsetof(struct tokg_back, released), released);
	}
}
