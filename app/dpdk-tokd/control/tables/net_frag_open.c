/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's fragment table. */
#include <rte_malloc.h>

#include "tables.h"
#include "datapath/net/net_frag.h"

#define BUCKET_ENTRIES 4 /* datagrams whose addresses and identification share a hash */

/*
 * RSS hashes fragments by address only, whole datagrams also by port: packets of one text would
 * reach different workers.
 */
uint32_t
tokd_frags_each(uint32_t fragments, uint32_t n_workers)
{
	return n_workers == 1 ? fragments : 0;
}

struct tokd_frags *
tokd_frags_create(uint32_t n, uint32_t worker, int node, uint64_t tsc_hz)
{
	struct tokd_frags *f;

	f = rte_zmalloc_socket("tokd_frags", sizeof(*f), RTE_CACHE_LINE_SIZE, node);
	if (f != NULL)
		f->table = rte_ip_frag_table_create(
			n, BUCKET_ENTRIES, n, tsc_hz / 1000 * TOKD_FRAG_MS, node);
	if (f == NULL || f->table == NULL) {
		TOKD_NO_ROOM(worker, node, "--fragments", "fragments of %u datagrams", n);
		rte_free(f);
		return NULL;
	}
	f->hurry = tsc_hz / 1000 * (TOKD_FRAG_MS - TOKD_FRAG_FULL_MS);
	return f;
}

void
tokd_frags_free(struct tokd_frags *f)
{
	if (f == NULL)
		return;
	rte_ip_frag_table_destroy(f->table);
	rte_free(f);
}
