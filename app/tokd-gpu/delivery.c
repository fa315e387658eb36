/* SPDX-License-Identifier: BSD-3-Clause */
#include "delivery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <monotonic.h>

#include "log.h"
#include "tables_inside.h"

#define POLL_MAX 256 /* entries per poll and producer */

static uint32_t
ring_entries(const struct tokg_geometry *g)
{
	const uint64_t most = g->producers * (g->out_bytes / TOKG_OUT_ALIGN + g->slots);
	uint32_t n = 64;

	while (n < most && n < TOKG_RING_ENTRIES_MAX)
		n *= 2;
	return n;
}

bool
tokg_delivery_create(struct tokg_delivery *d, struct tokg_producers *producers, uint64_t instance,
	struct tokg_error *err)
{
	const uint32_t n = ring_entries(&producers->geometry);

	memset(d, 0, sizeof(*d));
	d->producers = producers;
	d->outbox = producers->device->outbox;
	if (producers->device->external_engine)
		d->area = tokg_engine_area_plan(&producers->geometry);
	d->ring_bytes = TOKG_EMB_DATA + (size_t)n * sizeof(struct tokg_embedding);
	d->ring_fd = memfd_create("tokd-embeddings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (d->ring_fd < 0 || ftruncate(d->ring_fd, (off_t)d->ring_bytes) != 0)
		goto failed;
	d->ring = mmap(NULL, d->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		d->ring_fd, 0);
	if (d->ring == MAP_FAILED) {
		d->ring = NULL;
		goto failed;
	}
	/* After mapping it, which stays writable. */
	if (fcntl(d->ring_fd, F_ADD_SEALS,
		    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
		goto failed;
	d->entry = (struct tokg_embedding *)((uint8_t *)d->ring + TOKG_EMB_DATA);
	d->ring->version = TOKG_EMB_VERSION;
	d->ring->entries = n;
	d->ring->instance = instance;
	d->ring->magic = TOKG_EMB_MAGIC;
	return true;
failed:
	tokg_agent_wrong(err, "cannot create the subscribers' ring of %zu bytes: %s", d->ring_bytes,
		strerror(errno));
	tokg_delivery_free(d);
	return false;
}

void
tokg_delivery_free(struct tokg_delivery *d)
{
	if (d->ring != NULL)
		munmap(d->ring, d->ring_bytes);
	if (d->ring_fd >= 0)
		close(d->ring_fd);
	d->ring = NULL;
	d->ring_fd = -1;
}

/* The outbox wrapped before it was read: ends all producers. 0: the device does not answer. */
static int
overrun(struct tokg_delivery *d)
{
	tokg_log_warning(
		"the outbox wrapped before it was read: a producer posts more than its outputs "
		"hold; ending all producers");
	d->counts.overruns++;
	if (!tokg_producers_taken(d->producers, &d->n_read))
		return 0;
	for (uint32_t i = 0; i < d->producers->geometry.producers; i++)
		tokg_producers_end(d->producers, i);
	return 1;
}

static void
take(struct tokg_delivery *d, const struct tokg_out_entry *e)
{
	const struct tokg_geometry *g = &d->producers->geometry;
	enum tokg_take taken = TOKG_IMPOSSIBLE;

	if (e->status == 0) { /* a hole that the device marked at a restart */
		d->counts.holes++;
		return;
	}
	if (e->producer < g->producers && e->slot < g->slots)
		taken = tokg_postings_take(&d->producers->producer[e->producer].postings, e);
	if (taken == TOKG_TAKEN && e->part == 0)
		d->counts.status[e->status & 15]++;
	if (taken != TOKG_IMPOSSIBLE)
		return;
	d->counts.impossible++;
	if (e->producer >= g->producers ||
		d->producers->producer[e->producer].state == TOKG_PRODUCER_ENDING)
		return; /* already logged */
	tokg_log_warning("producer %u: slot %u, ticket %" PRIu64
			 ", part %u of %u is out of order: ending its epoch",
		e->producer, e->slot, e->ticket, e->part, e->parts);
	tokg_producers_end(d->producers, e->producer);
}

/* 1: one was read; 0: none is there. */
static int
read_one(struct tokg_delivery *d)
{
	const struct tokg_out_entry *e = tokg_outbox_entry(d->outbox, d->n_read);
	const uint64_t seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);
	struct tokg_out_entry copy;

	if (seq == d->n_read + 1) {
		copy = *e;
		atomic_thread_fence(memory_order_acquire);
		if (__atomic_load_n(&e->seq, __ATOMIC_RELAXED) == seq) {
			d->n_read++;
			take(d, &copy);
			return 1;
		}
	} else if (seq <= d->n_read) {
		if (d->n_read >= d->holes)
			return 0;
		d->n_read++;
		d->counts.holes++;
		return 1;
	}
	return overrun(d);
}

/* Are there valid rows for subscribers? */
static bool
has_rows(const struct tokg_delivery *d, const struct tokg_out_entry *e)
{
	const struct tokg_geometry *g = &d->producers->geometry;
	const uint64_t bytes = (uint64_t)e->tokens * g->row_bytes;
	const uint64_t at = e->out_off & (g->out_bytes - 1);

	if (e->status != TOKG_OK && e->status != TOKG_BADID && e->status != TOKG_BADPOS)
		return false;
	return e->out_off % TOKG_OUT_ALIGN == 0 && bytes <= g->out_bytes - at;
}

/* Release: with the new head a subscriber sees the entry. */
static void
publish(struct tokg_delivery *d)
{
	d->head++;
	d->counts.entries++;
	__atomic_store_n(&d->ring->head, d->head, __ATOMIC_RELEASE);
}

static bool
is_full(struct tokg_delivery *d)
{
	if (d->head - d->tail < d->ring->entries)
		return false;
	d->full = true;
	return true;
}

/* Before what else comes of this producer. False: no room. */
static bool
tell_shed(struct tokg_delivery *d, struct tokg_producer *t, uint32_t producer)
{
	if (!t->shed_due)
		return true;
	if (is_full(d))
		return false;
	d->entry[d->head & (d->ring->entries - 1)] = (struct tokg_embedding){
		.instance = t->instance,
		.request = t->shed_below - 1,
		.worker = t->worker,
		.producer = producer,
		.epoch = t->epoch,
		.flags = TOKG_ABORT,
		.status = TOKG_SHED,
		.t_ready = monotonic_ns(),
	};
	publish(d);
	d->counts.status[TOKG_SHED]++;
	t->shed_due = false;
	return true;
}

void
tokg_delivery_tell_shed(struct tokg_delivery *d)
{
	for (uint32_t i = 0; i < d->producers->geometry.producers; i++) {
		struct tokg_producer *t = &d->producers->producer[i];

		t->shed_due = t->shed_below != 0 &&
			      (t->state == TOKG_PRODUCER_TAKEN || t->state == TOKG_PRODUCER_KEPT);
	}
}

static void
deliver(struct tokg_delivery *d, const struct tokg_producer *t, const struct tokg_out_entry *e)
{
	const struct tokg_geometry *g = &d->producers->geometry;
	const uint64_t offset = e->producer * g->out_bytes + (e->out_off & (g->out_bytes - 1));
	const bool engine = d->producers->device->external_engine;

	d->entry[d->head & (d->ring->entries - 1)] = (struct tokg_embedding){
		.instance = t->instance,
		.request = e->request,
		.worker = t->worker,
		.producer = e->producer,
		.epoch = e->epoch,
		.slot = e->slot,
		.ticket = e->ticket,
		.part = e->part,
		.flags = e->flags & (uint16_t)~TOKG_TEXT, /* of the ring alone */
		.status = e->status,
		.first = e->first,
		.tokens = e->tokens,
		.offset = offset,
		.t_post = e->t_post,
		.visible = e->visible,
		.embedded = e->embedded,
		.t_ready = monotonic_ns(),
		.ids = engine ? tokg_engine_ids_at(&d->area, offset) : 0,
		.lane = e->lane,
		.use = e->use,
	};
	d->counts.rows += e->tokens;
	publish(d);
}

static uint32_t
deliver_ready(struct tokg_delivery *d, struct tokg_producer *t)
{
	const struct tokg_out_entry *e;
	uint32_t n = 0;
	bool again;

	if (!tell_shed(d, t, (uint32_t)(t - d->producers->producer)))
		return 0;
	for (; n < POLL_MAX && (e = tokg_postings_ready(&t->postings, &again)) != NULL; n++) {
		if (!again && has_rows(d, e) && e->request >= t->shed_below) {
			if (is_full(d))
				break;
			deliver(d, t, e);
		}
		tokg_postings_give(&t->postings, d->head);
	}
	return n;
}

uint32_t
tokg_delivery_poll(struct tokg_delivery *d)
{
	uint32_t n = 0;

	while (n < POLL_MAX && read_one(d) > 0)
		n++;
	tokg_producers_settle(d->producers);
	d->full = false;
	for (uint32_t i = 0; i < d->producers->geometry.producers; i++)
		n += deliver_ready(d, &d->producers->producer[i]);
	return n;
}

void
tokg_delivery_passed(struct tokg_delivery *d, uint64_t position)
{
	if (position != d->tail) {
		d->tail = position;
		/* Before rows are overwritten: a subscriber that then reads the old tail used
		 * valid rows. */
		__atomic_store_n(&d->ring->tail, position, __ATOMIC_RELEASE);
		atomic_thread_fence(memory_order_seq_cst);
	}
	/* Every time: more slots may be done. */
	tokg_producers_release(d->producers, position);
}

void
tokg_delivery_consumer_ended(struct tokg_delivery *d)
{
	(void)tokg_producers_taken(d->producers, &d->holes); /* on failure `broken` is set */
}

bool
tokg_delivery_idle(const struct tokg_delivery *d)
{
	uint64_t taken;

	for (uint32_t i = 0; i < d->producers->geometry.producers; i++) {
		if (!tokg_postings_idle(&d->producers->producer[i].postings))
			return false;
	}
	return tokg_producers_taken(d->producers, &taken) && d->n_read == taken;
}
