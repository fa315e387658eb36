/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure DEVICE REQUESTS: how long a look at 4,096 slots, an embedding of 2048 x 768 fp32, and a
 * slot from posting to reading `done` take on the device, as JSON: median and p99. Where the ring
 * is not mapped, the driver posts, and the name says so. With TOKD_GPU_RING=host the ring is
 * mapped, and as large as tokd-gpu's: 256 slots. Tables are made from a seed.
 *
 * Looks are timed one by one by the consumer's own clock, without the pause between two and with
 * the launch that times them; and from outside, pauses included, as means of windows of 256.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "post.h"

#define TOKENS 2048
#define DIM 768
#define IDS 50257
#define WINDOWS_LEAST 32 /* enough for as many single looks as are kept */

static int
by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
print(const char *name, uint64_t *ns, uint32_t n)
{
	qsort(ns, n, sizeof(*ns), by_value);
	printf(", \"%s\": {\"n\": %u, \"p50\": %.2f, \"p99\": %.2f}", name, n,
		(double)ns[n / 2] / 1e3, (double)ns[n - 1 - n / 100] / 1e3);
}

/*
 * While nothing is posted: ns of one scan, each the mean of a window of 256 scans or a multiple,
 * which is how often the heartbeat is written. Up to `n` windows, within 5 s; how many there were.
 */
static uint32_t
scan_windows(struct tokg_device *d, uint64_t *ns, uint32_t n)
{
	const uint64_t until = post_now() + 5000000000ull;
	uint64_t was = 0, since = 0, scans, now = 0;
	uint32_t i = 0;

	while (i < n && now < until) {
		if (d->ops->read(d, offsetof(struct tokg_ctl, heartbeat), &scans, 8) < 0)
			post_fail("the region cannot be read");
		now = post_now();
		if (scans == was)
			continue;
		if (since != 0)
			ns[i++] = (now - since) / (scans - was);
		since = was != 0 ? now : 0;
		was = scans;
	}
	return i;
}

/* Of the last looks, one by one; the consumer has been stopped. How many there are. */
static uint32_t
scans(const struct tokg_scan_times *t, uint64_t *ns, uint32_t n)
{
	const uint64_t ticks = t->tick[1] - t->tick[0];
	const uint64_t all = t->n < TOKG_SCAN_TIMES ? t->n : TOKG_SCAN_TIMES;

	if (t->n < 1000 || ticks == 0)
		post_fail("%" PRIu64 " looks at the ring were timed, too few", t->n);
	for (uint32_t i = 0; i < n && i < all; i++)
		ns[i] = (uint64_t)((double)t->scan[i] * (double)(t->ns[1] - t->ns[0]) /
				   (double)ticks);
	return n < all ? n : (uint32_t)all;
}

int
main(int argc, char **argv)
{
	static struct tokg_device_config c;
	struct tokg_geometry *const g = &c.geometry;
	uint32_t n = argc == 3 ? (uint32_t)atoi(argv[2]) : 0;
	static uint64_t *embed, *round;
	static float *word;
	static uint32_t ids[TOKG_SLOT_BYTES / 4];
	struct tokg_device *d;
	struct tokg_error why;
	char name[48];
	uint32_t seed = 1, slots;

	embed = calloc(n + 1, 8);
	round = calloc(n + TOKG_SCAN_TIMES, 8);
	word = malloc(sizeof(float) * IDS * DIM);
	if (n == 0 || embed == NULL || round == NULL || word == NULL)
		post_fail("usage: measure DEVICE REQUESTS");
	for (uint32_t i = 0; i < IDS * DIM; i++)
		word[i] = (float)(seed = seed * 1664525 + 1013904223) / 4294967296.0f - 0.5f;
	g->producers = 4;
	g->slots = post_host_ring() ? 64 : TOKG_SLOTS_MAX / 4;
	slots = g->producers * g->slots;
	g->slot_bytes = TOKG_SLOT_BYTES;
	g->flags = TOKG_CHECKED;
	g->kind = c.tables.kind = TOKG_KIND_WORD;
	g->dtype = c.tables.dtype = TOKG_F32;
	g->dim = c.tables.dim = DIM;
	g->n_ids = c.tables.n_ids = IDS;
	g->out_bytes = 1 << 26;
	c.tables.word = word;
	c.time_scans = true;
	d = post_open(argv[1], &c);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t slot = i % g->slots, producer = i / g->slots % g->producers;
		const uint64_t ticket = 1 + i / slots;
		struct tokg_hdr h = {.kind = TOKG_KIND_WORD, .epoch = POST_EPOCH};
		struct tokg_out_entry *e;
		uint64_t from;

		h.tokens = TOKENS;
		h.bytes = 4 * TOKENS;
		for (uint32_t k = 0; k < TOKENS; k++)
			ids[k] = (seed = seed * 1664525 + 1013904223) % IDS;
		from = post_now();
		post_slot(d, producer, slot, &h, ticket, ids);
		if (post_wait(d, producer, slot, ticket) != TOKG_OK)
			post_fail("request %u was not embedded", i);
		round[i] = post_now() - from;
		e = tokg_outbox_entry(d->outbox, i);
		embed[i] = e->embedded - e->visible;
	}
	printf("{\"device\": \"%s\", \"order\": \"%s\", \"posted_by\": \"%s\", \"unit\": \"us\"",
		argv[1], d->order_why,
		d->region ? "stores into mapped memory" : "the driver's writes, word by word");
	print("embed_2048x768_fp32", embed, n);
	print(d->region ? "posted_to_done_read" : "posted_by_driver_to_done_read", round, n);
	n = scan_windows(d, round, n > WINDOWS_LEAST ? n : WINDOWS_LEAST);
	snprintf(name, sizeof(name), "scan_%u_slots_mean_of_256", slots);
	if (n > 0)
		print(name, round, n);
	if (d->ops->stop(d, TOKG_STOP_NOW, 10000, &why) < 0)
		post_fail("%s", why.text);
	snprintf(name, sizeof(name), "scan_%u_slots", slots);
	n = scans(d->scan_times, round, TOKG_SCAN_TIMES);
	print(name, round, n);
	printf("}\n");
	d->ops->close(d);
	return 0;
}
