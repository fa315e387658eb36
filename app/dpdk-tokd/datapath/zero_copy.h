/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies without a copy: the packet's ids are a segment that points into the token ring. Such a
 * segment is an mbuf of a pool of its own, without room for data; until the driver has freed it,
 * the ring's tail does not pass the record it points into.
 *
 *   mbuf: Ethernet, IP, UDP, tokd_rep ──▶ mbuf ──▶ ids of record n ──▶ mbuf ──▶ ids of record n + 1
 *                                                  (token ring)                 (token ring)
 *
 * Whether a port can do it is found out by port_zero_copy.c; where it cannot, or the ids are in the
 * side store, or the pool is empty, ids are copied into the packet. Both are counted.
 *
 * A pair with worker.h: a worker holds what is here, and zero_copy.c sends the worker's batch.
 */
#ifndef TOKD_ZERO_COPY_H
#define TOKD_ZERO_COPY_H

#include <stdint.h>

#include <rte_mbuf.h>

/* Segments of ids in one packet; ids in more records than that are copied. */
#define TOKD_ZC_SEGS 3

struct rte_device;
struct tokd_port; /* port.h */
struct tokd_ring;
struct tokd_worker;

struct tokd_zero_copy {
	struct rte_mempool *pool; /* NULL: ids are copied */
	uint32_t min;		  /* ids of a reply from which on it is done */
	uint32_t n;		  /* mbufs in the pool */
	uint32_t n_out;		  /* of them, not yet freed by the driver */
	uint64_t *pos; /* [n] of the record an mbuf points into; UINT64_MAX: it is free */
	struct rte_device *device; /* that the ring is mapped for, else NULL */
};

/* Behind each mbuf of the pool. */
struct tokd_zc_segment {
	struct rte_mbuf_ext_shared_info info;
	uint64_t *pos; /* of this one, in tokd_zero_copy.pos */
	struct tokd_zero_copy *owner;
};

/*
 * Set-up (zero_copy_open.c), after the ring is made: nothing is done where the port cannot, or
 * --zero-copy is 0. Returns 0, or -errno with a message logged.
 */
int tokd_zero_copy_open(struct tokd_worker *w, const struct tokd_port *p);
/*
 * After the port is started. A driver that reads the ring later, and cannot be asked to look at
 * what it has sent, would hold a full ring until other packets push it on: it gets copies.
 */
void tokd_zero_copy_check(struct tokd_worker *w, const struct tokd_port *p);
/* After the port is closed, which frees what the driver still had, and before the ring is. */
void tokd_zero_copy_close(struct tokd_worker *w);

/* Hot. An mbuf whose data are `bytes` bytes at `ids`, in the record at `pos`; NULL: none is free.
 */
struct rte_mbuf *tokd_zero_copy_segment(
	struct tokd_worker *w, uint64_t pos, const uint32_t *ids, uint32_t bytes);

/* The driver has freed the packet: on the worker's lcore, or at the end, when the port is closed.
 */
void tokd_zero_copy_is_free(void *addr, void *segment);

/* For struct tokd_ring: the lowest position that packets on their way still need. */
uint64_t tokd_zero_copy_in_use(void *worker);

#endif
