/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of zero-copy replies: the mbuf pool, and the device's access to the token ring. */
#define ALLOW_EXPERIMENTAL_API /* rte_dev_dma_map, since 19.02 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include <tokd/wire.h>

#include "log.h"
#include "zero_copy_open.h"
#include "datapath/token_ring_write.h"
#include "datapath/worker.h"
#include "control/port/port.h"

#define MEMPOOL_CACHE 64 /* mbufs, a burst of replies; fewer in a small pool */
#define HELD_SHIFT 2	 /* the driver holds at most a quarter of the token ring */

static void
prepare(struct rte_mempool *pool, void *arg, void *mbuf, unsigned int i)
{
	struct tokd_zero_copy *z = arg;
	struct tokd_zc_segment *seg = rte_mbuf_to_priv(mbuf);

	seg->pos = &z->pos[i];
	seg->owner = z;
	seg->info.free_cb = tokd_zero_copy_is_free;
	seg->info.fcb_opaque = seg;
	z->pos[i] = UINT64_MAX;
}

/* Enough to fill the driver's TX ring, within its share of the token ring. */
static uint32_t
count_mbufs(const struct tokd_worker *w, const struct tokd_port *p)
{
	const uint64_t reply =
		tokd_rec_most(&w->ring, TOKD_REC_TOKENS, TOKD_WIRE_PAYLOAD / sizeof(uint32_t));
	const uint64_t room = ((w->ring.mask + 1) >> HELD_SHIFT) / reply;

	return (uint32_t)RTE_MIN(room, (uint64_t)p->tx_desc + TOKD_TX_MAX);
}

/* Let the device read the ring. 0 or -errno. */
static int
map_dma(struct tokd_worker *w, const struct tokd_port *p)
{
	struct tokd_ring *r = &w->ring;
	int rc;

	if (!r->registered)
		return -ENOTSUP;
	rc = rte_dev_dma_map(p->device, r->hdr, (uintptr_t)r->hdr, r->map_bytes);
	if (rc != 0)
		return -rte_errno;
	w->zc.device = p->device;
	return 0;
}

int
tokd_zero_copy_open(struct tokd_worker *w, const struct tokd_port *p)
{
	struct tokd_zero_copy *z = &w->zc;
	char name[RTE_MEMPOOL_NAMESIZE];
	int rc;

	if (w->opt->zero_copy_ids == 0 || p->zero_copy == TOKD_ZC_NO)
		return 0;
	if (p->zero_copy == TOKD_ZC_DMA && (rc = map_dma(w, p)) != 0) {
		TOKD_LOG(port, NOTICE,
			"port %u (%s): worker %u: the device cannot read the token ring: %s; "
			"replies carry copies of ids\n",
			p->id, p->driver, w->index, strerror(-rc));
		return 0;
	}
	z->n = count_mbufs(w, p);
	z->min = w->opt->zero_copy_ids;
	z->pos = rte_malloc_socket(
		"tokd_zero_copy", z->n * sizeof(*z->pos), RTE_CACHE_LINE_SIZE, w->node);
	snprintf(name, sizeof(name), "tokd_ids_%u_%u", p->id, w->queue);
	if (z->pos != NULL)
		z->pool = rte_pktmbuf_pool_create(name, z->n,
			RTE_MIN(z->n / 2, (uint32_t)MEMPOOL_CACHE),
			RTE_ALIGN_CEIL(sizeof(struct tokd_zc_segment), RTE_MBUF_PRIV_ALIGN), 0,
			w->node);
	if (z->pool == NULL) {
		TOKD_LOG(port, ERR,
			"port %u worker %u: cannot create a pool of %" PRIu32
			" mbufs on NUMA node %d for zero-copy replies: %s; reserve more huge pages "
			"there (with --no-huge raise -m), lower --txd, or give --zero-copy 0\n",
			p->id, w->index, z->n, w->node, strerror(ENOMEM));
		tokd_zero_copy_close(w);
		return -ENOMEM;
	}
	rte_mempool_obj_iter(z->pool, prepare, z);
	w->ring.in_use = tokd_zero_copy_in_use;
	return 0;
}

void
tokd_zero_copy_check(struct tokd_worker *w, const struct tokd_port *p)
{
	if (w->zc.pool == NULL || p->zero_copy != TOKD_ZC_DMA ||
		rte_eth_tx_done_cleanup(p->id, w->queue, 0) != -ENOTSUP)
		return;
	TOKD_LOG(port, NOTICE,
		"port %u (%s): worker %u: the driver does not say which packets it has sent "
		"(rte_eth_tx_done_cleanup); replies carry copies of ids\n",
		p->id, p->driver, w->index);
	tokd_zero_copy_close(w);
}

void
tokd_zero_copy_close(struct tokd_worker *w)
{
	struct tokd_zero_copy *z = &w->zc;

	if (z->device != NULL)
		rte_dev_dma_unmap(
			z->device, w->ring.hdr, (uintptr_t)w->ring.hdr, w->ring.map_bytes);
	w->ring.in_use = NULL;
	rte_mempool_free(z->pool);
	rte_free(z->pos);
	*z = (struct tokd_zero_copy){0};
}
