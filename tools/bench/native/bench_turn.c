/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a text costs a worker, from a full RX queue to its reply in the TX queue: bursts of 32 texts
 * of one packet each, over net_ring. For comparing two builds, or copied replies with --zero-copy:
 * run them interleaved and compare medians of many (doc/reference/telemetry.md). --held N: beside
 * N open streams, each of another source, in a table for 131,072: what looking one up costs then.
 *
 * VOCABULARY FILE: pieces of a file's text under a real vocabulary, of one client and of 256, in
 * tables of the default sizes, on huge pages: 256 of 2 MB (vm.nr_overcommit_hugepages will do).
 *
 * --refused: texts of two packets, of 256 clients, which are refused because too much waits; in the
 * same tables.
 *
 * --wipe, before all others: with that option of dpdk-tokd.
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
#define REAL_STREAMS 4096 /* and bytes of names: the defaults */
#define REAL_NAMES (32u << 20)
#define REAL_MEMORY "512"
#define REAL_TEXT (1u << 20)
#define REAL_ROUNDS 1000
#define REAL_WARM_UP 300 /* rounds: twice through all streams */

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
		send_request(r);
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

/* A round: texts of `bytes` bytes from 32 places, in packets of TEXT_MAX. */
static void
send_pieces(const uint8_t *text, uint32_t bytes, uint32_t round, uint32_t clients)
{
	for (uint32_t n = 0; n < TOKD_BURST; n++) {
		const uint32_t i = round * TOKD_BURST + n;
		const uint32_t at = (uint32_t)(i * UINT64_C(2654435761) % (REAL_TEXT - bytes));

		for (uint32_t k = 0; k < text_packets(bytes, TEXT_MAX); k++) {
			struct request r =
				text_packet(1 + i, text + at, bytes, TEXT_MAX, TOKD_F_IDS, k);

			r.ip = HELD_IP + i % clients;
			send_request(r);
		}
	}
}

static void
bench_real(const uint8_t *text, uint32_t bytes, uint32_t clients)
{
	static uint64_t ticks[REAL_ROUNDS];
	void *state = NULL;
	uint64_t texts;
	double ns;

	setup(&state);
	fx->validated = false;
	ns = 1e9 / (double)fx->w.tsc_hz / TOKD_BURST;
	for (uint32_t i = 0; i < REAL_WARM_UP + REAL_ROUNDS; i++) {
		uint64_t t;

		send_pieces(text, bytes, i, clients);
		t = rte_rdtsc();
		run();
		if (i >= REAL_WARM_UP)
			ticks[i - REAL_WARM_UP] = rte_rdtsc() - t;
		if (drain() < TOKD_BURST)
			abort();
	}
	texts = fx->w.counter[C_STREAMS_DONE];
	if (texts != (REAL_WARM_UP + REAL_ROUNDS) * TOKD_BURST)
		abort();
	qsort(ticks, REAL_ROUNDS, sizeof(ticks[0]), by_size);
	printf("texts of %u bytes, %.1f ids, %u clients: ns each: p10 %.1f p50 %.1f p90 %.1f\n",
		bytes, (double)fx->w.counter[C_IDS] / (double)texts, clients,
		(double)ticks[REAL_ROUNDS / 10] * ns, (double)ticks[REAL_ROUNDS / 2] * ns,
		(double)ticks[REAL_ROUNDS / 10 * 9] * ns);
	teardown(&state);
}

/* A burst of texts of two packets, of which the worker believes that they would wait. */
static void
bench_refused(uint32_t bytes)
{
	static uint64_t ticks[ROUNDS];
	const uint32_t each = TOKD_BURST / 2;
	uint8_t text[2 * TEXT_MAX];
	struct tokd_drr *d;
	void *state = NULL;
	double ns;

	make_text(text, bytes, 1);
	setup(&state);
	fx->validated = true; /* else they would get VALIDATE */
	d = &fx->w.drr;
	d->ticks = fx->w.tsc_hz;
	d->waiting[TOKD_FLOW_LIGHT] = d->waiting[TOKD_FLOW_HEAVY] = 100;
	ns = 1e9 / (double)fx->w.tsc_hz / each;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		for (uint32_t n = 0; n < TOKD_BURST; n++) {
			struct request r = text_packet(
				1 + i * each + n / 2, text, bytes, TEXT_MAX, TOKD_F_IDS, n % 2);

			r.ip = HELD_IP + (i * each + n / 2) % 256;
			send_request(r);
		}
		d->n_last = 256;
		d->t_period = rte_rdtsc(); /* and this is not forgotten */
		ticks[i] = rte_rdtsc();
		tokd_worker_turn(&fx->w);
		ticks[i] = rte_rdtsc() - ticks[i];
		if (drain() != each)
			abort();
	}
	qsort(ticks, ROUNDS, sizeof(ticks[0]), by_size);
	printf("refused texts of %u bytes: ns each: p10 %.1f p50 %.1f p90 %.1f, of %u bursts of %u\n",
		bytes, (double)ticks[ROUNDS / 10] * ns, (double)ticks[ROUNDS / 2] * ns,
		(double)ticks[ROUNDS / 10 * 9] * ns, ROUNDS, each);
	teardown(&state);
}

static int
bench_file(const char *path)
{
	static const uint32_t bytes[] = {16, 560, 2240, 8960};
	static uint8_t text[REAL_TEXT];
	FILE *f = fopen(path, "rb");

	if (f == NULL || fread(text, 1, sizeof(text), f) != sizeof(text)) {
		printf("%s: not read, or shorter than %u bytes\n", path, REAL_TEXT);
		return 1;
	}
	fclose(f);
	for (uint32_t i = 0; i < RTE_DIM(bytes); i++) {
		bench_real(text, bytes[i], 1);
		bench_real(text, bytes[i], 256);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	bool holds, real, refused;

	fx_wipe = argc > 1 && strcmp(argv[1], "--wipe") == 0;
	argv += fx_wipe;
	argc -= fx_wipe;
	holds = argc > 2 && strcmp(argv[1], "--held") == 0;
	real = argc > 2 && !holds;
	refused = argc > 1 && strcmp(argv[1], "--refused") == 0;
	if (holds) {
		fx_streams = HELD_TABLE;
		strcpy(fx_memory, HELD_MEMORY);
	}
	if (real) {
		fx_vocab = argv[1];
		fx_cache = 0; /* the default */
	}
	if (real || refused) {
		fx_streams = REAL_STREAMS;
		fx_names = REAL_NAMES;
		strcpy(fx_pages, "--in-memory");
		strcpy(fx_memory, REAL_MEMORY);
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
	if (real)
		return bench_file(argv[2]);
	if (refused) {
		bench_refused(2000);
		return 0;
	}
	bench(16, 0);
	bench(256, 0);
	bench(TEXT_MAX, 0);
	fixture_stop();
	return 0;
}
