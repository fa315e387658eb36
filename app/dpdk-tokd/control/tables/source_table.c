/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's sources: one table of fixed size on its NUMA node. */
#include <sys/random.h>

#include <rte_malloc.h>

#include "tables.h"

/* For each stream: one that it has, and one that is remembered. */
#define SOURCES_EACH 2
/* For each source. */
#define BUCKETS_EACH 2

static int
rank_create(struct tokd_rank *r, uint32_t streams, int node)
{
	r->with = rte_malloc_socket(
		"tokd_ranks", (streams + 1) * sizeof(*r->with), RTE_CACHE_LINE_SIZE, node);
	if (r->with == NULL)
		return -1;
	for (uint32_t i = 0; i <= streams; i++)
		TAILQ_INIT(&r->with[i]);
	return 0;
}

static int
make(struct tokd_sources *t, uint32_t streams, int node)
{
	const uint32_t buckets = rte_align32pow2(BUCKETS_EACH * t->n);

	if (getrandom(t->secret, sizeof(t->secret), 0) != sizeof(t->secret))
		return -1;
	STAILQ_INIT(&t->touched);
	t->shift = 64 - rte_log2_u32(buckets);
	t->by_addr = rte_zmalloc_socket(
		"tokd_addrs", buckets * sizeof(*t->by_addr), RTE_CACHE_LINE_SIZE, node);
	t->source = rte_zmalloc_socket(
		"tokd_source", t->n * sizeof(*t->source), RTE_CACHE_LINE_SIZE, node);
	if (t->by_addr == NULL || t->source == NULL)
		return -1;
	for (uint32_t validated = 0; validated < 2; validated++) {
		TAILQ_INIT(&t->idle[validated]);
		for (uint32_t kind = 0; kind < TOKD_KINDS; kind++) {
			if (rank_create(&t->rank[validated][kind], streams, node) != 0)
				return -1;
		}
	}
	for (uint32_t i = 0; i < t->n; i++)
		TAILQ_INSERT_TAIL(&t->idle[false], &t->source[i], idle);
	return 0;
}

struct tokd_sources *
tokd_sources_create(uint32_t streams, uint32_t worker, int node)
{
	struct tokd_sources *t;

	t = rte_zmalloc_socket("tokd_sources", sizeof(*t), RTE_CACHE_LINE_SIZE, node);
	if (t != NULL) {
		t->n = SOURCES_EACH * streams;
		if (make(t, streams, node) == 0)
			return t;
	}
	TOKD_NO_ROOM(worker, node, "--streams", "the sources of %u streams (%zu MiB)", streams,
		(SOURCES_EACH * streams * sizeof(struct tokd_source) >> 20) + 1);
	tokd_sources_free(t);
	return NULL;
}

void
tokd_sources_free(struct tokd_sources *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; i < 2 * TOKD_KINDS; i++)
		rte_free(t->rank[i / TOKD_KINDS][i % TOKD_KINDS].with);
	rte_free(t->by_addr);
	rte_free(t->source);
	rte_free(t);
}
