/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet: frames for us go on to ARP or IPv4. */
#include <rte_ether.h>

#include "net.h"

void
tokd_net_ether(struct tokd_worker *w, struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth;

	/* A header or a text that lies in two segments would be misread by everything below. */
	if (unlikely(m->nb_segs != 1)) {
		tokd_drop(w, m, C_DROP_SEGMENTS);
		return;
	}
	if (unlikely(rte_pktmbuf_data_len(m) < sizeof(*eth))) {
		tokd_drop(w, m, C_DROP_ETHER);
		return;
	}
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	/* IEEE 802.3 3.2.8: an answer to a group address as source would go to the whole group. */
	if (unlikely(!rte_is_unicast_ether_addr(&eth->src_addr))) {
		tokd_drop(w, m, C_DROP_ETHER);
		return;
	}
	m->l2_len = sizeof(*eth);
	if (likely(rte_is_same_ether_addr(&eth->dst_addr, &w->mac))) {
		if (likely(eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))) {
			tokd_net_ipv4(w, m);
			return;
		}
		if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP)) {
			tokd_net_arp(w, m);
			return;
		}
	} else if (rte_is_broadcast_ether_addr(&eth->dst_addr) &&
		   eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP)) {
		tokd_net_arp(w, m);
		return;
	}
	tokd_drop(w, m, C_DROP_ETHER);
}
