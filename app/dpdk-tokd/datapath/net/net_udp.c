/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP: passes valid datagrams for our ports to their stream, without headers. */
#include <rte_ip.h>
#include <rte_udp.h>

#include <tokd/wire.h>

#include "datapath/net.h"
#include "net_cksum.h"
#include "datapath/stream/refused.h"
#include "datapath/stream/text_port.h"

static bool
cksum_is_right(const struct tokd_worker *w, const struct rte_mbuf *m, const struct rte_udp_hdr *udp,
	bool v6)
{
	const void *ip = rte_pktmbuf_mtod_offset(m, const void *, m->l2_len);
	const uint64_t said = m->ol_flags & w->rx_cksum & RTE_MBUF_F_RX_L4_CKSUM_MASK;

	/* RFC 768: zero means no checksum; RFC 8200 8.1: not allowed in IPv6. */
	if (udp->dgram_cksum == 0)
		return !v6;
	if (w->rx_cksum_trust)
		return true;
	/* NONE: the data is right, the field is not. */
	if (said != RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN)
		return said != RTE_MBUF_F_RX_L4_CKSUM_BAD;
	return tokd_l4_sum(m, ip, v6, m->l2_len + m->l3_len) == 0xffff;
}

void
tokd_net_udp(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_addr *src)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const uint32_t off = m->l2_len + m->l3_len;
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, off);
	uint32_t len = rte_pktmbuf_pkt_len(m) - off;
	struct tokd_peer peer;
	bool is_text;

	/* The header must be in one segment. */
	if (unlikely(m->nb_segs != 1 && rte_pktmbuf_data_len(m) < off + sizeof(*udp))) {
		tokd_drop(w, m, C_DROP_SEGMENTS);
		return;
	}
	/*
	 * RFC 768, Length: header and data, at least 8. Bytes beyond it are not covered by the
	 * checksum: dropped.
	 */
	if (unlikely(len < sizeof(*udp) || rte_be_to_cpu_16(udp->dgram_len) != len)) {
		tokd_drop(w, m, C_DROP_UDP_LENGTH);
		return;
	}
	/* RFC 768, Source Port: zero means that no reply is possible. */
	is_text = udp->dst_port == w->text_port;
	if (unlikely((udp->dst_port != w->udp_port && !is_text) || udp->dst_port == 0 ||
		     udp->src_port == 0)) {
		tokd_drop(w, m, C_DROP_UDP_PORT);
		return;
	}
	if (unlikely(is_text && rte_be_to_cpu_16(udp->src_port) < TOKD_CLIENT_PORTS)) {
		tokd_drop(w, m, C_DROP_TEXT_SOURCE);
		return;
	}
	if (unlikely(m->nb_segs != 1 && !is_text &&
		     rte_pktmbuf_data_len(m) < off + sizeof(*udp) + sizeof(struct tokd_req))) {
		tokd_drop(w, m, C_DROP_SEGMENTS);
		return;
	}
	peer = (struct tokd_peer){.addr = *src,
		.mac = eth->src_addr,
		.port = udp->src_port,
		.our_port = udp->dst_port};
	if (unlikely(tokd_refused_follows(w, m, off + sizeof(*udp), &peer))) {
		tokd_drop(w, m, C_DROP_BACKLOG);
		return;
	}
	/* RFC 1122 4.1.3.4: a wrong checksum must be dropped silently. */
	if (unlikely(!cksum_is_right(w, m, udp, !tokd_addr_is_v4(src)))) {
		tokd_drop(w, m, C_DROP_UDP_CKSUM);
		return;
	}
	rte_pktmbuf_adj(m, (uint16_t)(off + sizeof(*udp)));
	if (unlikely(is_text))
		tokd_text_rx(w, m, &peer);
	else
		tokd_stream_rx(w, m, &peer);
}
