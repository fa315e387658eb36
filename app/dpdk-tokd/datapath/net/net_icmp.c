/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP: answers echo requests (ping), in the same mbuf. */
#include <netinet/ip_icmp.h>

#include <rte_icmp.h>
#include <rte_ip.h>

#include "datapath/net.h"

#define ICMP_TTL 64 /* RFC 1700, IP time to live */

void
tokd_net_icmp(struct tokd_worker *w, struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, m->l2_len);
	struct rte_icmp_hdr *icmp =
		rte_pktmbuf_mtod_offset(m, struct rte_icmp_hdr *, m->l2_len + m->l3_len);
	uint32_t len = rte_pktmbuf_data_len(m) - m->l2_len - m->l3_len;

	if (unlikely(w->kernel_answers)) {
		tokd_drop(w, m, C_LEFT_TO_KERNEL);
		return;
	}
	/* RFC 792, Echo; RFC 1122 3.2.2: drop a wrong checksum silently. Packets with IP options
	 * are dropped: RFC 1122 3.2.2.6 would require reversing a source route. */
	if (m->l3_len != sizeof(*ip) || m->nb_segs != 1 || len < sizeof(*icmp) ||
		icmp->icmp_type != ICMP_ECHO || icmp->icmp_code != 0 ||
		rte_raw_cksum(icmp, len) != 0xffff) {
		tokd_drop(w, m, C_DROP_ICMP);
		return;
	}

	/* RFC 792: the addresses are reversed, the type becomes 0, the data is returned. */
	icmp->icmp_type = ICMP_ECHOREPLY;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, len);
	ip->dst_addr = ip->src_addr;
	ip->src_addr = w->ip;
	ip->time_to_live = ICMP_TTL;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	eth->dst_addr = eth->src_addr;
	eth->src_addr = w->mac;

	w->counter[C_ICMP_REPLIES]++;
	tokd_tx_put(w, m, 0);
}
