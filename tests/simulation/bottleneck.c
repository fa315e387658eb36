/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link that takes less than clients send: its queue drops frames. Clients always have the same
 * number of texts in progress. least/most: goodput of one client by that of another.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "sim.h"

#define MBIT UINT64_C(1000000)
#define RUN (2 * SECOND)

static const struct road {
	uint32_t mbit, waiting, clients, in_flight, text;
	uint64_t delay; /* ns, each way */
} road[] = {
	{100, 20, 1, 1, 1 << 20, 50 * US},
	{100, 50, 1, 8, 1 << 16, 50 * US},
	{100, 50, 2, 4, 1 << 20, 50 * US},
	{100, 50, 8, 4, 1 << 16, 50 * US},
	{100, 50, 8, 64, 1000, 50 * US},
	{200, 100, 2, 4, 1 << 20, MS},
	{50, 20, 4, 2, 1 << 18, 5 * MS},
	{1000, 100, 4, 8, 1 << 16, 20 * US},
};

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int
compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* What is printed of many seeds together. */
enum { SHARE, P99, AGAIN, FIGURES };

static uint32_t
run(const struct road *r, uint64_t seed, double *figure)
{
	struct plan plan = plan_of_attack(OVERLOAD);
	const uint64_t end = plan.begin + RUN;
	uint64_t bytes[CLIENTS_MAX] = {0}, sum = 0, ok = 0, sent = 0, again = 0;
	uint64_t least = UINT64_MAX, most = 0;
	uint32_t faults;
	struct world *w;

	plan.seed = seed;
	plan.clients = r->clients;
	plan.in_flight = r->in_flight;
	plan.requests = 100000 / r->clients;
	plan.pause = 20 * US;
	plan.open_loop_until = end;
	plan.text_most = r->text;
	plan.network.delay = r->delay;
	plan.network.link = r->mbit * MBIT;
	plan.network.waiting = r->waiting;
	w = world_run(&plan);
	for (uint32_t i = 0; i < w->check.n_asks; i++) {
		const struct ask *k = &w->check.ask[i];

		if (k->r.status != TOKD_OK)
			continue;
		w->check.took[ok++] = k->ended - k->begun;
		if (k->ended <= end)
			bytes[k->client] += k->r.len;
	}
	qsort(w->check.took, ok, sizeof(*w->check.took), compare);
	for (uint32_t i = 0; i < r->clients; i++) {
		const struct tokd_client_stats s = tokd_client_stats(w->client[i].c);

		sum += bytes[i];
		least = RTE_MIN(least, bytes[i]);
		most = RTE_MAX(most, bytes[i]);
		sent += s.sent;
		again += s.retransmits;
		sent -= s.polls;
	}
	figure[SHARE] = most > 0 ? (double)least / (double)most : 0;
	figure[P99] = ok > 0 ? (double)w->check.took[ok * 99 / 100] / 1e6 : 0;
	figure[AGAIN] = 100.0 * (double)again / (double)sent;
	printf("| %u | %u | %u | %u | %u | %.2f | %.0f | %.0f | %.1f | %.0f | %.0f | %.2f | %" PRIu64
	       " |\n",
		r->mbit, r->waiting, r->clients, r->in_flight, r->text, 2 * (double)r->delay / 1e6,
		(double)sum * 8 / RUN * 1000, figure[AGAIN],
		(double)w->link_wait / (double)w->link_frames / 1e6,
		ok > 0 ? (double)w->check.took[ok / 2] / 1e6 : 0, figure[P99], figure[SHARE], seed);
	faults = w->check.faults;
	if (faults > 0)
		printf("FAILED: %s\n", w->check.fault);
	fflush(stdout);
	world_free(w);
	return faults;
}

/* Each seed and, of more than one, the least value of each figure, its quartiles and the most. */
static uint32_t
run_seeds(const struct road *r, uint64_t first, uint64_t last)
{
	static const char *const name[FIGURES] = {"least/most", "p99, ms", "sent again, %"};
	const size_t n = last - first + 1;
	double figure[FIGURES], *all = malloc(FIGURES * n * sizeof(*all));
	uint32_t faults = 0;

	if (all == NULL)
		abort();
	for (size_t i = 0; i < n; i++) {
		faults += run(r, first + i, figure);
		for (uint32_t f = 0; f < FIGURES; f++)
			all[f * n + i] = figure[f];
	}
	for (uint32_t f = 0; n > 1 && f < FIGURES; f++) {
		qsort(&all[f * n], n, sizeof(*all), compare_doubles);
		printf("%s%s:", f > 0 ? "; " : "", name[f]);
		for (size_t q = 0; q <= 4; q++)
			printf(" %.*f", f == SHARE ? 2 : 1, all[f * n + q * (n - 1) / 4]);
	}
	printf("%s", n > 1 ? "\n" : "");
	free(all);
	return faults;
}

uint32_t
bottleneck_run(uint64_t first, uint64_t last)
{
	uint32_t faults = 0;

	printf("| Mbit/s | queue | clients | texts each | bytes | RTT, ms | goodput, Mbit/s "
	       "| sent again, %% | in the queue, ms | p50, ms | p99, ms | least/most | seed |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (uint32_t i = 0; i < RTE_DIM(road); i++)
		faults += run_seeds(&road[i], first, last);
	return faults;
}
