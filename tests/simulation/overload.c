/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More requests than the appliance can serve. Its capacity is what clients get who always have some
 * requests in progress; then requests come at random at a rate, whether or not others have ended.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "sim.h"
#include "telemetry/histogram.h"

#define MOST 400000 /* requests */
#define CLOSED_CLIENTS 4

/* At twice the capacity: goodput of the peak, p99 of that at 0.8 times the capacity. */
static const struct machine {
	const char *name;
	struct cost cost;
	uint64_t run; /* ns for which requests come: an allowance fills only in some 100 ms */
	double of_peak, times;
} machine[] = {
	{"text takes most of the time", COST, 200 * MS, 0.95, 3},
	/* As texts that the cache knows: then refusals cost more, too. */
	{"frames take most of the time", {300, 1}, 500 * MS, 0.8, 5},
};

struct outcome {
	double offered, goodput; /* a second */
	uint64_t n, ok, refused, not_sent, p50, p99;
	uint64_t inside; /* p99 of the appliance: first packet taken to last record published */
};

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Without `pause`, clients always have IN_FLIGHT requests in progress. */
static struct outcome
run(const struct machine *m, uint32_t clients, uint64_t pause)
{
	struct plan plan = plan_of_attack(OVERLOAD);
	const uint64_t end = plan.begin + m->run;
	struct outcome o = {0};
	uint64_t good = 0;
	struct world *w;

	plan.cost = m->cost;
	plan.clients = clients;
	plan.requests = MOST / clients;
	plan.pause = pause != 0 ? pause : US;
	plan.open_loop_until = end;
	plan.no_resend = pause != 0; /* what is accepted is timed, not what is tried again */
	w = world_run(&plan);
	for (uint32_t i = 0; i < w->check.n_asks; i++) {
		const struct ask *k = &w->check.ask[i];

		o.n++;
		o.refused += k->r.status == TOKD_E_REFUSED;
		if (k->r.status != TOKD_OK)
			continue;
		w->check.took[o.ok++] = k->ended - k->begun;
		good += k->ended <= end;
	}
	o.not_sent = w->not_sent;
	o.offered = (double)(o.n + o.not_sent) * 1e9 / (double)m->run;
	o.goodput = (double)good * 1e9 / (double)m->run;
	qsort(w->check.took, o.ok, sizeof(*w->check.took), compare);
	o.p50 = o.ok > 0 ? w->check.took[o.ok / 2] : 0;
	o.p99 = o.ok > 0 ? w->check.took[o.ok * 99 / 100] : 0;
	o.inside = tokd_histogram_percentile(&w->a.w.time[T_TEXT_TO_LAST_ID], 990);
	if (w->check.faults > 0)
		printf("FAILED: %s\n", w->check.fault);
	world_free(w);
	return o;
}

static void
print_row(double load, const struct outcome *o)
{
	printf("| %.1f | %.0f | %.0f | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64
	       " | %.2f | %.2f | %.2f |\n",
		load, o->offered, o->goodput, o->ok, o->refused, o->n - o->ok - o->refused,
		o->not_sent, (double)o->p50 / 1e6, (double)o->p99 / 1e6, (double)o->inside / 1e6);
	fflush(stdout);
}

static bool
keeps_its_limits(const struct machine *m)
{
	static const double load[] = {0.8, 1, 2, 3};
	const double capacity = run(m, CLOSED_CLIENTS, 0).goodput;
	struct outcome o[RTE_DIM(load)];
	double peak = 0;
	bool slow, lost;

	printf("%s: of a frame %" PRIu32 " ns, of a byte of text %" PRIu32
	       " ns; capacity: %.0f requests/s\n\n"
	       "| load | offered/s | ids/s | ids | refused | unanswered | not sent | p50, ms "
	       "| p99, ms | inside p99, ms |\n|---|---|---|---|---|---|---|---|---|---|\n",
		m->name, m->cost.frame, m->cost.byte, capacity);
	for (uint32_t i = 0; i < RTE_DIM(load); i++) {
		o[i] = run(m, CLIENTS_MAX, (uint64_t)(1e9 * CLIENTS_MAX / (load[i] * capacity)));
		print_row(load[i], &o[i]);
		peak = RTE_MAX(peak, o[i].goodput);
	}
	lost = o[2].goodput < m->of_peak * peak;
	slow = (double)o[2].p99 > m->times * (double)o[0].p99;
	printf("\nat twice the capacity: goodput %.0f%% of the peak, p99 %.1f times that at 0.8\n\n",
		100 * o[2].goodput / peak, (double)o[2].p99 / (double)o[0].p99);
	if (lost || slow)
		printf("FAILED: the limit of %s is not kept\n", lost ? "goodput" : "p99");
	return !lost && !slow;
}

uint32_t
overload_run(void)
{
	uint32_t failed = 0;

	for (uint32_t i = 0; i < RTE_DIM(machine); i++)
		failed += !keeps_its_limits(&machine[i]);
	return failed;
}
