/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP fragments to packets, by rte_ip_frag: a table of a fixed number of datagrams for each worker.
 * A datagram has at most RTE_LIBRTE_IP_FRAG_MAX_FRAG fragments; one that is not whole within
 * TOKD_FRAG_MS makes way for another.
 */
#ifndef TOKD_NET_FRAG_H
#define TOKD_NET_FRAG_H

#include <rte_ip_frag.h>

#include "datapath/worker.h"

/*
 * Fragments follow each other at line rate; the table must not be held for long by those that
 * never become whole.
 */
#define TOKD_FRAG_MS 200

struct tokd_frags {
	struct rte_ip_frag_tbl *table;
	struct rte_ip_frag_death_row dead; /* what the library wants freed */
};

/* Set-up (net_frag_open.c), for `n` datagrams at once, on `node`. NULL with a message logged. */
struct tokd_frags *tokd_frags_create(uint32_t n, uint32_t worker, int node, uint64_t tsc_hz);
void tokd_frags_free(struct tokd_frags *f);

/* mbufs that n datagrams hold at most. */
uint32_t tokd_frags_mbufs(uint32_t n);

/*
 * Take a fragment whose l2_len and l3_len are set, trimmed to the length its IP header says. NULL:
 * it was kept, or dropped and counted. Else the whole packet, in several segments, with l2_len and
 * l3_len set; its IP header tells its length, its IPv4 checksum is not kept right.
 */
struct rte_mbuf *tokd_frag_ipv4(struct tokd_worker *w, struct rte_mbuf *m);
struct rte_mbuf *tokd_frag_ipv6(struct tokd_worker *w, struct rte_mbuf *m);

#endif
