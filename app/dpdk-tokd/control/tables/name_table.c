/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's memory of names. */
#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

#include <rte_malloc.h>

#include "tables.h"

#define STEPS_PER_SECOND 16
/*
 * A source has few texts up to a 64th of the buckets. 64 such sources fill the table to one name a
 * bucket, where all but 8 names in 100,000 stand.
 */
#define SOURCES 64

int
tokd_names_create(struct tokd_names *t, uint64_t bytes, uint32_t worker, int node, uint64_t tsc_hz,
	uint32_t horizon_ms)
{
	if (getrandom(t->secret, sizeof(t->secret), 0) != sizeof(t->secret)) {
		TOKD_LOG(worker, ERR, "worker %u: no random numbers from the kernel\n", worker);
		return -EIO;
	}
	t->shift = 63 - (uint32_t)__builtin_clzll(tsc_hz / STEPS_PER_SECOND);
	t->horizon = (uint32_t)((tsc_hz >> t->shift) * horizon_ms / 1000);
	t->n_buckets = (uint32_t)(bytes / sizeof(*t->bucket));
	t->few = t->n_buckets / SOURCES + 1;
	t->bucket = rte_zmalloc_socket(
		"tokd_names", t->n_buckets * sizeof(*t->bucket), RTE_CACHE_LINE_SIZE, node);
	if (t->bucket != NULL)
		return 0;
	TOKD_NO_ROOM(worker, node, "--done-names", "%" PRIu64 " bytes for names of finished texts",
		bytes);
	return -ENOMEM;
}

void
tokd_names_free(struct tokd_names *t)
{
	rte_free(t->bucket);
	t->bucket = NULL;
}
