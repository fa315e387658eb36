/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMPv6: answers neighbour solicitations and echo requests, in the same mbuf. */
#include <netinet/icmp6.h> /* constants only: its structs need an alignment frames do not have */
#include <netinet/in.h>

#include <rte_ip.h>

#include "datapath/net.h"
#include "net_cksum.h"

#define ECHO_HOP_LIMIT 64 /* RFC 1700, IP time to live */
#define NA_SOLICITED 0x40
#define NA_OVERRIDE 0x20
#define ND_HOP_LIMIT 255 /* RFC 4861 7.1: not forwarded by a router */

/* RFC 4443 2.1 */
struct icmp6 {
	uint8_t type, code;
	uint16_t cksum;
	uint8_t body[4];
} __attribute__((packed, aligned(2)));
static_assert(sizeof(struct icmp6) == 8, "ICMPv6 header, with the first word of its body");

/* RFC 4861 4.3; options follow. */
struct solicitation {
	uint8_t type, code;
	uint16_t cksum;
	uint8_t reserved[4];
	uint8_t target[16];
} __attribute__((packed, aligned(2)));
static_assert(sizeof(struct solicitation) == 24, "neighbour solicitation");

/* RFC 4861 4.4, with the one option we send. */
struct advertisement {
	uint8_t type, code;
	uint16_t cksum;
	uint8_t flags, reserved[3];
	uint8_t target[16];
	uint8_t option, option_words; /* target link-layer address, 1 times 8 bytes */
	struct rte_ether_addr mac;
} __attribute__((packed, aligned(2)));
static_assert(sizeof(struct advertisement) == 32, "neighbour advertisement with one option");

/* Sends the packet back. Its length is final; the checksum is written last. */
static void
answer(struct tokd_worker *w, struct rte_mbuf *m, uint8_t hop_limit, uint16_t *cksum)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, m->l2_len);

	memcpy(&ip->dst_addr, &ip->src_addr, sizeof(ip->dst_addr));
	memcpy(&ip->src_addr, w->ip6.byte, sizeof(ip->src_addr));
	ip->hop_limits = hop_limit;
	ip->payload_len =
		rte_cpu_to_be_16((uint16_t)(rte_pktmbuf_pkt_len(m) - m->l2_len - m->l3_len));
	eth->dst_addr = eth->src_addr;
	eth->src_addr = w->mac;
	*cksum = 0;
	*cksum = tokd_l4_cksum(m, ip, true, m->l2_len + m->l3_len);
	tokd_tx_put(w, m, 0);
}

static void
echo(struct tokd_worker *w, struct rte_mbuf *m, struct icmp6 *icmp)
{
	const struct rte_ipv6_hdr *ip =
		rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, m->l2_len);
	const struct tokd_addr src = tokd_addr_v6(&ip->src_addr);

	if (icmp->code != 0 || tokd_addr_is_none(&src)) {
		tokd_drop(w, m, C_DROP_ICMP);
		return;
	}
	/* RFC 4443 4.2: the addresses are reversed, the data is returned. */
	icmp->type = ICMP6_ECHO_REPLY;
	w->counter[C_ICMP_REPLIES]++;
	answer(w, m, ECHO_HOP_LIMIT, &icmp->cksum);
}

/*
 * RFC 4861 7.1.1: validates a solicitation. `len` bytes from the ICMPv6 header. A probe, which has
 * no source address, goes to the group, and has no address to remember.
 */
static bool
is_for_our_address(const struct tokd_worker *w, const struct rte_ipv6_hdr *ip, bool is_probe,
	const struct solicitation *ns, uint32_t len)
{
	const uint8_t *option = (const uint8_t *)(ns + 1);
	uint32_t left;

	if (ip->hop_limits != ND_HOP_LIMIT || len < sizeof(*ns) || ns->code != 0 ||
		memcmp(ns->target, w->ip6.byte, sizeof(w->ip6)) != 0 ||
		(is_probe && memcmp(&ip->dst_addr, w->solicited.byte, sizeof(w->solicited)) != 0))
		return false;
	for (left = len - sizeof(*ns); left > 0; left -= 8u * option[1], option += 8u * option[1]) {
		if (left < 8 || option[1] == 0 || 8u * option[1] > left ||
			(is_probe && option[0] == ND_OPT_SOURCE_LINKADDR))
			return false;
	}
	return true;
}

static void
neighbour(struct tokd_worker *w, struct rte_mbuf *m, uint32_t len, bool is_fragment)
{
	static const struct tokd_addr all_nodes = {
		.word = {RTE_BE32(0xff020000), 0, 0, RTE_BE32(1)}};
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, m->l2_len);
	const uint32_t off = m->l2_len + m->l3_len;
	struct tokd_addr src = tokd_addr_v6(&ip->src_addr);
	const bool is_probe = tokd_addr_is_none(&src);
	struct advertisement *a;

	/* RFC 6980 5: none with a fragment header is answered. */
	if (is_fragment || !is_for_our_address(w, ip, is_probe,
				   rte_pktmbuf_mtod_offset(m, struct solicitation *, off), len)) {
		tokd_drop(w, m, C_DROP_ND);
		return;
	}
	if (len < sizeof(*a) && rte_pktmbuf_append(m, (uint16_t)(sizeof(*a) - len)) == NULL) {
		tokd_drop(w, m, C_DROP_ND);
		return;
	}
	if (len > sizeof(*a))
		rte_pktmbuf_trim(m, (uint16_t)(len - sizeof(*a)));
	a = rte_pktmbuf_mtod_offset(m, struct advertisement *, off);
	*a = (struct advertisement){
		.type = ND_NEIGHBOR_ADVERT,
		.flags = (is_probe ? 0 : NA_SOLICITED) | NA_OVERRIDE,
		.option = ND_OPT_TARGET_LINKADDR,
		.option_words = 1,
		.mac = w->mac,
	};
	memcpy(a->target, w->ip6.byte, sizeof(w->ip6));
	/* RFC 4861 7.2.4: without a source address, answer to all nodes. */
	if (is_probe) {
		memcpy(&ip->src_addr, all_nodes.byte, sizeof(ip->src_addr));
		eth->src_addr = tokd_addr_group_mac(&all_nodes);
	}
	w->counter[C_ND_REPLIES]++;
	answer(w, m, ND_HOP_LIMIT, &a->cksum);
}

void
tokd_net_icmp6(struct tokd_worker *w, struct rte_mbuf *m, bool is_fragment)
{
	const uint32_t off = m->l2_len + m->l3_len;
	const void *ip = rte_pktmbuf_mtod_offset(m, const void *, m->l2_len);
	struct icmp6 *icmp = rte_pktmbuf_mtod_offset(m, struct icmp6 *, off);
	uint32_t len = rte_pktmbuf_data_len(m) - off;

	if (unlikely(w->kernel_answers)) {
		tokd_drop(w, m, C_LEFT_TO_KERNEL);
		return;
	}
	/* RFC 4443 2.3: the checksum covers the pseudo header. */
	if (m->nb_segs != 1 || len < sizeof(*icmp) || tokd_l4_sum(m, ip, true, off) != 0xffff)
		tokd_drop(w, m, C_DROP_ICMP);
	else if (icmp->type == ND_NEIGHBOR_SOLICIT)
		neighbour(w, m, len, is_fragment);
	else if (icmp->type == ICMP6_ECHO_REQUEST)
		echo(w, m, icmp);
	else
		tokd_drop(w, m, C_DROP_ICMP);
}
