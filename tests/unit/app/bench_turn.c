/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a text costs a worker, from a full RX queue to its reply in the TX queue: bursts of 32 texts
 * of one packet each, over net_ring. For comparing two builds, or copied replies with --zero-copy:
 * run them interleaved and compare the least of many (doc/reference/telemetry.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define ROUNDS 4000
#define TEXT_MAX 1400

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
bench(uint32_t bytes)
{
	static uint64_t ticks[ROUNDS];
	uint8_t text[TEXT_MAX];
	void *state = NULL;
	uint64_t stream = 0;
	double ns;

	make_text(text, bytes, 1);
	setup(&state);
	ns = 1e9 / (double)fx->w.tsc_hz / TOKD_BURST;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t t;

		for (uint32_t n = 0; n < TOKD_BURST; n++)
			send_text(++stream, text, bytes, bytes, TOKD_F_IDS);
		t = rte_rdtsc();
		tokd_worker_turn(&fx->w);
		ticks[i] = rte_rdtsc() - t;
		if (drain() < TOKD_BURST)
			abort(); /* not what is to be measured */
	}
	qsort(ticks, ROUNDS, sizeof(ticks[0]), by_size);
	printf("texts of %u bytes: ns each: p10 %.1f p50 %.1f p90 %.1f, of %u bursts of %u\n",
		bytes, (double)ticks[ROUNDS / 10] * ns, (double)ticks[ROUNDS / 2] * ns,
		(double)ticks[ROUNDS / 10 * 9] * ns, ROUNDS, TOKD_BURST);
	teardown(&state);
}

int
main(int argc, char **argv)
{
	fx_zero_copy = argc > 1 && strcmp(argv[1], "--zero-copy") == 0;
	if (fixture_start(argc, argv) < 0) {
		printf("EAL, net_ring or the vocabulary could not be set up\n");
		return 1;
	}
	bench(16);
	bench(256);
	bench(TEXT_MAX);
	fixture_stop();
	return 0;
}
