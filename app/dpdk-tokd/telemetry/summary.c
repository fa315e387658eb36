/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "control/app.h"
#include "histogram.h"
#include "summary.h"

static bool
is_always_shown(enum tokd_counter c)
{
	return c == C_RX_PACKETS || c == C_TX_PACKETS || c == C_STREAMS_DONE;
}

/* Packets that never reached a worker, as the device counts them. */
static void
print_device(FILE *to, const struct tokd_port *port)
{
	struct rte_eth_stats stats;

	if (rte_eth_stats_get(port->id, &stats) != 0)
		return;
	fprintf(to,
		"port %u (%s): %" PRIu64 " missed, %" PRIu64 " without an mbuf, %" PRIu64
		" RX errors, %" PRIu64 " TX errors\n",
		port->id, port->name, stats.imissed, stats.rx_nombuf, stats.ierrors, stats.oerrors);
}

static void
print_times(FILE *to, const struct tokd_worker *w)
{
	for (uint32_t i = 0; i < T_COUNT; i++) {
		const struct tokd_histogram *h = &w->time[i];
		uint64_t n = tokd_histogram_count(h);

		if (n == 0)
			continue;
		fprintf(to,
			"  %-24s p50 %" PRIu64 " ns, p99 %" PRIu64 " ns, max %" PRIu64
			" ns of %" PRIu64 "  %s\n",
			tokd_stage_info[i].name,
			tokd_ticks_ns(tokd_histogram_percentile(h, 500), w->tsc_hz),
			tokd_ticks_ns(tokd_histogram_percentile(h, 990), w->tsc_hz),
			tokd_ticks_ns(h->max, w->tsc_hz), n, tokd_stage_info[i].help);
	}
}

void
tokd_summary_print(FILE *to, struct tokd_app *app)
{
	struct tokd_attach_counts readers;

	for (uint32_t w = 0; w < app->n_workers; w++) {
		const struct tokd_worker *worker = app->worker[w];

		fprintf(to, "worker %u, lcore %u:\n", w, worker->lcore);
		for (int c = 0; c < C_COUNT; c++) {
			if (worker->counter[c] != 0 || is_always_shown(c))
				fprintf(to, "  %-24s %20" PRIu64 "  %s\n",
					tokd_counter_info[c].name, worker->counter[c],
					tokd_counter_info[c].help);
		}
		print_times(to, worker);
	}
	print_device(to, &app->port);
	tokd_attach_list(&app->control.attach, NULL, 0, &readers);
	fprintf(to,
		"readers: %" PRIu64 " attached, %" PRIu64 " detached, %" PRIu64 " dropped, %" PRIu64
		" refused; taps: %" PRIu64 " attached\n",
		readers.attached, readers.detached, readers.dropped, readers.refused,
		readers.taps_attached);
	fflush(to);
}
