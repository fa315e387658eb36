/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop: packets in, what was answered out of it, new requests in its place, packets out. It
 * polls and never sleeps. Frames go through the faults of their direction on the way.
 */
#include <inttypes.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "load.h"
#include "port.h"
#include "../judge.h"

#define RX_BURST 32
#define RX_BURSTS 8 /* in a turn: there is something to send as well */
#define FAILURES_SHOWN 5
/* The ring is read where an answer has come, and at least so often, or it might fill. */
#define DRAIN_EVERY_NS UINT64_C(1000000)
/* After the last answer: what was held back, and the last acknowledgements, still go out, and what
 * the appliance makes of them must not stand in the ring. */
#define LINGER_NS UINT64_C(300000000)

static uint64_t
now_ns(const struct load *l)
{
	return (uint64_t)((double)(rte_rdtsc() - l->t_start) * l->ns_a_tick);
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

/* In. */

static void
queue_frame(struct load *l, struct rte_mbuf *m)
{
	l->tx[l->n_tx++] = m;
}

static void
deliver(struct load *l, struct rte_mbuf *m, uint64_t now)
{
	struct frame frame;

	switch (frames_take(&l->frames, m, &frame)) {
	case FRAME_REPLY:
		tokd_engine_take(l->client[frame.client].engine, frame.datagram, frame.len, now);
		break;
	case FRAME_ARP:
		if (frame.answer && l->n_tx < LOAD_TX) {
			queue_frame(l, m);
			return;
		}
		break;
	case FRAME_OTHER:
		l->counts.other_frames++;
		break;
	}
	rte_pktmbuf_free(m);
}

static void
receive(struct load *l, uint64_t now)
{
	struct rte_mbuf *m[RX_BURST];
	uint16_t came = RX_BURST;
	void *out[FAULTS_OUT];
	uint32_t n;

	for (uint32_t burst = 0; burst < RX_BURSTS && came == RX_BURST; burst++) {
		came = rte_eth_rx_burst(PORT_ID, 0, m, RX_BURST);
		for (uint16_t i = 0; i < came; i++) {
			n = faults_take(&l->back, m[i], now, out);
			for (uint32_t j = 0; j < n; j++)
				deliver(l, out[j], now);
		}
	}
	n = faults_due(&l->back, now, out);
	for (uint32_t i = 0; i < n; i++)
		deliver(l, out[i], now);
}

/* Out. */

static void
send_faulty(struct load *l, struct rte_mbuf *m, uint64_t now)
{
	void *out[FAULTS_OUT];
	uint32_t n = faults_take(&l->forth, m, now, out);

	for (uint32_t i = 0; i < n; i++)
		queue_frame(l, out[i]);
}

/* What the driver does not take now it is given again: nothing is lost but by the dice. */
static void
flush(struct load *l)
{
	uint32_t sent = rte_eth_tx_burst(PORT_ID, 0, l->tx, (uint16_t)l->n_tx);

	l->n_tx -= sent;
	for (uint32_t i = 0; sent > 0 && i < l->n_tx; i++)
		l->tx[i] = l->tx[sent + i];
}

static void
send_client(struct load *l, uint32_t index, uint64_t now)
{
	struct tokd_engine *e = l->client[index].engine;
	struct tokd_packet packet[LOAD_PACKETS];
	uint32_t n;

	tokd_engine_tick(e, now);
	/* Each may go twice, and let go of all that are held back: there must be room. */
	if (l->n_tx > LOAD_TX - 2 * LOAD_PACKETS - FAULTS_HELD)
		flush(l);
	if (l->n_tx > LOAD_TX - 2 * LOAD_PACKETS - FAULTS_HELD)
		return;
	n = tokd_engine_packets(e, packet, LOAD_PACKETS, now);
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = frames_request(&l->frames, index, &packet[i]);

		if (m == NULL) {
			l->counts.no_mbuf++;
			tokd_engine_unsent(e, &packet[i]);
		} else {
			send_faulty(l, m, now);
		}
	}
}

static void
transmit(struct load *l, uint64_t now)
{
	void *out[FAULTS_OUT];
	uint32_t n = 0;

	if (l->n_tx <= LOAD_TX - FAULTS_HELD)
		n = faults_due(&l->forth, now, out);
	for (uint32_t i = 0; i < n; i++)
		queue_frame(l, out[i]);
	for (uint32_t i = 0; i < l->n_clients; i++)
		send_client(l, i, now);
	if (l->n_tx > 0)
		flush(l);
}

/* Requests. */

static void
begin(struct load *l, struct job *job)
{
	job->slice = NULL;
	if (l->next == l->requests)
		return;
	job->index = l->next++;
	job->slice = &l->slices->slice[job->index % l->slices->count];
	job->seen = (struct ring_seen){0};
	job->r.text = job->slice->text;
	job->r.len = job->slice->text_len;
	job->r.user = job;
	job->begin_ns = now_ns(l);
	tokd_engine_submit(job->client->engine, &job->r);
}

static void
write_row(const struct load *l, const struct job *job, uint64_t ns, bool right)
{
	const struct ring_seen *seen = &job->seen;

	fprintf(l->out, "%" PRIu64 ",%" PRIu64 ",%d,%" PRIu32 ",%" PRIu64 ",", job->index, ns,
		right, job->r.retransmits + job->r.asks, seen->last_publish_ns - seen->first_rx_ns);
	for (uint32_t i = 0; i < seen->records && i < RING_TIMES; i++)
		fprintf(l->out, i == 0 ? "%" PRIu32 : " %" PRIu32, seen->wire_to_ring_ns[i]);
	fputc('\n', l->out);
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
			(int)job->r.reason, (double)(now - job->begin_ns) / 1e6, job->r.retransmits,
			job->r.asks);
	if (l->out != NULL && job->index >= l->o->warmup)
		write_row(l, job, now - job->begin_ns, wrong == NULL);
}

/* All that are done, once the ring is read as far as it is written: their ids stand there. */
static int
take_done(struct load *l)
{
	struct tokd_request *done[RX_BURST * RX_BURSTS];
	uint64_t now = now_ns(l);
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_clients; i++) {
		struct tokd_request *r;

		while (n < RTE_DIM(done) && (r = tokd_engine_done(l->client[i].engine)) != NULL)
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
		begin(l, done[i]->user);
	return 0;
}

static int
turn(struct load *l)
{
	uint64_t now = now_ns(l);

	receive(l, now);
	if (take_done(l) != 0)
		return -1;
	transmit(l, now);
	return 0;
}

int
load_run(struct load *l, const volatile sig_atomic_t *stop)
{
	uint64_t linger;
	int rc = 0;

	l->counts.begin_ns = now_ns(l);
	for (uint32_t j = 0; j < l->in_flight; j++)
		for (uint32_t i = 0; i < l->n_clients; i++)
			begin(l, &l->client[i].job[j]);
	while (rc == 0 && l->counts.done < l->requests && !*stop)
		rc = turn(l);
	l->counts.end_ns = now_ns(l);
	for (linger = l->counts.end_ns + LINGER_NS; rc == 0 && now_ns(l) < linger && !*stop;)
		rc = turn(l);
	return *stop ? -1 : rc;
}
