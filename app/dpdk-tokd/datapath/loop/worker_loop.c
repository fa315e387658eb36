/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of a worker: run to completion, from the RX queue to the token ring and the TX queue. No
 * lock, system call, allocation or log; the only clock is the TSC.
 */
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_prefetch.h>

#include "gpu_sink.h"
#include "housekeeping.h"
#include "datapath/net.h"
#include "datapath/net_allow.h"
#include "datapath/stream/gpu_text.h"
#include "datapath/stream/reply.h"
#include "datapath/stream/stream.h"
#include "datapath/token_ring.h"

/* Frames to prefetch ahead, two cache lines each: all headers with the request are 106 bytes. */
#define PREFETCH_AHEAD 3

/* In a second. A source that was at work in this period or the last one shares the next turn. */
#define PERIODS 8

/* Bursts received between two slices, at most. */
#define BURSTS_MOST 32

/* Housekeeping runs after this many turns, or this often, whichever is first. */
#define HOUSEKEEPING_TURNS 256
#define HOUSEKEEPING_PER_SECOND 10000

static inline void
prefetch_headers(const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	rte_prefetch0(p);
	rte_prefetch0(p + RTE_CACHE_LINE_MIN_SIZE);
}

static void
take_frames(struct tokd_worker *w, struct rte_mbuf **m, uint16_t n)
{
	uint64_t bytes = 0;

	w->counter[C_RX_PACKETS] += n;
	if (unlikely(w->allow != NULL))
		n = tokd_net_allow(w, m, n);
	for (uint16_t i = 0; i < n && i < PREFETCH_AHEAD; i++)
		prefetch_headers(m[i]);
	for (uint16_t i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			prefetch_headers(m[i + PREFETCH_AHEAD]);
		bytes += rte_pktmbuf_pkt_len(m[i]);
		w->n_follow = n - i; /* after the request that waits */
		tokd_net_ether(w, m[i]);
	}
	w->n_follow = 0;
	tokd_stream_rx_waiting(w);
	tokd_stream_feed_gathered(w);
	w->counter[C_RX_BYTES] += bytes;
}

static void
begin(struct tokd_worker *w)
{
	w->fed_ticks = 0;
	tokd_drr_turn(
		&w->drr, w->feed_ticks, w->t_burst, w->counter[C_CYCLES_IDLE], w->tsc_hz / PERIODS);
}

static void
answer(struct tokd_worker *w)
{
	if (unlikely(tokd_drr_waits(&w->drr)))
		tokd_stream_feed_deferred(w);
	tokd_reply_flush(w);
}

/* Takes one more burst in this turn. */
static uint16_t
receive(struct tokd_worker *w, struct rte_mbuf **m, uint16_t most)
{
	const uint16_t n = rte_eth_rx_burst(w->port, w->queue, m, most);
	uint64_t now;

	if (n == 0)
		return 0;
	now = rte_rdtsc();
	w->counter[C_CYCLES_BUSY] += now - w->t_burst;
	w->t_burst = now;
	take_frames(w, m, n);
	return n;
}

/*
 * A text's packets come while the first is being fed. A TX batch costs as much as a packet of text,
 * so replies that can wait do so until the queue is empty. A sink posts ids at the end of a turn:
 * with one, turns stay short.
 */
static void
take_more(struct tokd_worker *w, struct rte_mbuf **m, uint16_t n)
{
	uint16_t more;

	for (; n < TOKD_BURST && tokd_reply_can_wait(w); n += more) {
		more = receive(w, m, TOKD_BURST - n);
		if (more == 0)
			return;
	}
}

/*
 * While text waits, the queue is emptied before the next piece: what is in it may be of a source
 * that is served at once. The others' packets are only held, or dropped.
 */
static void
take_all(struct tokd_worker *w, struct rte_mbuf **m, uint16_t n)
{
	for (uint32_t i = 0; i < BURSTS_MOST && n == TOKD_BURST && tokd_drr_waits(&w->drr); i++) {
		tokd_reply_flush(w);
		tokd_tx_flush(w);
		n = receive(w, m, TOKD_BURST);
	}
}

/* The counter that gets the cycles of the turn that ends now. */
static enum tokd_counter
kind_of_turn(const struct tokd_worker *w, bool busy)
{
	if (w->ring.full)
		return C_CYCLES_BACKPRESSURED;
	return busy ? C_CYCLES_BUSY : C_CYCLES_IDLE;
}

/* After a reload. */
static void
take_terms(struct tokd_worker *w, struct tokd_terms *next)
{
	tokd_terms_leave(w->terms);
	w->terms = next;
	w->streams->open_ticks = next->open_ticks;
	w->streams->finished_ticks = next->finished_ticks;
	w->streams->names.horizon = (uint32_t)(2 * next->open_ticks >> w->streams->names.shift);
	__atomic_store_n(&w->ring.hdr->vocab, next->vocab[0].checksum, __ATOMIC_RELAXED);
}

void
tokd_worker_turn(struct tokd_worker *w)
{
	struct rte_mbuf *m[TOKD_BURST];
	/* Acquire: what a reload has made. */
	struct tokd_terms *next = atomic_load_explicit(&w->next_terms, memory_order_acquire);
	uint16_t n = rte_eth_rx_burst(w->port, w->queue, m, TOKD_BURST);
	uint64_t now = rte_rdtsc();
	bool busy = n > 0 || tokd_drr_waits(&w->drr);

	atomic_store_explicit(&w->turn, atomic_load_explicit(&w->turn, memory_order_relaxed) + 1,
		memory_order_release);
	/* The clock is read once per burst: a turn lasts from its first burst to the next turn's.
	 */
	w->counter[w->turn_kind] += now - w->t_burst;
	w->t_burst = now;
	w->stopping = atomic_load_explicit(w->stop, memory_order_relaxed);
	if (unlikely(next != w->terms))
		take_terms(w, next);

	if (busy) {
		begin(w);
		take_frames(w, m, n);
		if (w->sink == NULL)
			take_more(w, m, n);
		take_all(w, m, n);
		answer(w);
		tokd_tx_flush(w);
		tokd_stream_make_ready(w);
	}
	if (w->sink != NULL) {
		tokd_sink_poll(w, !busy);
		busy |= tokd_generate_turn(w);
		if (w->gpu_texts != NULL)
			busy |= tokd_gpu_texts_feed(w);
	}
	if (++w->turns >= HOUSEKEEPING_TURNS ||
		now - w->t_housekeeping > w->tsc_hz / HOUSEKEEPING_PER_SECOND) {
		w->turns = 0;
		w->t_housekeeping = now;
		tokd_housekeeping(w, now);
	}
	w->turn_kind = kind_of_turn(w, busy);
}

int
tokd_worker_run(void *worker)
{
	struct tokd_worker *w = worker;

	w->t_burst = rte_rdtsc();
	/*
	 * --wait-readers: a capture would end before a reader attaches. Waiting counts as idle, and
	 * keeps the watchdog satisfied.
	 */
	while (w->ring.n_active - (w->sink != NULL) < w->opt->wait_readers &&
		atomic_load_explicit(w->stop, memory_order_relaxed) == TOKD_RUN) {
		const uint64_t now = rte_rdtsc();

		tokd_ring_readers(&w->ring);
		w->counter[C_CYCLES_IDLE] += now - w->t_burst;
		w->t_burst = now;
	}
	w->turn_kind = C_CYCLES_IDLE;
	atomic_store(&w->turn, TOKD_NO_TURN + 1);
	while (atomic_load_explicit(w->stop, memory_order_relaxed) != TOKD_STOP)
		tokd_worker_turn(w);
	tokd_shutdown(w);
	atomic_store(&w->turn, TOKD_NO_TURN);
	return 0;
}

uint32_t
tokd_worker_open_streams(const struct tokd_worker *w)
{
	return atomic_load_explicit(&w->streams->n_open, memory_order_relaxed);
}
