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
 * net_frag.c reassembles fragments for the two IP stages. Every stage takes ownership of the mbuf:
 * when it returns, the mbuf is freed, held, or in the TX batch. m->l2_len and m->l3_len give the
 * header lengths until net_udp.c strips the headers. A packet may have several segments; all
 * headers and the request must be in the first.
 */
#pragma once

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "net_addr.h"
#include "worker.h"

void tokd_net_ether(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_arp(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_ipv4(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_ipv6(struct tokd_worker *w, struct rte_mbuf *m);
void tokd_net_icmp(struct tokd_worker *w, struct rte_mbuf *m);
/* `is_fragment`: it had a fragment header. */
void tokd_net_icmp6(struct tokd_worker *w, struct rte_mbuf *m, bool is_fragment);
/* `src`: source address of the IP header. */
void tokd_net_udp(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_addr *src);

/* With w->frags: drops datagrams that have expired, a death row of rte_ip_frag at most. */
void tokd_frag_expire(struct tokd_worker *w, uint64_t now);

/* m is the UDP payload; its first segment holds the request, which waits for the next call. */
void tokd_stream_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);
/* After the last frame of a burst. */
void tokd_stream_rx_waiting(struct tokd_worker *w);

/* Prepend UDP, IP and Ethernet headers to payload m, and add m to the TX batch (net_send.c). */
void tokd_net_send(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);

/* Send the TX batch (tx.c). */
void tokd_tx_flush(struct tokd_worker *w);

/*
 * Adds m to the TX batch. Flags that a driver set on reception no longer apply; but the data may be
 * in the driver's memory (mlx5 with mprq_en), which must be given back.
 */
static inline void
tokd_tx_put(struct tokd_worker *w, struct rte_mbuf *m, uint64_t offloads)
{
	m->ol_flags = (m->ol_flags & (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)) | offloads;
	if (unlikely(w->n_tx == TOKD_TX_MAX))
		tokd_tx_flush(w);
	w->tx[w->n_tx++] = m;
}

/* Cut what is behind the first `len` bytes: padding, or what a switch has appended. The packet must
 * have as many. */
static inline void
tokd_net_trim(struct rte_mbuf *m, uint32_t len)
{
	struct rte_mbuf *last = m;
	uint32_t left = len;

	if (rte_pktmbuf_pkt_len(m) == len)
		return;
	for (m->nb_segs = 1; left > last->data_len; m->nb_segs++) {
		left -= last->data_len;
		last = last->next;
	}
	rte_pktmbuf_free(last->next);
	last->next = NULL;
	last->data_len = (uint16_t)left;
	m->pkt_len = len;
}

/* The packet just added is the last reply of a text. t_publish: when its last record was. */
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
