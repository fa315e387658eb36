/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The main loop: receive packets, finish answered requests, start new ones, send packets. It polls
 * and never sleeps. Fault injection is applied to the frames of each direction.
 */
#include <time.h>

#include <rte_ethdev.h>

#include "load.h"
#include "port.h"

#define RX_BURST 32
#define TX_BURST 32 /* frames that need not wait for those of the other clients */
#define RX_BURSTS 8 /* at most per iteration, so that packets are sent as well */
/* After the last answer, keep running for this long: delayed frames and the last acknowledgements
 * are still sent, and records that they cause must not stay in the ring. */
#define LINGER_NS UINT64_C(300000000)

/* Receive. */

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

/* Send. */

static void
send_faulty(struct load *l, struct rte_mbuf *m, uint64_t now)
{
	void *out[FAULTS_OUT];
	uint32_t n = faults_take(&l->forth, m, now, out);

	for (uint32_t i = 0; i < n; i++)
		queue_frame(l, out[i]);
}

/* Packets that the driver rejects are offered again: only the injected faults lose packets. */
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
	/* One call can double each packet and release all held ones: keep room for that. */
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
	if (l->n_tx >= TX_BURST)
		flush(l);
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

static int
turn(struct load *l)
{
	uint64_t now = load_now_ns(l);

	receive(l, now);
	if (load_requests_take(l) != 0)
		return -1;
	load_requests_begin(l);
	transmit(l, now);
	return 0;
}

/* Time without a CPU since this thread began. */
static int64_t
off_cpu_ns(const struct load *l)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)load_now_ns(l) - (t.tv_sec * INT64_C(1000000000) + t.tv_nsec);
}

int
load_run(struct load *l, const volatile sig_atomic_t *stop)
{
	uint64_t linger;
	int rc = 0;

	l->counts.begin_ns = load_now_ns(l);
	l->counts.off_cpu_ns = off_cpu_ns(l);
	load_requests_start(l);
	while (rc == 0 && l->counts.done + l->counts.not_sent < l->requests && !*stop)
		rc = turn(l);
	l->counts.end_ns = load_now_ns(l);
	l->counts.off_cpu_ns = off_cpu_ns(l) - l->counts.off_cpu_ns;
	for (linger = l->counts.end_ns + LINGER_NS; rc == 0 && load_now_ns(l) < linger && !*stop;)
		rc = turn(l);
	return *stop ? -1 : rc;
}
