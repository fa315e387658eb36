/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's streams: one table of fixed size on its NUMA node. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <rte_errno.h>
#include <rte_jhash.h>
#include <rte_malloc.h>

#include "log.h"
#include "stream_table.h"

/*
 * The hash has twice as many entries as streams: a cuckoo table that is nearly full may reject a
 * key, and then a free stream could not be opened.
 */
#define HASH_SLACK 2
#define HASH_LEAST 8 /* rte_hash's minimum */

/* Serials count up as clients open texts: a secret keeps clients from filling one bucket. */
static int
serials_create(struct tokd_streams *t, int node)
{
	const uint32_t n = rte_align32pow2(RTE_MAX(t->n, 2u));

	if (getrandom(&t->serial_secret, sizeof(t->serial_secret), 0) != sizeof(t->serial_secret))
		return -1;
	t->serial_secret |= 1;
	t->serial_shift = 64 - rte_log2_u32(n);
	t->by_serial = rte_zmalloc_socket(
		"tokd_serials", n * sizeof(*t->by_serial), RTE_CACHE_LINE_SIZE, node);
	return t->by_serial != NULL ? 0 : -1;
}

static struct rte_hash *
hash_create(uint32_t n, uint32_t worker, int node)
{
	struct rte_hash_parameters params = {
		.entries = RTE_MAX(n * HASH_SLACK, (uint32_t)HASH_LEAST),
		.key_len = sizeof(struct tokd_stream_key),
		/*
		 * Clients choose keys. Without a secret (CRC) a client could fill one bucket; jhash
		 * takes a random initial value.
		 */
		.hash_func = rte_jhash,
		.socket_id = node,
	};
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash *h;

	if (getrandom(&params.hash_func_init_val, sizeof(params.hash_func_init_val), 0) !=
		sizeof(params.hash_func_init_val)) {
		TOKD_LOG(worker, ERR,
			"worker %u: cannot get a random number for the stream hash (getrandom): "
			"%s\n",
			worker, strerror(errno));
		return NULL;
	}
	snprintf(name, sizeof(name), "tokd_streams_%u", worker);
	params.name = name;
	h = rte_hash_create(&params);
	if (h == NULL)
		TOKD_LOG(worker, ERR,
			"worker %u: cannot create a hash of %u entries on NUMA node %d: %s; lower "
			"--streams, or reserve more huge pages there (with --no-huge raise -m)\n",
			worker, params.entries, node, rte_strerror(rte_errno));
	return h;
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
	TAILQ_INIT(&t->awaited);
	TAILQ_INIT(&t->finished);
	TAILQ_INIT(&t->deferred);
	t->open_ticks = open_ticks;
	t->finished_ticks = finished_ticks;
	t->n = n;
	t->stream = rte_zmalloc_socket(
		"tokd_stream", (n + 1) * sizeof(*t->stream), RTE_CACHE_LINE_SIZE, node);
	if (t->stream == NULL || serials_create(t, node) != 0)
		goto no_memory;
	for (uint32_t i = 0; i <= n; i++)
		TAILQ_INSERT_TAIL(&t->free, &t->stream[i], link);

	t->hash = hash_create(n, worker, node);
	if (t->hash == NULL) {
		tokd_streams_free(t);
		return NULL;
	}
	return t;

no_memory:
	TOKD_LOG(worker, ERR,
		"worker %u: cannot allocate %u streams (%zu MiB) on NUMA node %d; lower --streams, "
		"or reserve more huge pages there (with --no-huge raise -m)\n",
		worker, n, (n * sizeof(*t->stream) + (1u << 20) - 1) >> 20, node);
	tokd_streams_free(t);
	return NULL;
}

void
tokd_streams_free(struct tokd_streams *t)
{
	if (t == NULL)
		return;
	rte_hash_free(t->hash);
	rte_free(t->by_serial);
	rte_free(t->stream);
	rte_free(t);
}
