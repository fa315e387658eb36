/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reassembles IP fragments with rte_ip_frag: a table of fixed size per worker. A datagram has at
 * most RTE_LIBRTE_IP_FRAG_MAX_FRAG fragments, and expires after TOKD_FRAG_MS; while the table is
 * full, after TOKD_FRAG_FULL_MS: a flood of first fragments may hold a place no longer.
 */
#pragma once

#include <rte_ip_frag.h>

#include "datapath/worker.h"

#define TOKD_FRAG_MS 200
#define TOKD_FRAG_FULL_MS 2 /* 64 KiB at 1 Gbit/s take 0.5 ms */

struct tokd_frags {
	struct rte_ip_frag_tbl *table;
	struct rte_ip_frag_death_row dead; /* mbufs for us to free */
	uint64_t hurry;			   /* TSC ticks: the difference of the two times above */
};

/*
 * Take a fragment with l2_len and l3_len set, trimmed to the length in its IP header. NULL: it is
 * kept, or dropped and counted. Else the packet, in several segments, with l2_len and l3_len set
 * and the length in its IP header; the IPv4 header checksum is not updated.
 */
struct rte_mbuf *tokd_frag_ipv4(struct tokd_worker *w, struct rte_mbuf *m);
struct rte_mbuf *tokd_frag_ipv6(struct tokd_worker *w, struct rte_mbuf *m);
