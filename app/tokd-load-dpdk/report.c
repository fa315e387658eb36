/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "load.h"

static void
direction(FILE *file, const char *name, const struct faults *f)
{
	fprintf(file,
		"  \"%s\": {\"packets\": %" PRIu64 ", \"lost\": %" PRIu64
		", \"reordered\": %" PRIu64 ", \"duplicated\": %" PRIu64 "},\n",
		name, f->came, f->lost, f->reordered, f->duplicated);
}

static struct tokd_client_stats
sum_of_clients(const struct load *l)
{
	struct tokd_client_stats sum = {0};

	for (uint32_t i = 0; i < l->n_clients; i++) {
		const struct tokd_client_stats one = tokd_engine_stats(l->client[i].engine);

		sum.polls += one.polls;
		sum.stale += one.stale;
		sum.bad += one.bad;
	}
	return sum;
}

void
load_report(const struct load *l, FILE *file)
{
	const struct load_counts *c = &l->counts;
	const struct tokd_client_stats stats = sum_of_clients(l);
	const struct ring *ring = &l->ring;

	fprintf(file,
		"{\n  \"requests\": %" PRIu64 ",\n  \"right\": %" PRIu64
		",\n  \"not_sent\": %" PRIu64 ",\n  \"no_answer\": %" PRIu64
		",\n  \"refused\": %" PRIu64 ",\n  \"ids\": %" PRIu64
		",\n  \"text_bytes\": %" PRIu64 ",\n  \"seconds\": %.3f,\n"
		"  \"off_cpu_seconds\": %.3f,\n  \"retransmits\": %" PRIu64
		",\n  \"asks\": %" PRIu64 ",\n  \"polls\": %" PRIu64
		",\n  \"stale_replies\": %" PRIu64 ",\n  \"bad_replies\": %" PRIu64
		",\n  \"other_frames\": %" PRIu64 ",\n  \"no_mbuf\": %" PRIu64 ",\n",
		c->done, c->right, c->not_sent, c->no_answer, c->refused, c->ids, c->text_bytes,
		(double)(c->end_ns - c->begin_ns) / 1e9, (double)c->off_cpu_ns / 1e9,
		c->retransmits, c->asks, stats.polls, stats.stale, stats.bad, c->other_frames,
		c->no_mbuf);
	direction(file, "to_appliance", &l->forth);
	direction(file, "from_appliance", &l->back);
	fprintf(file,
		"  \"ring\": {\"texts\": %" PRIu64 ", \"records\": %" PRIu64 ", \"ids\": %" PRIu64
		", \"lost\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"doubled\": %" PRIu64 "}\n}\n",
		ring->texts, ring->records, ring->ids, ring->lost, ring->wrong, ring->doubled);
}
