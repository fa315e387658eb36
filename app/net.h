/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stages a frame passes, one file each, in this order:
 *
 *   net_ether.c ─┬─ net_arp.c   answered in place
 *                └─ net_ipv4.c ─┬─ net_icmp.c   answered in place
 *                               └─ net_udp.c ─── stream_rx.c
 *
 * Every stage takes the mbuf: it is freed, kept, or put into the TX batch when the call returns.
 * Until net_udp.c strips them, m->l2_len and m->l3_len tell where the headers are.
 */
#ifndef TOKD_NET_H
#define TOKD_NET_H

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "worker.h"

/* Where a datagram came from, and its answer goes. Network byte order. */
struct tokd_peer {
	struct rte_ether_addr mac;
	uint16_t port;
	uint32_t ip;
};

void tokd_net_ether(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_arp(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_ipv4(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_icmp(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_udp(struct tokd_worker *w, struct rte_mbuf *m);

/* m begins with the UDP payload and holds nothing else. */
void tokd_stream_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);

/* Hand the batch to the driver (tx.c). */
void tokd_tx_flush(struct tokd_worker *w);

static inline void
tokd_tx_put(struct tokd_worker *w, struct rte_mbuf *m)
{
	if (unlikely(w->n_tx == TOKD_TX_MAX))
		tokd_tx_flush(w);
	w->tx[w->n_tx++] = m;
}

static inline void
tokd_drop(struct tokd_worker *w, struct rte_mbuf *m, enum tokd_counter why)
{
	w->counter[why]++;
	rte_pktmbuf_free(m);
}

#endif
