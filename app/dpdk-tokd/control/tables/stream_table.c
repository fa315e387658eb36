/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's streams: one table of fixed size on its NUMA node. */
#include <sys/random.h>

#include <rte_malloc.h>

#include "tables.h"

/* Buckets for each stream that may be open, in each of the two hashes. */
#define BUCKETS_EACH 2

/* Clients choose keys, and serials count up as they open texts: secrets keep them from filling one
 * bucket. */
static int
buckets_create(struct tokd_streams *t, int node)
{
	const uint32_t n = rte_align32pow2(BUCKETS_EACH * t->n);

	if (getrandom(&t->serial_secret, sizeof(t->serial_secret), 0) != sizeof(t->serial_secret) ||
		getrandom(t->cookie_key, sizeof(t->cookie_key), 0) != sizeof(t->cookie_key))
		return -1;
	t->serial_secret |= 1;
	t->serial_shift = 64 - rte_log2_u32(n);
	t->key_mask = n - 1;
	t->by_serial = rte_zmalloc_socket(
		"tokd_serials", n * sizeof(*t->by_serial), RTE_CACHE_LINE_SIZE, node);
	t->by_key =
		rte_zmalloc_socket("tokd_keys", n * sizeof(*t->by_key), RTE_CACHE_LINE_SIZE, node);
	return t->by_serial != NULL && t->by_key != NULL ? 0 : -1;
}

struct tokd_streams *
tokd_streams_create(
	uint32_t n, uint32_t worker, int node, uint64_t open_ticks, uint64_t finished_ticks)
{
	struct tokd_streams *t;

	t = rte_zmalloc_socket("tokd_streams", sizeof(*t), RTE_CACHE_LINE_SIZE, node);
	if (t == NULL)
		goto no_memory;
	TAILQ_INIT(&t->free);
	TAILQ_INIT(&t->open);
	TAILQ_INIT(&t->aborting);
	TAILQ_INIT(&t->finished);
	t->open_ticks = open_ticks;
	t->finished_ticks = finished_ticks;
	t->n = n;
	t->stream = rte_zmalloc_socket(
		"tokd_stream", (n + 1) * sizeof(*t->stream), RTE_CACHE_LINE_SIZE, node);
	if (t->stream == NULL || buckets_create(t, node) != 0)
		goto no_memory;
	for (uint32_t i = 0; i <= n; i++)
		TAILQ_INSERT_TAIL(&t->free, &t->stream[i], link);

	return t;

no_memory:
	TOKD_NO_ROOM(worker, node, "--streams", "%u streams (%zu MiB)", n,
		(n * sizeof(*t->stream) + (1u << 20) - 1) >> 20);
	tokd_streams_free(t);
	return NULL;
}

void
tokd_streams_free(struct tokd_streams *t)
{
	if (t == NULL)
		return;
	tokd_names_free(&t->names);
	rte_free(t->keys);
	rte_free(t->by_key);
	rte_free(t->by_serial);
	rte_free(t->stream);
	rte_free(t);
}
