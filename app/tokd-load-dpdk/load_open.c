/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "load.h"

#define RTO_LEAST_NS UINT64_C(5000000) /* as in libtokd-client */
#define PACKETS 256		       /* in flight per client; as in libtokd-client */
#define IDS_SPARE 1024		       /* extra room, so that surplus ids are noticed */

static void *
copy_mbuf(void *packet, void *pool)
{
	return rte_pktmbuf_copy(packet, pool, 0, UINT32_MAX);
}

static void
drop_mbuf(void *packet)
{
	rte_pktmbuf_free(packet);
}

static int
open_client(struct load *l, uint32_t index)
{
	const struct tokd_engine_config config = {
		.epoch = l->epoch + index,
		.requests = l->in_flight,
		.packets = PACKETS,
		.payload = TOKD_WIRE_PAYLOAD,
		.timeout_ns = UINT64_C(1000000) * l->o->timeout_ms,
		.rto_least_ns = RTO_LEAST_NS,
		.first_stream_id = 1,
		/* Each text has one stream id, so the token ring must have it once. */
		.no_resend = true,
	};
	uint32_t room = l->slices->max_ids + IDS_SPARE;
	struct client *c = &l->client[index];
	void *memory = malloc(tokd_engine_bytes(&config));

	c->job = calloc(l->in_flight, sizeof(*c->job));
	if (memory == NULL || c->job == NULL) {
		free(memory);
		return -1;
	}
	c->engine = tokd_engine_init(memory, &config);
	for (uint32_t i = 0; i < l->in_flight; i++) {
		c->job[i].client = c;
		c->job[i].r.max_ids = room;
		c->job[i].r.ids = malloc(sizeof(uint32_t) * room);
		if (c->job[i].r.ids == NULL)
			return -1;
	}
	return 0;
}

int
load_open(struct load *l, const struct options *o, const struct slices *slices)
{
	const struct fault_packets packets = {copy_mbuf, drop_mbuf, l->frames.pool};

	l->o = o;
	l->slices = slices;
	l->requests = o->requests > 0 ? o->requests : slices->count;
	l->n_clients = (uint32_t)o->clients;
	l->in_flight = (uint32_t)o->in_flight;
	l->ns_a_tick = 1e9 / (double)rte_get_tsc_hz();
	l->t_start = rte_rdtsc();
	/* Each direction has its own generator. */
	faults_init(&l->forth, &o->faults, &packets, o->seed);
	faults_init(&l->back, &o->faults, &packets, ~o->seed);
	if (getrandom(&l->epoch, sizeof(l->epoch), 0) != sizeof(l->epoch)) {
		perror("tokd-load-dpdk: getrandom");
		return -1;
	}
	l->client = calloc(l->n_clients, sizeof(*l->client));
	for (uint32_t i = 0; i < l->n_clients; i++) {
		if (l->client == NULL || open_client(l, i) != 0) {
			fprintf(stderr,
				"tokd-load-dpdk: no memory for %u clients of %u requests; lower "
				"--clients or --in-flight\n",
				l->n_clients, l->in_flight);
			return -1;
		}
	}
	return 0;
}

static void
close_client(struct client *c, uint32_t in_flight)
{
	for (uint32_t i = 0; c->job != NULL && i < in_flight; i++)
		free(c->job[i].r.ids);
	free(c->job);
	free(c->engine);
}

void
load_close(struct load *l)
{
	void *out[FAULTS_OUT];
	uint32_t n;

	n = faults_due(&l->forth, UINT64_MAX, out);
	rte_pktmbuf_free_bulk((struct rte_mbuf **)out, n);
	n = faults_due(&l->back, UINT64_MAX, out);
	rte_pktmbuf_free_bulk((struct rte_mbuf **)out, n);
	rte_pktmbuf_free_bulk(l->tx, l->n_tx);
	for (uint32_t i = 0; l->client != NULL && i < l->n_clients; i++)
		close_client(&l->client[i], l->in_flight);
	free(l->client);
	ring_close(&l->ring);
}
