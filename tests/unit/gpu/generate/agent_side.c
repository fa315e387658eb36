/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the outbox, releases outputs at once, grants epochs: as tokd-gpu without subscribers. */
#include "generate.h"

uint64_t
region_load(const struct tokg_device *d, uint64_t offset)
{
	return __atomic_load_n(
		(const uint64_t *)((const uint8_t *)d->region + offset), __ATOMIC_ACQUIRE);
}

static uint64_t
done_of(const struct agent *a, uint32_t producer, uint32_t slot)
{
	return region_load(a->d, tokg_done_at(&a->d->geometry, producer, slot)) >> 8;
}

static void
back_write(struct agent *a, uint32_t producer, size_t field, uint64_t value)
{
	a->d->ops->write_u64(a->d, tokg_back_at(&a->d->geometry, producer) + field, value);
}

static void
epoch_write(struct agent *a, uint32_t producer, uint32_t epoch)
{
	back_write(a, producer, offsetof(struct tokg_back, epoch),
		(uint64_t)a->d->incarnation << 32 | epoch);
}

/* True: all that is reserved has been read. */
static bool
read_entries(struct agent *a)
{
	const struct tokg_out_entry *e = tokg_outbox_entry(a->d->outbox, a->taken);

	while (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) == a->taken + 1) {
		if (a->engine != NULL)
			engine_offer(a->engine, e);
		e = tokg_outbox_entry(a->d->outbox, ++a->taken);
	}
	return a->taken == __atomic_load_n(&a->d->outbox->reserved, __ATOMIC_ACQUIRE);
}

static void
release(struct agent *a, uint32_t p)
{
	for (;;) {
		uint64_t *const passed = &a->passed[p][a->turn[p] % SLOTS];

		if (done_of(a, p, (uint32_t)(a->turn[p] % SLOTS)) == *passed || !read_entries(a))
			return;
		++*passed;
		back_write(a, p, offsetof(struct tokg_back, released), ++a->turn[p]);
	}
}

void
agent_step(struct agent *a)
{
	read_entries(a);
	a->heartbeat++;
	for (uint32_t p = 0; p < PRODUCERS; p++) {
		back_write(a, p, offsetof(struct tokg_back, heartbeat), a->heartbeat);
		release(a, p);
	}
}

void
agent_end(struct agent *a, uint32_t producer)
{
	epoch_write(a, producer, 0);
}

static uint32_t
turn_at(const struct agent *a, uint64_t offset)
{
	return TOKG_LANE_TURN(region_load(a->d, offset));
}

uint32_t
agent_grant(struct agent *a, uint32_t producer)
{
	const struct tokg_geometry *g = &a->d->geometry;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (region_load(a->d,
			    tokg_hdr_at(g, producer, i) + offsetof(struct tokg_hdr, ticket)) !=
			done_of(a, producer, i))
			return 0;
	for (uint32_t i = 0; i < LANES; i++)
		if (turn_at(a, tokg_opened_at(g, producer, i)) !=
			turn_at(a, tokg_ended_at(g, producer, i)))
			return 0;
	if (!read_entries(a))
		return 0;
	for (uint32_t i = 0; i < SLOTS; i++)
		a->passed[producer][i] = done_of(a, producer, i);
	for (uint32_t i = 0; i < LANES; i++)
		a->d->ops->write_u64(a->d, tokg_ask_at(g, producer, i), 0);
	a->turn[producer] = 0;
	back_write(a, producer, offsetof(struct tokg_back, released), 0);
	epoch_write(a, producer, ++a->last_epoch);
	return a->last_epoch;
}
