/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy replies: the packet's ids are segments that point into the token ring. Such a segment
 * is an mbuf without data from a separate pool. Until the driver frees it, the tail does not pass
 * its record.
 *
 *   mbuf: Ethernet, IP, UDP, tokd_rep ──▶ mbuf ──▶ ids of record n ──▶ mbuf ──▶ ids of record n + 1
 *                                                  (token ring)                 (token ring)
 *
 * port_zero_copy.c decides whether a port supports it. If not, or if the ids are in the side store
 * or the pool is empty, ids are copied into the packet. Both are counted.
 *
 * A pair with worker.h: a worker holds this state, and zero_copy.c sends the worker's batch.
 */
#pragma once

#include <stdint.h>

#include <rte_mbuf.h>

/* Segments of one packet; ids of more records are copied. */
#define TOKD_ZC_SEGS 3

struct rte_device;
struct tokd_ring;
struct tokd_worker;

struct tokd_zero_copy {
	struct rte_mempool *pool;  /* NULL: ids are copied */
	uint32_t min;		   /* the fewest ids of a zero-copy reply */
	uint32_t n;		   /* mbufs in the pool */
	uint32_t n_out;		   /* of these, not yet freed by the driver */
	uint64_t *pos;		   /* [n] position of the record; UINT64_MAX: free */
	struct rte_device *device; /* the ring is mapped for it; or NULL */
};

/* Private data of each mbuf of the pool. */
struct tokd_zc_segment {
	struct rte_mbuf_ext_shared_info info;
	uint64_t *pos; /* of this one, in tokd_zero_copy.pos */
	struct tokd_zero_copy *owner;
};

/* An mbuf for `bytes` bytes at `ids`, in the record at `pos`; NULL: the pool is empty. */
struct rte_mbuf *tokd_zero_copy_segment(
	struct tokd_worker *w, uint64_t pos, const void *ids, uint32_t bytes);

/* The driver has freed the packet: on the worker's lcore, or when the port is closed. */
void tokd_zero_copy_is_free(void *addr, void *segment);

/* For struct tokd_ring: the lowest position that unsent packets need. */
uint64_t tokd_zero_copy_in_use(void *worker);
