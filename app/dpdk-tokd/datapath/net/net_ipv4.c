/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4: passes valid packets for our address to ICMP or UDP; net_frag.c reassembles fragments. */
#include <netinet/in.h>

#include <rte_ip.h>

#include "datapath/net.h"
#include "net_frag.h"

static bool
cksum_is_right(const struct tokd_worker *w, const struct rte_mbuf *m, const struct rte_ipv4_hdr *ip)
{
	const uint64_t said = m->ol_flags & w->rx_cksum & RTE_MBUF_F_RX_IP_CKSUM_MASK;

	/* NONE: the header is right, the field is not. */
	if (said != RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN)
		return said != RTE_MBUF_F_RX_IP_CKSUM_BAD;
	/* 0 over a header with a correct checksum. */
	return rte_ipv4_cksum(ip) == 0;
}

/* RFC 1122 3.2.1.3: the source must be the address of a single host. */
static bool
source_is_a_host(const struct tokd_worker *w, rte_be32_t src)
{
	rte_be32_t first_byte = src & RTE_BE32(0xff000000);

	return first_byte != 0 && first_byte != RTE_BE32(0x7f000000) &&
	       (src & RTE_BE32(0xe0000000)) != RTE_BE32(0xe0000000) && src != w->ip;
}

void
tokd_net_ipv4(struct tokd_worker *w, struct rte_mbuf *m)
{
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, m->l2_len);
	uint32_t first = rte_pktmbuf_data_len(m) - m->l2_len;
	uint32_t room = rte_pktmbuf_pkt_len(m) - m->l2_len;
	struct tokd_addr src;
	uint32_t hdr_len, total;

	/* RFC 791 3.1, Version and IHL: version 4, a header of at least five words. */
	if (unlikely(first < sizeof(*ip) || ip->version_ihl >> 4 != IPVERSION)) {
		tokd_drop(w, m, C_DROP_IP_HEADER);
		return;
	}
	hdr_len = rte_ipv4_hdr_len(ip);
	/* RFC 791 3.1, Total Length: header and data. The frame may be longer (padding). */
	total = rte_be_to_cpu_16(ip->total_length);
	if (unlikely(hdr_len < sizeof(*ip) || hdr_len > first || total < hdr_len || total > room)) {
		tokd_drop(w, m, C_DROP_IP_HEADER);
		return;
	}
	tokd_net_trim(m, m->l2_len + total);
	/* RFC 1122 3.2.1.2: a host must verify the header checksum and discard silently. */
	if (unlikely(!cksum_is_right(w, m, ip))) {
		tokd_drop(w, m, C_DROP_IP_CKSUM);
		return;
	}
	if (unlikely(ip->dst_addr != w->ip || w->ip == 0)) {
		tokd_drop(w, m, C_DROP_IP_DST);
		return;
	}
	if (unlikely(!source_is_a_host(w, ip->src_addr))) {
		tokd_drop(w, m, C_DROP_IP_HEADER);
		return;
	}
	m->l3_len = hdr_len;
	/* RFC 791 3.2: a fragment has More Fragments or an offset. */
	if (unlikely(ip->fragment_offset &
		     RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK))) {
		m = tokd_frag_ipv4(w, m);
		if (m == NULL)
			return; /* waits for other fragments, or dropped */
		ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, m->l2_len);
	}

	src = tokd_addr_v4(ip->src_addr);
	if (likely(ip->next_proto_id == IPPROTO_UDP))
		tokd_net_udp(w, m, &src);
	else if (ip->next_proto_id == IPPROTO_ICMP)
		tokd_net_icmp(w, m);
	else
		tokd_drop(w, m, C_DROP_IP_PROTO);
}
