/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>

#include "frames6.h"

#define CLIENT_PORT 40000
static const struct rte_ether_addr client_mac = {{2, 0, 0, 0, 0, 2}};
const struct tokd_addr client_ip6 = {.byte = {0x20, 0x01, 0x0d, 0xb8, [15] = 2}};

struct rte_mbuf *
packet6(const struct tokd_addr *src, const struct tokd_addr *dst, uint8_t proto, uint8_t hop_limit,
	const void *bytes, uint32_t n, uint32_t cksum_at)
{
	uint8_t frame[HEADERS6 + 4000] = {0};
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)frame;
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(eth + 1);
	uint8_t *payload = (uint8_t *)(ip + 1);
	uint16_t cksum;

	eth->dst_addr = dst->byte[0] == 0xff ? tokd_addr_group_mac(dst) : fx->w.mac;
	eth->src_addr = client_mac;
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	*ip = (struct rte_ipv6_hdr){.vtc_flow = RTE_BE32(0x60000000),
		.payload_len = rte_cpu_to_be_16((uint16_t)n),
		.proto = proto,
		.hop_limits = hop_limit};
	memcpy(&ip->src_addr, src->byte, 16);
	memcpy(&ip->dst_addr, dst->byte, 16);
	memcpy(payload, bytes, n);
	memset(payload + cksum_at, 0, 2);
	cksum = rte_ipv6_udptcp_cksum(ip, payload);
	memcpy(payload + cksum_at, &cksum, 2);
	return raw_frame(frame, HEADERS6 + n);
}

struct rte_mbuf *
frame6(struct request r)
{
	uint8_t bytes[8 + sizeof(r.req) + 3500];
	uint32_t n = (uint32_t)(8 + sizeof(r.req) + r.n);
	struct rte_udp_hdr udp = {.src_port = RTE_BE16(CLIENT_PORT),
		.dst_port = fx->w.udp_port,
		.dgram_len = rte_cpu_to_be_16((uint16_t)n)};

	memcpy(bytes, &udp, 8);
	memcpy(bytes + 8, &r.req, sizeof(r.req));
	memcpy(bytes + 8 + sizeof(r.req), r.text, r.n);
	return packet6(&client_ip6, &fx->w.ip6, IPPROTO_UDP, 64, bytes, n,
		offsetof(struct rte_udp_hdr, dgram_cksum));
}

static struct rte_mbuf *
with_fragment_header(
	const struct rte_mbuf *m, uint32_t from, uint32_t n, uint16_t data, uint32_t id)
{
	const uint8_t *whole_frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint8_t bytes[HEADERS6 + 8 + 4000];
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(bytes + 14);
	struct rte_ipv6_fragment_ext frag = {
		.frag_data = rte_cpu_to_be_16(data), .id = rte_cpu_to_be_32(id)};

	memcpy(bytes, whole_frame, HEADERS6);
	frag.next_header = ip->proto;
	ip->proto = IPPROTO_FRAGMENT;
	ip->payload_len = rte_cpu_to_be_16((uint16_t)(8 + n));
	memcpy(bytes + HEADERS6, &frag, 8);
	memcpy(bytes + HEADERS6 + 8, whole_frame + HEADERS6 + from, n);
	return raw_frame(bytes, HEADERS6 + 8 + n);
}

struct rte_mbuf *
fragment6(const struct rte_mbuf *m, uint32_t from, uint32_t to, uint32_t id, bool more)
{
	to = RTE_MIN(to, rte_pktmbuf_data_len(m) - HEADERS6);
	return with_fragment_header(m, from, to - from, (uint16_t)(from | (more ? 1 : 0)), id);
}

struct rte_mbuf *
frame6_short_fragment(void)
{
	static const uint8_t bytes[7];

	return packet6(&client_ip6, &fx->w.ip6, IPPROTO_FRAGMENT, 64, bytes, sizeof(bytes), 0);
}
