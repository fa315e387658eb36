/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of our packets: UDP, the peer's IP version, Ethernet, VLAN tag. */
#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include <tokd/wire.h>

#include "datapath/net.h"
#include "net_cksum.h"

#define TTL 64 /* RFC 1700, IP time to live */

static_assert(sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr) +
			      sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr) <=
		      RTE_PKTMBUF_HEADROOM,
	"headers must fit the headroom");

#define MTU 1500 /* of Ethernet: our packets are never fragmented */
static_assert(sizeof(struct tokd_rep) + TOKD_WIRE_PAYLOAD + sizeof(struct rte_udp_hdr) +
			      sizeof(struct rte_ipv6_hdr) <=
		      MTU,
	"a full reply or request must fit one packet");
static_assert(sizeof(struct tokd_req) == sizeof(struct tokd_rep), "same length");

/* This and the next return the offloads that the packet needs. */
static uint64_t
put_ipv4(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer)
{
	const uint16_t total = (uint16_t)(rte_pktmbuf_pkt_len(m) + sizeof(struct rte_ipv4_hdr));
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod(m, struct rte_udp_hdr *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)rte_pktmbuf_prepend(m, sizeof(*ip));

	*ip = (struct rte_ipv4_hdr){.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(total),
		/* RFC 6864 4.1: with DF set the identification is unused. */
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = TTL,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = w->ip,
		.dst_addr = peer->addr.word[3]};
	m->l3_len = sizeof(*ip);
	if (!(w->tx_cksum & RTE_MBUF_F_TX_IP_CKSUM))
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	if (w->tx_cksum & RTE_MBUF_F_TX_UDP_CKSUM)
		udp->dgram_cksum = rte_ipv4_phdr_cksum(ip, 0);
	else
		udp->dgram_cksum = tokd_l4_cksum(m, ip, false, sizeof(*ip));
	return w->tx_cksum != 0 ? w->tx_cksum | RTE_MBUF_F_TX_IPV4 : 0;
}

static uint64_t
put_ipv6(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer)
{
	const uint16_t payload = (uint16_t)rte_pktmbuf_pkt_len(m);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod(m, struct rte_udp_hdr *);
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)rte_pktmbuf_prepend(m, sizeof(*ip));

	*ip = (struct rte_ipv6_hdr){.vtc_flow = RTE_BE32(0x60000000),
		.payload_len = rte_cpu_to_be_16(payload),
		.proto = IPPROTO_UDP,
		.hop_limits = TTL};
	memcpy(&ip->src_addr, w->ip6.byte, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, peer->addr.byte, sizeof(ip->dst_addr));
	if (w->tx_cksum & RTE_MBUF_F_TX_UDP_CKSUM) {
		m->l3_len = sizeof(*ip);
		udp->dgram_cksum = rte_ipv6_phdr_cksum(ip, 0);
		return RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
	}
	udp->dgram_cksum = tokd_l4_cksum(m, ip, true, sizeof(*ip));
	return 0;
}

static void
put_ether(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer, bool v4)
{
	const rte_be16_t type = v4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);
	struct rte_ether_hdr *eth;

	m->l2_len = sizeof(*eth);
	if (w->vlan != 0) {
		struct rte_vlan_hdr *tag =
			(struct rte_vlan_hdr *)rte_pktmbuf_prepend(m, sizeof(*tag));

		*tag = (struct rte_vlan_hdr){
			.vlan_tci = rte_cpu_to_be_16(w->vlan), .eth_proto = type};
		m->l2_len += sizeof(*tag);
	}
	eth = (struct rte_ether_hdr *)rte_pktmbuf_prepend(m, sizeof(*eth));
	*eth = (struct rte_ether_hdr){.dst_addr = peer->mac,
		.src_addr = w->mac,
		.ether_type = w->vlan != 0 ? RTE_BE16(RTE_ETHER_TYPE_VLAN) : type};
}

void
tokd_net_send(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer)
{
	const uint32_t len = rte_pktmbuf_pkt_len(m) + sizeof(struct rte_udp_hdr);
	const bool v4 = tokd_addr_is_v4(&peer->addr);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)rte_pktmbuf_prepend(m, sizeof(*udp));
	uint64_t offloads;

	*udp = (struct rte_udp_hdr){.src_port = peer->our_port,
		.dst_port = peer->port,
		.dgram_len = rte_cpu_to_be_16((uint16_t)len)};
	offloads = likely(v4) ? put_ipv4(w, m, peer) : put_ipv6(w, m, peer);
	put_ether(w, m, peer, v4);
	tokd_tx_put(w, m, offloads);
}
