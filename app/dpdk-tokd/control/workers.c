/* SPDX-License-Identifier: BSD-3-Clause */
#include "workers.h"

#include <errno.h>
#include <inttypes.h>
#include <arpa/inet.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "app.h"
#include "gpu_sink_control.h"
#include "log.h"
#include "token_ring_open.h"
#include "worker_open.h"
#include "zero_copy_open.h"

/* The main lcore is a worker like any other, and the first. */
static int
worker_make(struct tokd_app *app, uint32_t index, unsigned int lcore)
{
	const int node = (int)rte_lcore_to_socket_id(lcore);
	struct tokd_worker *w;

	w = rte_zmalloc_socket("tokd_worker", sizeof(*w), RTE_CACHE_LINE_SIZE, node);
	if (w == NULL) {
		TOKD_LOG(worker, ERR,
			"worker %u: cannot allocate %zu bytes of EAL memory on NUMA node %d\n",
			index, sizeof(*w), node);
		return -ENOMEM;
	}
	app->worker[index] = w;
	app->ring[index] = &w->ring;
	w->index = index;
	w->lcore = lcore;
	w->node = node;
	return 0;
}

/* What a worker owns. After a failure tokd_workers_close frees the rest. */
static int
worker_open(struct tokd_app *app, struct tokd_worker *w)
{
	const struct tokd_options *opt = &app->opt;
	uint64_t hugepage = 0;
	int rc;

	w->port = app->port.id;
	w->queue = (uint16_t)w->index;
	w->terms = app->served->terms[w->index];
	w->allow = opt->allow != NULL ? &app->allow : NULL;
	w->ip = app->address.ip;
	w->ip6 = app->address.ip6;
	w->kernel_answers = app->address.kernel_answers;
	w->vlan = opt->vlan;
	w->udp_port = htons(opt->udp_port);
	w->text_port = htons(opt->text_port);
	w->mac = app->address.mac;
	w->mtu = app->port.mtu;
	w->rx_cksum_trust = opt->rx_checksum == TOKD_RX_TRUST;
	w->rx_cksum = app->port.rx_cksum;
	w->tx_cksum = app->port.tx_cksum;
	w->opt = opt;
	w->stop = &app->stop;

	w->pool = tokd_port_pool(&app->port, opt, w->queue, w->node);
	if (w->pool == NULL)
		return -ENOMEM;
	if (rte_eal_has_hugepages()) {
		hugepage = tokd_ring_hugepage(opt->ring_bytes);
		if (hugepage == 0)
			TOKD_LOG(worker, WARNING,
				"worker %u: not enough free huge pages for a token ring of %" PRIu64
				" bytes: using ordinary pages; reserve more, or lower "
				"--ring-size\n",
				w->index, opt->ring_bytes);
	}
	rc = tokd_ring_create(&w->ring, w->index, w->lcore, w->node, opt->ring_bytes, hugepage,
		w->terms->vocab[0].checksum, app->instance);
	if (rc == 0)
		rc = tokd_worker_init(w, &app->port);
	if (rc == 0)
		rc = tokd_zero_copy_open(w, &app->port);
	if (rc == 0 && opt->sink != NULL)
		rc = tokd_sink_open(w, app->instance);
	if (rc == 0)
		rc = tokd_port_queue(&app->port, w->queue, w->node, w->pool);
	return rc;
}

int
tokd_workers_open(struct tokd_app *app)
{
	unsigned int lcore;
	uint32_t index = 1;
	int rc;

	rc = tokd_sinks_resolve(app);
	if (rc == 0)
		rc = worker_make(app, 0, rte_get_main_lcore());
	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (rc == 0)
			rc = worker_make(app, index++, lcore);
	}
	for (uint32_t i = 0; i < app->n_workers && rc == 0; i++)
		rc = worker_open(app, app->worker[i]);
	return rc;
}

void
tokd_workers_close(struct tokd_app *app)
{
	for (uint32_t i = 0; i < app->n_workers; i++) {
		struct tokd_worker *w = app->worker[i];

		if (w == NULL)
			continue;
		tokd_zero_copy_close(w);
		tokd_sink_close(w);
		tokd_ring_free(&w->ring);
		rte_mempool_free(w->pool);
		rte_free(w);
	}
}
