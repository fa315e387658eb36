/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stages a frame passes, one file each, in this order:
 *
 *   net_ether.c ─┬─ net_arp.c                      answered in place
 *                ├─ net_ipv4.c ─┬─ net_icmp.c      answered in place
 *                │              └─ net_udp.c ────── stream_rx.c
 *                └─ net_ipv6.c ─┬─ net_icmp6.c     answered in place
 *                               └─ net_udp.c
 *
 * net_frag.c makes one packet of fragments on behalf of the two IP stages. Every stage takes the
 * mbuf: it is freed, kept, or put into the TX batch when the call returns. Until net_udp.c strips
 * them, m->l2_len and m->l3_len tell where the headers are. A packet may lie in several segments;
 * headers must be in the first, up to and including the request's.
 */
#ifndef TOKD_NET_H
#define TOKD_NET_H

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "net_addr.h"
#include "worker.h"

void tokd_net_ether(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_arp(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_ipv4(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_ipv6(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_icmp(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_icmp6(struct tokd_worker *w, struct rte_mbuf *m);
/* `src` is the address the IP stage took it from. */
void tokd_net_udp(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_addr *src);

/* m begins with the UDP payload and holds nothing else; its first segment holds a request. */
void tokd_stream_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);

/* Put UDP, IP and Ethernet headers before the payload m, and m into the TX batch (net_send.c). */
void tokd_net_send(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);

/* Hand the batch to the driver (tx.c). */
void tokd_tx_flush(struct tokd_worker *w);

static inline void
tokd_tx_put(struct tokd_worker *w, struct rte_mbuf *m)
{
	if (unlikely(w->n_tx == TOKD_TX_MAX))
		tokd_tx_flush(w);
	w->tx[w->n_tx++] = m;
}

/* Is the packet trimmed to `len` bytes? Not if its last segment is padding and more. */
static inline bool
tokd_net_trim(struct rte_mbuf *m, uint32_t len)
{
	uint32_t over = rte_pktmbuf_pkt_len(m) - len;

	return over == 0 || (over <= UINT16_MAX && rte_pktmbuf_trim(m, (uint16_t)over) == 0);
}

/* The packet just put answers a text whole, whose last record was published at t_publish. */
static inline void
tokd_tx_is_last(struct tokd_worker *w, uint64_t t_publish)
{
	w->last[w->n_last++] = (struct tokd_last_reply){.at = w->n_tx - 1, .t_publish = t_publish};
}

static inline void
tokd_drop(struct tokd_worker *w, struct rte_mbuf *m, enum tokd_counter reason)
{
	w->counter[reason]++;
	rte_pktmbuf_free(m);
}

#endif
