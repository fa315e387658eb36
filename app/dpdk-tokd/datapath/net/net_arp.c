/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP: answers requests for our address, in the same mbuf. */
#include <rte_arp.h>

#include "datapath/net.h"

void
tokd_net_arp(struct tokd_worker *w, struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_arp_hdr *arp = rte_pktmbuf_mtod_offset(m, struct rte_arp_hdr *, m->l2_len);

	if (unlikely(w->kernel_answers)) {
		tokd_drop(w, m, C_LEFT_TO_KERNEL);
		return;
	}
	if (m->nb_segs != 1 || rte_pktmbuf_data_len(m) < m->l2_len + sizeof(*arp)) {
		tokd_drop(w, m, C_DROP_ARP);
		return;
	}
	/* RFC 826, packet reception: our hardware, protocol and target address. */
	if (arp->arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
		arp->arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
		arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != sizeof(w->ip) ||
		arp->arp_opcode != RTE_BE16(RTE_ARP_OP_REQUEST) || arp->arp_data.arp_tip != w->ip ||
		w->ip == 0) {
		tokd_drop(w, m, C_DROP_ARP);
		return;
	}

	/* RFC 826: swap the addresses, fill in ours, send it back. */
	arp->arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
	arp->arp_data.arp_tha = arp->arp_data.arp_sha;
	arp->arp_data.arp_tip = arp->arp_data.arp_sip;
	arp->arp_data.arp_sha = w->mac;
	arp->arp_data.arp_sip = w->ip;
	eth->dst_addr = eth->src_addr;
	eth->src_addr = w->mac;

	w->counter[C_ARP_REPLIES]++;
	tokd_tx_put(w, m, 0);
}
