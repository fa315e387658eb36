/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a text costs a worker, from a full RX queue to its reply in the TX queue: bursts of 32 texts
 * of one packet each, over net_ring. For comparing two builds, or copied replies with --zero-copy:
 * run them interleaved and compare the least of many (doc/reference/telemetry.md). --held N: beside
 * N open streams, each of another source, in a table for 131,072: what looking one up costs then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define ROUNDS 4000
#define TEXT_MAX 1400
#define HELD_TABLE 131072
#define HELD_MEMORY "4096" /* MB */
#define HELD_ID (UINT64_C(1) << 32)
#define HELD_IP RTE_IPV4(172, 16, 0, 0)

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The first byte of a text whose rest never comes. */
static void
hold(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct request r = data_request(HELD_ID + i, 0, 0, "a", 1, TOKD_F_FIRST);

		r.ip = HELD_IP + i;
		send_request(&r);
		if (i % TOKD_BURST == TOKD_BURST - 1 || i == n - 1) {
			tokd_worker_turn(&fx->w);
			drain();
		}
	}
	if (tokd_worker_open_streams(&fx->w) != n)
		abort();
	printf("%u streams held, of %u of %zu bytes each; two buckets each more\n", n, fx_streams,
		sizeof(struct tokd_stream));
}

static void
bench(uint32_t bytes, uint32_t held)
{
	static uint64_t ticks[ROUNDS];
	uint8_t text[TEXT_MAX];
	void *state = NULL;
	const uint32_t warm_up = held > 0 ? HELD_TABLE / TOKD_BURST : 0;
	uint64_t stream = 0;
	double ns;

	make_text(text, bytes, 1);
	setup(&state);
	fx->validated = held > 0; /* as the appliance asks then */
	if (held > 0)
		hold(held);
	ns = 1e9 / (double)fx->w.tsc_hz / TOKD_BURST;
	/* With a large table first one round through all of it: its pages are new. */
	for (uint32_t i = 0; i < ROUNDS + warm_up; i++) {
		uint64_t t;

		for (uint32_t n = 0; n < TOKD_BURST; n++)
			send_text(++stream, text, bytes, bytes, TOKD_F_IDS);
		t = rte_rdtsc();
		tokd_worker_turn(&fx->w);
		if (i >= warm_up)
			ticks[i - warm_up] = rte_rdtsc() - t;
		if (drain() < TOKD_BURST)
			abort(); /* not what is to be measured */
	}
	qsort(ticks, ROUNDS, sizeof(ticks[0]), by_size);
	printf("texts of %u bytes: ns each: p10 %.1f p50 %.1f p90 %.1f, of %u bursts of %u\n",
		bytes, (double)ticks[ROUNDS / 10] * ns, (double)ticks[ROUNDS / 2] * ns,
		(double)ticks[ROUNDS / 10 * 9] * ns, ROUNDS, TOKD_BURST);
	if (held == 0) /* else streams are open */
		teardown(&state);
}

int
main(int argc, char **argv)
{
	const bool holds = argc > 2 && strcmp(argv[1], "--held") == 0;

	if (holds) {
		fx_streams = HELD_TABLE;
		strcpy(fx_memory, HELD_MEMORY);
	}
	fx_zero_copy = argc > 1 && strcmp(argv[1], "--zero-copy") == 0;
	if (fixture_start(argc, argv) < 0) {
		printf("EAL, net_ring or the vocabulary could not be set up\n");
		return 1;
	}
	if (holds) {
		bench(16, (uint32_t)strtoul(argv[2], NULL, 10));
		return 0;
	}
	bench(16, 0);
	bench(256, 0);
	bench(TEXT_MAX, 0);
	fixture_stop();
	return 0;
}
