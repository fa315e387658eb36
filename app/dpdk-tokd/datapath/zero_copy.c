/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_ethdev.h>

#include "net.h"
#include "zero_copy.h"

void
tokd_zero_copy_is_free(void *addr, void *segment)
{
	struct tokd_zc_segment *seg = segment;

	*seg->pos = UINT64_MAX;
	seg->owner->n_out--;
}

struct rte_mbuf *
tokd_zero_copy_segment(struct tokd_worker *w, uint64_t pos, const void *ids, uint32_t bytes)
{
	struct tokd_zero_copy *z = &w->zc;
	struct rte_mbuf *m = rte_pktmbuf_alloc(z->pool);
	struct tokd_zc_segment *seg;

	if (m == NULL)
		return NULL;
	seg = rte_mbuf_to_priv(m);
	rte_mbuf_ext_refcnt_set(&seg->info, 1);
	/* Never written: struct rte_mbuf has no const. */
	rte_pktmbuf_attach_extbuf(
		m, (void *)(uintptr_t)ids, (rte_iova_t)(uintptr_t)ids, (uint16_t)bytes, &seg->info);
	m->data_len = (uint16_t)bytes;
	m->pkt_len = bytes;
	*seg->pos = pos;
	z->n_out++;
	return m;
}

uint64_t
tokd_zero_copy_in_use(void *worker)
{
	struct tokd_worker *w = worker;
	const struct tokd_zero_copy *z = &w->zc;
	uint64_t lowest = UINT64_MAX;

	if (z->n_out == 0)
		return lowest;
	/* Some are still in the TX batch, others wait for the driver to free them. */
	tokd_tx_flush(w);
	if (z->n_out != 0)
		(void)rte_eth_tx_done_cleanup(w->port, w->queue, 0);
	for (uint32_t i = 0; z->n_out != 0 && i < z->n; i++)
		lowest = RTE_MIN(lowest, z->pos[i]);
	return lowest;
}
