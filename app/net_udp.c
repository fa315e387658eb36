/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP: whole datagrams for our port go on to their stream, without their headers. */
#include <rte_ip.h>
#include <rte_udp.h>

#include "net.h"

static bool
cksum_is_right(const struct tokd_worker *w, const struct rte_mbuf *m, const struct rte_ipv4_hdr *ip,
	const struct rte_udp_hdr *udp)
{
	/* RFC 768: an all zero transmitted checksum value means that none was generated. */
	if (udp->dgram_cksum == 0)
		return true;
	if (w->rx_cksum_offload) {
		uint64_t said = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;

		if (said == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
			return true;
		if (said == RTE_MBUF_F_RX_L4_CKSUM_BAD)
			return false;
	}
	/* Over a datagram with a right checksum in it the result is zero, which UDP writes so. */
	return rte_ipv4_udptcp_cksum(ip, udp) == 0xffff;
}

void
tokd_net_udp(struct tokd_worker *w, struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, m->l2_len);
	const struct rte_udp_hdr *udp =
		rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, m->l2_len + m->l3_len);
	uint32_t len = rte_pktmbuf_data_len(m) - m->l2_len - m->l3_len;
	struct tokd_peer peer;

	/*
	 * RFC 768, Length: of header and data, at least 8. What IP carries beyond it belongs to
	 * nobody, and the checksum does not cover it: refused.
	 */
	if (unlikely(len < sizeof(*udp) || rte_be_to_cpu_16(udp->dgram_len) != len)) {
		tokd_drop(w, m, C_DROP_UDP_LENGTH);
		return;
	}
	/* RFC 768, Source Port: zero means that no answer is possible. */
	if (unlikely(udp->dst_port != w->udp_port || udp->src_port == 0)) {
		tokd_drop(w, m, C_DROP_UDP_PORT);
		return;
	}
	/* RFC 1122 4.1.3.4: a non-zero checksum must be verified, and discarded silently. */
	if (unlikely(!cksum_is_right(w, m, ip, udp))) {
		tokd_drop(w, m, C_DROP_UDP_CKSUM);
		return;
	}

	peer = (struct tokd_peer){.mac = eth->src_addr, .port = udp->src_port, .ip = ip->src_addr};
	rte_pktmbuf_adj(m, (uint16_t)(m->l2_len + m->l3_len + sizeof(*udp)));
	tokd_stream_rx(w, m, &peer);
}
