/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker. */
#include <errno.h>
#include <inttypes.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include <tokd/wire.h>

#include "log.h"
#include "worker_open.h"
#include "port/port.h"
#include "tables/tables.h"

/*
 * A turn of the loop spends this long on new text, as long on text that waits, and as long on texts
 * that the GPU gave back, each time plus one piece. If sources share, all three together take an
 * eighth of it (drr.h).
 */
#define FEED_US 250
/* A new text that would wait for longer is refused: its source is told to come again. */
#define DELAY_US 100

/* An mbuf must hold a whole reply and its headers. */
#define REPLY_ROOM (RTE_PKTMBUF_HEADROOM + sizeof(struct tokd_rep) + TOKD_WIRE_PAYLOAD)

int
tokd_worker_bound_held(struct tokd_worker *w, const struct tokd_port *p)
{
	/* A driver may use more mbufs than it has RX descriptors: net_af_xdp uses 2048. */
	const uint32_t rx = RTE_MAX(p->rx_desc, rte_mempool_in_use_count(w->pool));
	struct opt_error e = {""};

	/* Those that set-up has left in this lcore's cache: the worker could never take them. */
	rte_mempool_cache_flush(NULL, w->pool);
	if (!tokd_mbufs_check(w->opt, rx, p->tx_desc, w->mtu, &e)) {
		TOKD_LOG(worker, ERR, "worker %u: %s\n", w->index, e.text);
		return -EINVAL;
	}
	w->held_max = w->opt->mbufs - tokd_mbufs_taken(w->opt, rx, p->tx_desc, w->mtu);
	return 0;
}

int
tokd_worker_init(struct tokd_worker *w, const struct tokd_port *p)
{
	const struct tokd_options *opt = w->opt;
	int rc;

	w->tsc_hz = rte_get_tsc_hz();
	w->feed_ticks = w->tsc_hz / 1000000 * FEED_US;
	w->delay_most = w->tsc_hz / 1000000 * DELAY_US;
	tokd_drr_init(&w->drr);
	atomic_init(&w->next_terms, w->terms);

	if (rte_pktmbuf_data_room_size(w->pool) < REPLY_ROOM) {
		TOKD_LOG(worker, ERR,
			"worker %u: mbufs of %u bytes are too small: a reply needs %zu; raise "
			"--mbuf-room\n",
			w->index, rte_pktmbuf_data_room_size(w->pool), REPLY_ROOM);
		return -EINVAL;
	}
	rc = tokd_worker_bound_held(w, p);
	if (rc < 0)
		return rc;
	if (!tokd_addr_is_none(&w->ip6)) {
		w->solicited = tokd_addr_solicited(&w->ip6);
		w->solicited_mac = tokd_addr_group_mac(&w->solicited);
	}

	w->streams = tokd_streams_create(
		opt->streams, w->index, w->node, w->terms->open_ticks, w->terms->finished_ticks);
	/* Each has one stream at least, and one is being made room for. */
	w->sources = w->streams == NULL ? NULL
					: tokd_sources_create(opt->streams + 1, w->index, w->node);
	if (w->sources == NULL)
		return -ENOMEM;
	rc = tokd_names_create(&w->streams->names, opt->names_bytes, w->index, w->node, w->tsc_hz,
		2 * opt->stream_timeout_ms);
	if (rc == 0)
		rc = tokd_keys_open(w);
	if (rc == 0)
		rc = tokd_side_create(
			&w->side, opt->side_bytes, w->ring.mask + 1, w->index, w->node);
	if (rc < 0)
		return rc;
	w->wipe = w->side.wipe = opt->wipe;
	w->ring.before_reuse = tokd_spill_before_reuse;
	w->ring.owner = w;
	if (opt->fragments > 0) {
		w->frags = tokd_frags_create(opt->fragments, w->index, w->node, w->tsc_hz);
		if (w->frags == NULL)
			return -ENOMEM;
	}
	return 0;
}

void
tokd_worker_free(struct tokd_worker *w)
{
	tokd_side_destroy(&w->side);
	tokd_frags_free(w->frags);
	w->frags = NULL;
	tokd_streams_free(w->streams);
	w->streams = NULL;
	tokd_sources_free(w->sources);
	w->sources = NULL;
}
