/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --wipe: a pool of mbufs that zeroes what is returned to it, which does not include mbufs in an
 * lcore's cache. It is a pool type beside DPDK's own, which is used without --wipe.
 */
#pragma once

#include <rte_mempool.h>

/* Set-up: the function of DPDK's own pool type, which ours calls. */
extern rte_mempool_enqueue_t tokd_wiped_pool_base;

int tokd_wiped_pool_put(struct rte_mempool *pool, void *const *mbuf, unsigned int n);
