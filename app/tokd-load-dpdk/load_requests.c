/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts requests and handles their answers. In a closed loop a request starts when a client has
 * room; in an open loop (--rate) by the schedule, as in ../tokd-load/loop.c. Only the engine's time
 * limit without progress applies.
 */
#include <inttypes.h>
#include <stdio.h>

#include "load.h"
#include "../tokd-load/judge.h"

#define TAKE_BURST 256
#define BEGIN_BURST 64 /* requests started before packets are polled */
#define FAILURES_SHOWN 5
/* The ring is read after each answer, and at least this often, or it might fill up. */
#define DRAIN_EVERY_NS UINT64_C(1000000)
/* The schedule starts this late, so that its first request is on time. */
#define LEAD_NS UINT64_C(10000000)

static void
release(struct load *l, struct job *job)
{
	job->slice = NULL;
	job->next_free = NULL;
	if (l->first_free != NULL)
		l->last_free->next_free = job;
	else
		l->first_free = job;
	l->last_free = job;
}

void
load_requests_start(struct load *l)
{
	for (uint32_t j = 0; j < l->in_flight; j++)
		for (uint32_t i = 0; i < l->n_clients; i++)
			release(l, &l->client[i].job[j]);
	if (l->o->rate == 0)
		return;
	arrivals_init(&l->arrivals, l->o->arrivals, l->o->rate, l->o->seed);
	l->counts.begin_ns += LEAD_NS;
	l->due_ns = l->counts.begin_ns + arrivals_next(&l->arrivals);
}

/* The columns that all lines of --out share. */
static void
write_times(const struct load *l, const char *failure, uint64_t intended)
{
	fprintf(l->out, ",%s,%" PRIu64 ",", failure == NULL ? "" : failure,
		intended - l->counts.begin_ns);
}

static void
not_sent(struct load *l, uint64_t index, uint64_t intended)
{
	l->counts.not_sent++;
	if (l->out == NULL || index < l->o->warmup)
		return;
	fprintf(l->out, "%" PRIu64 ",0,0,0,0,", index);
	write_times(l, "not sent", intended);
	fputc('\n', l->out);
}

static void
begin(struct load *l, uint64_t intended, uint64_t now)
{
	struct job *job = l->first_free;
	uint64_t index = l->next++;

	if (job == NULL) {
		not_sent(l, index, intended);
		return;
	}
	l->first_free = job->next_free;
	job->index = index;
	job->slice = &l->slices->slice[index % l->slices->count];
	job->seen = (struct ring_seen){0};
	job->r.text = job->slice->text;
	job->r.len = job->slice->text_len;
	job->r.user = job;
	job->intended_ns = intended;
	job->sent_ns = now;
	tokd_engine_submit(job->client->engine, &job->r);
}

void
load_requests_begin(struct load *l)
{
	for (uint32_t begun = 0; begun < BEGIN_BURST && l->next < l->requests; begun++) {
		uint64_t now = load_now_ns(l);

		if (l->o->rate == 0) {
			if (l->first_free == NULL)
				return;
			begin(l, now, now);
		} else {
			if (l->due_ns > now)
				return;
			begin(l, l->due_ns, now);
			l->due_ns = l->counts.begin_ns + arrivals_next(&l->arrivals);
		}
	}
}

static struct ring_text
text_of(void *load, uint32_t epoch, uint64_t stream_id)
{
	struct load *l = load;
	uint32_t index = epoch - l->epoch;

	for (uint32_t i = 0; index < l->n_clients && i < l->in_flight; i++) {
		struct job *job = &l->client[index].job[i];

		if (job->slice != NULL && job->r.stream_id == stream_id)
			return (struct ring_text){job->slice, &job->seen};
	}
	return (struct ring_text){0};
}

static void
write_row(const struct load *l, const struct job *job, uint64_t now, const char *failure)
{
	const struct ring_seen *seen = &job->seen;

	fprintf(l->out, "%" PRIu64 ",%" PRIu64 ",%d,%" PRIu32 ",%" PRIu64 ",", job->index,
		now - job->intended_ns, failure == NULL, job->r.retransmits + job->r.asks,
		seen->last_publish_ns - seen->first_rx_ns);
	for (uint32_t i = 0; i < seen->records && i < RING_TIMES; i++)
		fprintf(l->out, i == 0 ? "%" PRIu32 : " %" PRIu32, seen->wire_to_ring_ns[i]);
	write_times(l, failure, job->intended_ns);
	fprintf(l->out, "%" PRIu64 "\n", job->sent_ns - l->counts.begin_ns);
}

static void
finish(struct load *l, struct job *job, uint64_t now)
{
	const struct ring_text text = {job->slice, &job->seen};
	const char *in_ring = ring_judge(&l->ring, &text), *wrong = judge_status(job->r.status);
	struct load_counts *c = &l->counts;

	if (wrong == NULL)
		wrong = judge_ids(job->slice, job->r.ids, job->r.n_ids);
	if (wrong == NULL)
		wrong = in_ring;
	c->done++;
	c->right += wrong == NULL;
	c->no_answer += job->r.status == TOKD_E_TIMEOUT;
	c->refused += job->r.status == TOKD_E_REFUSED;
	c->ids += job->r.n_ids;
	c->text_bytes += job->slice->text_len;
	c->retransmits += job->r.retransmits;
	c->asks += job->r.asks;
	if (wrong != NULL && c->done - c->right <= FAILURES_SHOWN)
		fprintf(stderr,
			"tokd-load-dpdk: request %" PRIu64 " (%" PRIu32 " bytes, %" PRIu32
			" of %" PRIu32 " ids): %s, reason %d, after %.1f ms, %" PRIu32
			" packets sent again and %" PRIu32 " questions\n",
			job->index, job->slice->text_len, job->r.n_ids, job->slice->n_ids, wrong,
			(int)job->r.reason, (double)(now - job->sent_ns) / 1e6, job->r.retransmits,
			job->r.asks);
	if (l->out != NULL && job->index >= l->o->warmup)
		write_row(l, job, now, wrong);
}

/* Handle all answers. First read the ring up to its head: their ids are there. */
int
load_requests_take(struct load *l)
{
	struct tokd_request *done[TAKE_BURST];
	uint64_t now = load_now_ns(l);
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_clients; i++) {
		struct tokd_request *r;

		while (n < TAKE_BURST && (r = tokd_engine_done(l->client[i].engine)) != NULL)
			done[n++] = r;
	}
	if (n > 0 || now - l->drained_ns > DRAIN_EVERY_NS) {
		l->drained_ns = now;
		if (ring_drain(&l->ring, text_of, l) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < n; i++)
		finish(l, done[i]->user, now);
	for (uint32_t i = 0; i < n; i++)
		release(l, done[i]->user);
	return 0;
}
