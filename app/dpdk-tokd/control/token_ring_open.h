/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a token ring. */
#pragma once

#include "datapath/token_ring.h"

/*
 * The huge page size in bytes that wastes the least memory on a ring of data_bytes, of the sizes
 * with enough free pages; 0: none.
 */
uint64_t tokd_ring_hugepage(uint64_t data_bytes);

/*
 * Create a ring of data_bytes (a power of two, at least 64 KiB) on NUMA node `node` (-1: any), in
 * huge pages of hugepage_bytes, or in ordinary pages if that is 0 or, with a warning, if there are
 * too few. It is sealed and, if possible, the DPDK memzone tokd_ring_N. Returns 0, or -errno with a
 * message logged that names size, node and remedy.
 */
int tokd_ring_create(struct tokd_ring *r, uint32_t worker, uint32_t lcore, int node,
	uint64_t data_bytes, uint64_t hugepage_bytes, uint32_t vocab, uint64_t instance);
void tokd_ring_free(struct tokd_ring *r);
