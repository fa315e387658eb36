/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC. With TOKG_INJECT writes land in pieces of 8 bytes, late, in order or in any; without it at
 * once.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "stress.h"
#include "transport/transport_inside.h"

#define WIRE 65536
#define DONE_AT (sizeof(struct tokg_back) / 8)
#define LOG_AT (DONE_AT + SLOTS + w.lanes)

static uint64_t *
word_at(uint64_t offset)
{
	return (uint64_t *)((uint8_t *)w.d->region + offset);
}

/* A piece that lands may not pass an earlier one of the same word. */
static void
land_one(struct nic *n)
{
	uint32_t i = w.any_order ? below(&n->dice, n->flying) : 0;

	for (uint32_t k = 0; k < i; k++)
		if (n->wire[k].to == n->wire[i].to)
			i = k;
	__atomic_store_n(
		n->wire[i].to, n->wire[i].value, w.any_order ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
	n->before_read -= i < n->before_read;
	n->flying--;
	memmove(n->wire + i, n->wire + i + 1, (n->flying - i) * sizeof(*n->wire));
}

void
nic_land(struct nic *n, uint32_t most)
{
	for (; most > 0 && n->flying > 0; most--)
		land_one(n);
}

static void
fly(struct nic *n, uint64_t offset, const void *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes / 8; i++) {
		memcpy(&n->wire[n->flying].value, (const uint8_t *)from + 8ull * i, 8);
		n->wire[n->flying++].to = word_at(offset) + i;
	}
}

static int
nic_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	struct nic *n = (struct nic *)t;
	const uint64_t at = tokg_payload_at(&t->geometry, t->producer, slot);
	const uint64_t hdr_at = tokg_hdr_at(&t->geometry, t->producer, slot);

	if (n->is_broken)
		return -1;
	if (!INJECT) {
		memcpy(word_at(at), payload, bytes);
		memcpy(word_at(hdr_at), hdr, offsetof(struct tokg_hdr, ticket));
		__atomic_store_n(word_at(hdr_at) + 7, hdr->ticket, __ATOMIC_RELEASE);
		return 1;
	}
	if (n->flying + (bytes + sizeof(*hdr)) / 8 > WIRE)
		return 0;
	fly(n, at, payload, bytes);
	if (order == TOKG_ORDER_STRICT)
		nic_land(n, WIRE);
	fly(n, hdr_at, hdr, sizeof(*hdr));
	return 1;
}

static int
nic_ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	struct nic *n = (struct nic *)t;
	const uint64_t at = tokg_ask_at(&t->geometry, t->producer, lane);

	if (n->is_broken)
		return -1;
	if (!INJECT) {
		__atomic_store_n(word_at(at), word, __ATOMIC_RELEASE);
		return 1;
	}
	/* The queue is full, now and then. */
	if (n->flying == WIRE || below(&n->dice, 16) == 0)
		return 0;
	fly(n, at, &word, sizeof(word));
	return 1;
}

static int
nic_flush(struct tokg_transport *t)
{
	return ((struct nic *)t)->is_broken ? -1 : 0;
}

/* The log may be older than `ended`, and that than `done`. */
static void
read_now(struct nic *n)
{
	const uint64_t *from = word_at(tokg_back_at(&n->t.geometry, n->t.producer));

	for (uint32_t i = n->t.read_bytes / 8; i-- > 0;) {
		const uint64_t now = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);

		if (i >= DONE_AT && i < DONE_AT + SLOTS && now >> 8 < n->copy[i] >> 8)
			wrong("producer %u: done %" PRIx64 " after %" PRIx64, n->t.producer, now,
				n->copy[i]);
		n->copy[i] = now;
		if (INJECT && i == LOG_AT && below(&n->dice, 8) == 0)
			sched_yield();
	}
	n->t.n_reads++;
	n->read_asked = false;
}

static int
nic_poll(struct tokg_transport *t)
{
	struct nic *n = (struct nic *)t;

	if (n->is_broken)
		return -1;
	if (n->read_asked && n->before_read == 0 && below(&n->dice, 2) == 0)
		read_now(n);
	return 0;
}

static int
nic_read_back(struct tokg_transport *t)
{
	struct nic *n = (struct nic *)t;

	if (n->is_broken)
		return -1;
	if (n->read_asked)
		return 0;
	n->read_asked = true;
	n->before_read = n->flying;
	if (!INJECT)
		read_now(n);
	return 1;
}

static int
nic_reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	struct nic *n = (struct nic *)t;

	(void)err;
	/* Meanwhile writes of the old connection land. */
	if (below(&n->dice, 4) != 0)
		return 0;
	nic_connect(n, t->epoch);
	for (uint32_t i = 0; i < SLOTS; i++)
		tickets[i] = load(tokg_hdr_at(&t->geometry, t->producer, i) +
				  offsetof(struct tokg_hdr, ticket));
	return 1;
}

void
nic_connect(struct nic *n, uint32_t epoch)
{
	n->t.epoch = epoch;
	n->t.read_bytes = tokg_back_bytes(&n->t.geometry, true);
	n->is_broken = n->read_asked = false;
	n->flying = n->before_read = 0;
}

void
nic_make(struct nic *n, uint32_t producer, uint64_t seed)
{
	static const struct tokg_transport_ops ops = {
		.name = "test",
		.post = nic_post,
		.ask = nic_ask,
		.flush = nic_flush,
		.poll = nic_poll,
		.read_back = nic_read_back,
		.reconnect = nic_reconnect,
	};

	n->dice = seed;
	n->wire = calloc(WIRE, sizeof(*n->wire));
	n->copy = tokg_own_memory(w.d->geometry.back_stride, -1);
	n->t = (struct tokg_transport){.ops = &ops,
		.geometry = w.d->geometry,
		.producer = producer,
		.ring_epoch = 1,
		.back = (struct tokg_back *)n->copy,
		.done = n->copy + DONE_AT};
}
