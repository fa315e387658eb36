/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "side_store.h"

static uint32_t
blocks_of(uint32_t bytes)
{
	return (bytes + TOKD_SIDE_BLOCK - 1) / TOKD_SIDE_BLOCK;
}

uint32_t
tokd_side_put(struct tokd_side *d, const void *data, uint32_t bytes)
{
	const uint32_t first = d->free, need = blocks_of(bytes);
	uint32_t at = first;

	if (need > d->n_free)
		return TOKD_SIDE_NONE;
	d->n_free -= need;
	while (bytes > 0) {
		uint32_t n = RTE_MIN(bytes, TOKD_SIDE_BLOCK);

		memcpy(d->data[at], data, n);
		data = RTE_PTR_ADD(data, n);
		bytes -= n;
		at = d->next[at];
	}
	d->free = at; /* the record keeps the chain of the free list */
	return first;
}

void
tokd_side_get(const struct tokd_side *d, uint32_t block, uint32_t skip, uint32_t bytes, void *dst)
{
	for (; skip >= TOKD_SIDE_BLOCK; skip -= TOKD_SIDE_BLOCK)
		block = d->next[block];
	while (bytes > 0) {
		uint32_t n = RTE_MIN(bytes, TOKD_SIDE_BLOCK - skip);

		memcpy(dst, &d->data[block][skip], n);
		dst = RTE_PTR_ADD(dst, n);
		bytes -= n;
		skip = 0;
		block = d->next[block];
	}
}

void
tokd_side_release(struct tokd_side *d, uint32_t block, uint32_t bytes)
{
	uint32_t last = block;

	for (uint32_t i = blocks_of(bytes); i > 1; i--)
		last = d->next[last];
	if (unlikely(d->wipe)) {
		for (uint32_t at = block; at != d->next[last]; at = d->next[at])
			memset(d->data[at], 0, TOKD_SIDE_BLOCK);
	}
	d->next[last] = d->free;
	d->free = block;
	d->n_free += blocks_of(bytes);
}
