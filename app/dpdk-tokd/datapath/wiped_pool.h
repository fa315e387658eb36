/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --wipe: a pool of mbufs that zeroes what comes back. mbufs in an lcore's cache have not come back
 * yet. A kind of pool beside DPDK's own: without --wipe nothing is different.
 */
#pragma once

#include <rte_mempool.h>

/* Set-up: that of DPDK's own kind, which ours calls. */
extern rte_mempool_enqueue_t tokd_wiped_pool_base;

int tokd_wiped_pool_put(struct rte_mempool *pool, void *const *mbuf, unsigned int n);
