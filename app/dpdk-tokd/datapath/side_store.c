/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_common.h>
#include <rte_memcpy.h>

#include "side_store.h"

static uint32_t
blocks_of(uint32_t count)
{
	return (count + TOKD_SIDE_IDS - 1) / TOKD_SIDE_IDS;
}

uint32_t
tokd_side_put(struct tokd_side *d, const uint32_t *ids, uint32_t count)
{
	const uint32_t first = d->free, need = blocks_of(count);
	uint32_t at = first;

	if (need > d->n_free)
		return TOKD_SIDE_NONE;
	d->n_free -= need;
	while (count > 0) {
		uint32_t n = RTE_MIN(count, TOKD_SIDE_IDS);

		rte_memcpy(d->ids[at], ids, n * sizeof(*ids));
		ids += n;
		count -= n;
		at = d->next[at];
	}
	d->free = at; /* the record keeps the chain of the free list */
	return first;
}

void
tokd_side_get(const struct tokd_side *d, uint32_t block, uint32_t skip, uint32_t count, void *dst)
{
	for (; skip >= TOKD_SIDE_IDS; skip -= TOKD_SIDE_IDS)
		block = d->next[block];
	while (count > 0) {
		uint32_t n = RTE_MIN(count, TOKD_SIDE_IDS - skip);

		rte_memcpy(dst, &d->ids[block][skip], n * sizeof(uint32_t));
		dst = RTE_PTR_ADD(dst, n * sizeof(uint32_t));
		count -= n;
		skip = 0;
		block = d->next[block];
	}
}

void
tokd_side_release(struct tokd_side *d, uint32_t block, uint32_t count)
{
	uint32_t last = block;

	for (uint32_t i = blocks_of(count); i > 1; i--)
		last = d->next[last];
	d->next[last] = d->free;
	d->free = block;
	d->n_free += blocks_of(count);
}
