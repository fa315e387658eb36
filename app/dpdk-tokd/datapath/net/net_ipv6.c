/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6: passes valid packets for our address to ICMPv6 or UDP; net_frag.c reassembles fragments. */
#include <netinet/in.h>

#include <rte_ip.h>

#include "datapath/net.h"
#include "net_frag.h"

/* Our address, or its solicited-node group. */
static bool
is_for_us(const struct tokd_worker *w, const struct rte_ipv6_hdr *ip)
{
	const struct tokd_addr dst = tokd_addr_v6(&ip->dst_addr);

	if (tokd_addr_is_none(&w->ip6))
		return false;
	return tokd_addr_is_same(&dst, &w->ip6) ||
	       (ip->proto == IPPROTO_ICMPV6 && tokd_addr_is_same(&dst, &w->solicited));
}

/* RFC 4861 4.3, 7.2.1: :: is valid only for duplicate address detection. */
static bool
source_is_a_host(
	const struct tokd_worker *w, const struct rte_ipv6_hdr *ip, const struct tokd_addr *src)
{
	if (tokd_addr_is_none(src))
		return ip->proto == IPPROTO_ICMPV6;
	return tokd_addr_is_v6_host(src) && !tokd_addr_is_same(src, &w->ip6);
}

void
tokd_net_ipv6(struct tokd_worker *w, struct rte_mbuf *m)
{
	const struct rte_ipv6_hdr *ip =
		rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, m->l2_len);
	uint32_t first = rte_pktmbuf_data_len(m) - m->l2_len;
	uint32_t room = rte_pktmbuf_pkt_len(m) - m->l2_len;
	struct tokd_addr src;
	uint32_t total;
	bool is_fragment;

	/* RFC 8200 3: version 6, a header of 40 bytes. */
	if (unlikely(first < sizeof(*ip) ||
		     (ip->vtc_flow & RTE_BE32(0xf0000000)) != RTE_BE32(0x60000000))) {
		tokd_drop(w, m, C_DROP_IP_HEADER);
		return;
	}
	/* RFC 8200 3, Payload Length: after this header. The frame may be longer (padding). */
	total = sizeof(*ip) + rte_be_to_cpu_16(ip->payload_len);
	if (unlikely(total > room)) {
		tokd_drop(w, m, C_DROP_IP_HEADER);
		return;
	}
	tokd_net_trim(m, m->l2_len + total);
	if (unlikely(!is_for_us(w, ip))) {
		tokd_drop(w, m, C_DROP_IP_DST);
		return;
	}
	src = tokd_addr_v6(&ip->src_addr);
	if (unlikely(!source_is_a_host(w, ip, &src))) {
		tokd_drop(w, m, C_DROP_IP_HEADER);
		return;
	}
	m->l3_len = sizeof(*ip);
	is_fragment = ip->proto == IPPROTO_FRAGMENT;
	if (unlikely(is_fragment)) {
		m = tokd_frag_ipv6(w, m);
		if (m == NULL)
			return; /* waits for other fragments, or dropped */
		ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, m->l2_len);
	}

	if (likely(ip->proto == IPPROTO_UDP))
		tokd_net_udp(w, m, &src);
	else if (ip->proto == IPPROTO_ICMPV6)
		tokd_net_icmp6(w, m, is_fragment);
	else
		/* Also other extension headers, which hosts do not send us. */
		tokd_drop(w, m, C_DROP_IP_PROTO);
}
