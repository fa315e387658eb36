/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>

#include <rte_ip.h>

#include "datapath/net.h"
#include "net_frag.h"

static void
free_expired(struct tokd_worker *w)
{
	struct tokd_frags *f = w->frags;

	if (f->dead.cnt == 0)
		return;
	w->counter[C_DROP_IP_FRAGMENT] += f->dead.cnt;
	rte_ip_frag_free_death_row(&f->dead, 0);
}

static void
delete_expired(struct tokd_frags *f, uint64_t now)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* experimental in DPDK 22.11 */
	rte_ip_frag_table_del_expired_entries(f->table, &f->dead, now);
#pragma GCC diagnostic pop
}

void
tokd_frag_expire(struct tokd_worker *w, uint64_t now)
{
	delete_expired(w->frags, now);
	free_expired(w);
}

/*
 * If the table had no place for m, which it can take: drops the oldest datagrams. False if that
 * made no place. From DPDK 26.07 on, a part that has come twice looks the same.
 */
static bool
made_place(struct tokd_worker *w, const struct rte_mbuf *m)
{
	struct tokd_frags *f = w->frags;

	if (f->dead.cnt != 1 || f->dead.row[0] != m)
		return false;
	delete_expired(f, w->t_burst + f->hurry);
	if (f->dead.cnt == 1)
		return false;
	f->dead.row[0] = f->dead.row[--f->dead.cnt]; /* m gets its place */
	free_expired(w);
	return true;
}

/* The device's checksum result is for the fragment, not for the packet. */
static struct rte_mbuf *
reassembled(struct tokd_worker *w, struct rte_mbuf *m)
{
	free_expired(w);
	if (m == NULL)
		return NULL;
	m->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
	w->counter[C_RX_REASSEMBLED]++;
	return m;
}

struct rte_mbuf *
tokd_frag_ipv4(struct tokd_worker *w, struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, m->l2_len);
	const uint32_t at = RTE_IPV4_HDR_OFFSET_UNITS *
			    (rte_be_to_cpu_16(ip->fragment_offset) & RTE_IPV4_HDR_OFFSET_MASK);
	const uint32_t len = rte_be_to_cpu_16(ip->total_length);
	struct rte_mbuf *all;

	/* RFC 791 3.1, Total Length: a datagram has at most 65,535 bytes. */
	if (w->frags == NULL || len == m->l3_len || at + len > UINT16_MAX) {
		tokd_drop(w, m, C_DROP_IP_FRAGMENT);
		return NULL;
	}
	w->counter[C_RX_FRAGMENTS]++;
	do
		all = rte_ipv4_frag_reassemble_packet(
			w->frags->table, &w->frags->dead, m, w->t_burst, ip);
	while (all == NULL && made_place(w, m));
	/* The same. The first fragment may have options that the others have not. */
	if (all != NULL && rte_pktmbuf_pkt_len(all) - all->l2_len > UINT16_MAX) {
		tokd_drop(w, all, C_DROP_IP_FRAGMENT);
		all = NULL;
	}
	return reassembled(w, all);
}

/* RFC 6946 4: an atomic fragment is a whole packet, whatever other fragments there are. */
static bool
is_atomic(const struct rte_ipv6_hdr *ip)
{
	const struct rte_ipv6_fragment_ext *frag = (const struct rte_ipv6_fragment_ext *)(ip + 1);

	return (frag->frag_data & RTE_BE16(RTE_IPV6_EHDR_MF_MASK | RTE_IPV6_EHDR_FO_MASK)) == 0;
}

/* RFC 8200 4.5: it would make a payload of more than 65,535 bytes. */
static bool
is_beyond(const struct rte_ipv6_hdr *ip)
{
	const struct rte_ipv6_fragment_ext *frag = (const struct rte_ipv6_fragment_ext *)(ip + 1);
	const uint32_t len = rte_be_to_cpu_16(ip->payload_len) - (uint32_t)sizeof(*frag);

	return (rte_be_to_cpu_16(frag->frag_data) & RTE_IPV6_EHDR_FO_MASK) + len > UINT16_MAX;
}

static struct rte_mbuf *
without_header(struct rte_mbuf *m, struct rte_ipv6_hdr *ip)
{
	ip->proto = ((const struct rte_ipv6_fragment_ext *)(ip + 1))->next_header;
	ip->payload_len = rte_cpu_to_be_16(
		(uint16_t)(rte_be_to_cpu_16(ip->payload_len) - RTE_IPV6_FRAG_HDR_SIZE));
	memmove(rte_pktmbuf_mtod_offset(m, uint8_t *, RTE_IPV6_FRAG_HDR_SIZE),
		rte_pktmbuf_mtod(m, const uint8_t *), m->l2_len + sizeof(*ip));
	rte_pktmbuf_adj(m, RTE_IPV6_FRAG_HDR_SIZE);
	/* The device may have computed it for the fragment only. */
	m->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
	return m;
}

struct rte_mbuf *
tokd_frag_ipv6(struct tokd_worker *w, struct rte_mbuf *m)
{
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, m->l2_len);
	const uint32_t end = m->l2_len + sizeof(*ip) + RTE_IPV6_FRAG_HDR_SIZE;
	struct rte_mbuf *all;

	if (rte_pktmbuf_data_len(m) < end ||
		rte_be_to_cpu_16(ip->payload_len) <= RTE_IPV6_FRAG_HDR_SIZE) {
		tokd_drop(w, m, C_DROP_IP_FRAGMENT);
		return NULL;
	}
	if (is_atomic(ip))
		return without_header(m, ip);
	if (w->frags == NULL || is_beyond(ip)) {
		tokd_drop(w, m, C_DROP_IP_FRAGMENT);
		return NULL;
	}
	w->counter[C_RX_FRAGMENTS]++;
	m->l3_len = sizeof(*ip) + RTE_IPV6_FRAG_HDR_SIZE;
	do
		all = rte_ipv6_frag_reassemble_packet(w->frags->table, &w->frags->dead, m,
			w->t_burst, ip, (struct rte_ipv6_fragment_ext *)(ip + 1));
	while (all == NULL && made_place(w, m));
	all = reassembled(w, all);
	if (all != NULL)
		all->l3_len = sizeof(*ip); /* the fragment header is gone */
	return all;
}
