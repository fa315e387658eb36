/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet, with or without a VLAN tag: passes frames for us to ARP, IPv4 or IPv6. */
#include <rte_ether.h>

#include "datapath/net.h"

#define VLAN_ID 0x0fff /* of a tag; DPDK has a name for it from 22.11.5 and 23.11.1 on */

/*
 * IEEE 802.1Q 9.6: a tag has the VLAN and the EtherType. A frame without a tag, or with a priority
 * tag, has VLAN 0. False if it is not our VLAN.
 */
static bool
take_vlan(const struct tokd_worker *w, struct rte_mbuf *m, rte_be16_t *type)
{
	const struct rte_vlan_hdr *tag;
	uint16_t vlan = 0;

	if (*type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		if (rte_pktmbuf_data_len(m) < sizeof(struct rte_ether_hdr) + sizeof(*tag))
			return false;
		tag = rte_pktmbuf_mtod_offset(
			m, const struct rte_vlan_hdr *, sizeof(struct rte_ether_hdr));
		vlan = rte_be_to_cpu_16(tag->vlan_tci) & VLAN_ID;
		*type = tag->eth_proto;
		m->l2_len = sizeof(struct rte_ether_hdr) + sizeof(*tag);
	}
	return vlan == w->vlan;
}

void
tokd_net_ether(struct tokd_worker *w, struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth;
	rte_be16_t type;

	/* Some drivers always strip the tag: restore it, for replies in the same mbuf. */
	if (unlikely((m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && rte_vlan_insert(&m) != 0)) {
		tokd_drop(w, m, C_DROP_VLAN);
		return;
	}
	if (unlikely(rte_pktmbuf_data_len(m) < sizeof(*eth))) {
		tokd_drop(w, m, C_DROP_ETHER);
		return;
	}
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	/* IEEE 802.3 3.2.8: a reply to a group address would go to the whole group. */
	if (unlikely(!rte_is_unicast_ether_addr(&eth->src_addr))) {
		tokd_drop(w, m, C_DROP_ETHER);
		return;
	}
	m->l2_len = sizeof(*eth);
	type = eth->ether_type;
	if (unlikely(!take_vlan(w, m, &type))) {
		tokd_drop(w, m, C_DROP_VLAN);
		return;
	}
	if (likely(rte_is_same_ether_addr(&eth->dst_addr, &w->mac))) {
		if (likely(type == RTE_BE16(RTE_ETHER_TYPE_IPV4))) {
			tokd_net_ipv4(w, m);
			return;
		}
		if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6)) {
			tokd_net_ipv6(w, m);
			return;
		}
		if (type == RTE_BE16(RTE_ETHER_TYPE_ARP)) {
			tokd_net_arp(w, m);
			return;
		}
	} else if (rte_is_broadcast_ether_addr(&eth->dst_addr)) {
		if (type == RTE_BE16(RTE_ETHER_TYPE_ARP)) {
			tokd_net_arp(w, m);
			return;
		}
	} else if (rte_is_same_ether_addr(&eth->dst_addr, &w->solicited_mac)) {
		if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6)) {
			tokd_net_ipv6(w, m);
			return;
		}
	}
	tokd_drop(w, m, C_DROP_ETHER);
}
