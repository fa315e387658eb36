/* SPDX-License-Identifier: BSD-3-Clause */
#include "datapath/net_allow.h"

#include <rte_acl.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_prefetch.h>

#include "datapath/net.h"

/* IP headers of one family, and whose they are. */
struct headers {
	uint32_t n;
	const uint8_t *at[TOKD_BURST];
	uint8_t frame[TOKD_BURST];
};

/* What has no IP header is left to the stages, which drop it, or answer ARP. */
static inline void
find_header(const struct rte_mbuf *m, uint8_t i, struct headers *v4, struct headers *v6)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const uint32_t len = rte_pktmbuf_data_len(m);
	uint32_t off = sizeof(*eth);
	rte_be16_t type;

	if (len < off + sizeof(struct rte_vlan_hdr))
		return;
	type = eth->ether_type;
	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		type = ((const struct rte_vlan_hdr *)(eth + 1))->eth_proto;
		off += sizeof(struct rte_vlan_hdr);
	}
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && len >= off + sizeof(struct rte_ipv4_hdr)) {
		v4->at[v4->n] = (const uint8_t *)eth + off;
		v4->frame[v4->n++] = i;
	} else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6) &&
		   len >= off + sizeof(struct rte_ipv6_hdr)) {
		v6->at[v6->n] = (const uint8_t *)eth + off;
		v6->frame[v6->n++] = i;
	}
}

/* A bit for each frame that no rule allows. */
static uint32_t
find_refused(const struct rte_acl_ctx *rules, struct headers *h)
{
	uint32_t result[TOKD_BURST] = {0}, refused = 0;

	if (h->n == 0)
		return 0;
	if (rules != NULL)
		rte_acl_classify(rules, h->at, result, h->n, 1);
	for (uint32_t i = 0; i < h->n; i++)
		refused |= (uint32_t)(result[i] == 0) << h->frame[i];
	return refused;
}

uint16_t
tokd_net_allow(struct tokd_worker *w, struct rte_mbuf **m, uint16_t n)
{
	struct headers v4 = {.n = 0}, v6 = {.n = 0};
	uint32_t refused;
	uint16_t n_kept = 0;

	_Static_assert(TOKD_BURST <= 32, "a bit for each frame");
	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], const void *));
	for (uint16_t i = 0; i < n; i++)
		find_header(m[i], (uint8_t)i, &v4, &v6);
	refused = find_refused(w->allow->v4, &v4) | find_refused(w->allow->v6, &v6);
	if (likely(refused == 0))
		return n;
	for (uint16_t i = 0; i < n; i++) {
		if ((refused >> i & 1) == 0) {
			m[n_kept++] = m[i];
			continue;
		}
		w->counter[C_RX_BYTES] += rte_pktmbuf_pkt_len(m[i]);
		tokd_drop(w, m[i], C_DROP_SOURCE);
	}
	return n_kept;
}
