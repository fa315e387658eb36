/* SPDX-License-Identifier: BSD-3-Clause */
/* The TX batch of a turn: one call of the driver, because af_xdp needs a system call per batch. */
#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "net.h"

/* For last replies that the driver accepted. Reads the clock once. */
static void
take_times(struct tokd_worker *w, uint16_t sent)
{
	uint64_t now = rte_rdtsc();

	for (uint16_t i = 0; i < w->n_last; i++) {
		if (likely(w->last[i].at < sent))
			tokd_histogram_add(&w->time[T_RING_TO_REPLY], now - w->last[i].t_publish);
	}
	w->n_last = 0;
}

void
tokd_tx_flush(struct tokd_worker *w)
{
	uint32_t bytes[TOKD_TX_MAX + 1];
	uint16_t sent;

	if (w->n_tx == 0)
		return;
	/* Before the call: a sent packet no longer belongs to us. */
	bytes[0] = 0;
	for (uint16_t i = 0; i < w->n_tx; i++)
		bytes[i + 1] = bytes[i] + rte_pktmbuf_pkt_len(w->tx[i]);

	/* No rte_eth_tx_prepare: what drivers want for checksums is in the headers (net_send.c). */
	sent = rte_eth_tx_burst(w->port, w->queue, w->tx, w->n_tx);
	if (w->n_last > 0)
		take_times(w, sent);
	w->counter[C_TX_PACKETS] += sent;
	w->counter[C_TX_BYTES] += bytes[sent];
	if (unlikely(sent < w->n_tx)) {
		/* No retry: RX must be polled, and the client asks again. */
		w->counter[C_TX_FULL] += w->n_tx - sent;
		rte_pktmbuf_free_bulk(&w->tx[sent], w->n_tx - sent);
	}
	w->n_tx = 0;
}
