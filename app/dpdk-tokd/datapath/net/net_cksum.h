/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums of transport protocols, over one or several segments. */
#pragma once

#include <rte_ip.h>
#include <rte_mbuf.h>

/*
 * Sum from `off` to the end of the packet. rte_raw_cksum_mbuf() of DPDK 22.11 loses carries if a
 * segment begins at an odd byte, so segments are summed one by one.
 */
static inline uint32_t
tokd_raw_sum(const struct rte_mbuf *m, uint32_t off)
{
	uint32_t sum = 0, done = 0;

	for (; m != NULL; m = m->next) {
		uint32_t n = rte_pktmbuf_data_len(m);
		uint16_t part;

		if (off >= n) {
			off -= n;
			continue;
		}
		part = rte_raw_cksum(rte_pktmbuf_mtod_offset(m, const void *, off), n - off);
		sum += (done & 1) ? rte_bswap16(part) : part;
		done += n - off;
		off = 0;
	}
	return sum;
}

/*
 * Sum, not inverted, over the pseudo header and from `off` to the end of the packet: 0xffff if it
 * includes a correct checksum. `ip`: the header, of either version, with the packet's length.
 */
static inline uint16_t
tokd_l4_sum(const struct rte_mbuf *m, const void *ip, bool v6, uint32_t off)
{
	uint32_t sum = tokd_raw_sum(m, off);

	sum += v6 ? rte_ipv6_phdr_cksum(ip, 0) : rte_ipv4_phdr_cksum(ip, 0);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* The checksum, for a field that is zero now. RFC 768: zero is sent as all ones. */
static inline uint16_t
tokd_l4_cksum(const struct rte_mbuf *m, const void *ip, bool v6, uint32_t off)
{
	uint16_t sum = (uint16_t)~tokd_l4_sum(m, ip, v6, off);

	return sum == 0 ? 0xffff : sum;
}
