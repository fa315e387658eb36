/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "datapath/wiped_pool.h"
#include "log.h"
#include "port.h"

#define MEMPOOL_CACHE 256 /* mbufs; --mbufs is at least twice that */

/*
 * Name of the pool type of --wipe, which differs from DPDK's own only in zeroing what is returned.
 * Registered on first use. NULL: it cannot be registered.
 */
static const char *
wiping(void)
{
	static const char name[] = "tokd_wipe";

	for (uint32_t i = 0; tokd_wiped_pool_base == NULL && i < rte_mempool_ops_table.num_ops;
		i++) {
		struct rte_mempool_ops ops = *rte_mempool_get_ops((int)i);
		int rc;

		if (strcmp(ops.name, RTE_MBUF_DEFAULT_MEMPOOL_OPS) != 0)
			continue;
		tokd_wiped_pool_base = ops.enqueue;
		ops.enqueue = tokd_wiped_pool_put;
		snprintf(ops.name, sizeof(ops.name), "%s", name);
		rc = rte_mempool_register_ops(&ops);
		if (rc < 0) {
			tokd_wiped_pool_base = NULL;
			TOKD_LOG(port, ERR,
				"--wipe: cannot register a kind of mbuf pool that zeroes "
				"(rte_mempool_register_ops): %s\n",
				strerror(-rc));
			return NULL;
		}
	}
	return name;
}

struct rte_mempool *
tokd_port_pool(const struct tokd_port *p, const struct tokd_options *opt, uint16_t queue, int node)
{
	const uint16_t room = (uint16_t)(RTE_PKTMBUF_HEADROOM + opt->mbuf_room);
	const char *ops = opt->wipe ? wiping() : NULL; /* NULL: the default */
	struct rte_mempool *pool;
	char name[RTE_MEMPOOL_NAMESIZE];

	if (opt->wipe && ops == NULL)
		return NULL;
	snprintf(name, sizeof(name), "tokd_mbuf_%u_%u", p->id, queue);
	pool = rte_pktmbuf_pool_create_by_ops(name, opt->mbufs, MEMPOOL_CACHE, 0, room, node, ops);
	if (pool == NULL)
		TOKD_LOG(port, ERR,
			"port %u queue %u: cannot create a pool of %" PRIu32
			" mbufs of %u bytes on NUMA node %d: %s; reserve more huge pages there "
			"(with --no-huge raise -m), or lower --mbufs\n",
			p->id, queue, opt->mbufs, room, node, rte_strerror(rte_errno));
	return pool;
}
