/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure DEVICE REQUESTS: how long a look at 4,096 slots (windows of 256), an embedding of
 * 2048 x 768 fp32, and a slot from posting to reading `done` take on the device, as JSON: median
 * and p99. Where the ring is not mapped, the driver posts, and the name says so. Tables are made
 * from a seed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "post.h"

#define TOKENS 2048
#define DIM 768
#define IDS 50257

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
	uint32_t seed = 1;

	embed = calloc(n + 1, 8);
	round = calloc(n + 1, 8);
	word = malloc(sizeof(float) * IDS * DIM);
	if (n == 0 || embed == NULL || round == NULL || word == NULL)
		post_fail("usage: measure DEVICE REQUESTS");
	for (uint32_t i = 0; i < IDS * DIM; i++)
		word[i] = (float)(seed = seed * 1664525 + 1013904223) / 4294967296.0f - 0.5f;
	g->producers = 1;
	g->slots = TOKG_SLOTS_MAX;
	g->slot_bytes = TOKG_SLOT_BYTES;
	g->flags = TOKG_CHECKED;
	g->kind = c.tables.kind = TOKG_KIND_WORD;
	g->dtype = c.tables.dtype = TOKG_F32;
	g->dim = c.tables.dim = DIM;
	g->n_ids = c.tables.n_ids = IDS;
	g->out_bytes = 1 << 26;
	c.tables.word = word;
	d = post_open(argv[1], &c);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t slot = i % TOKG_SLOTS_MAX;
		struct tokg_hdr h = {.kind = TOKG_KIND_WORD, .epoch = POST_EPOCH};
		struct tokg_out_entry *e;
		uint64_t from;

		h.tokens = TOKENS;
		h.bytes = 4 * TOKENS;
		for (uint32_t k = 0; k < TOKENS; k++)
			ids[k] = (seed = seed * 1664525 + 1013904223) % IDS;
		from = post_now();
		post_slot(d, 0, slot, &h, 1 + i / TOKG_SLOTS_MAX, ids);
		if (post_wait(d, 0, slot, 1 + i / TOKG_SLOTS_MAX) != TOKG_OK)
			post_fail("request %u was not embedded", i);
		round[i] = post_now() - from;
		e = tokg_outbox_entry(d->outbox, i);
		embed[i] = e->embedded - e->visible;
	}
	printf("{\"device\": \"%s\", \"posted_by\": \"%s\", \"unit\": \"us\"", argv[1],
		d->region ? "stores into mapped memory" : "the driver's writes, word by word");
	print("embed_2048x768_fp32", embed, n);
	print(d->region ? "posted_to_done_read" : "posted_by_driver_to_done_read", round, n);
	n = scan_windows(d, round, n);
	if (n > 0)
		print("scan_4096_slots_mean_of_256", round, n);
	printf("}\n");
	d->ops->close(d);
	return 0;
}
