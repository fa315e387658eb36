/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's side store. */
#include <errno.h>
#include <inttypes.h>

#include <rte_common.h>
#include <rte_malloc.h>

#include "tables.h"

int
tokd_side_create(
	struct tokd_side *d, uint64_t bytes, uint64_t ring_bytes, uint32_t worker, int node)
{
	const uint32_t n = (uint32_t)(bytes / sizeof(*d->data));

	d->n = d->n_free = n;
	d->free = n > 0 ? 0 : TOKD_SIDE_NONE;
	d->bucket_shift = (uint32_t)__builtin_ctzll(ring_bytes / TOKD_SIDE_BUCKETS);
	for (uint32_t i = 0; i < TOKD_SIDE_BUCKETS; i++)
		TAILQ_INIT(&d->bucket[i]);
	if (n == 0)
		return 0;
	d->data = rte_malloc_socket("tokd_side", n * sizeof(*d->data), RTE_CACHE_LINE_SIZE, node);
	d->next = rte_malloc_socket("tokd_side", n * sizeof(*d->next), RTE_CACHE_LINE_SIZE, node);
	if (d->data == NULL || d->next == NULL) {
		TOKD_NO_ROOM(
			worker, node, "--side-store", "a side store of %" PRIu64 " bytes", bytes);
		tokd_side_destroy(d);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		d->next[i] = i + 1 < n ? i + 1 : TOKD_SIDE_NONE;
	return 0;
}

void
tokd_side_destroy(struct tokd_side *d)
{
	rte_free(d->data);
	rte_free(d->next);
	d->data = NULL;
	d->next = NULL;
}
