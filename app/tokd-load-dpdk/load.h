/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients with requests in flight, on one port, and what became of them. */
#ifndef TOKD_LOAD_DPDK_LOAD_H
#define TOKD_LOAD_DPDK_LOAD_H

#include <signal.h>
#include <stdio.h>

#include <rte_cycles.h>

#include <tokd/client_engine.h>

#include "../tokd-load/slices.h"
#include "faults.h"
#include "frames.h"
#include "options.h"
#include "ring.h"

#define LOAD_PACKETS 32 /* of one client in a turn */
/* Frames that wait for the driver: what a client may give out, each twice, and all held back. */
#define LOAD_TX (2 * (2 * LOAD_PACKETS + FAULTS_HELD))

/* Room for a request, and the request while it is under way. */
struct job {
	struct tokd_request r;
	struct client *client;
	const struct slice *slice; /* NULL: none is under way */
	uint64_t index, intended_ns, sent_ns;
	struct job *next_free;
	struct ring_seen seen;
};

/* One UDP port: an engine, whose epoch is the first client's plus the client's index. */
struct client {
	struct tokd_engine *engine;
	struct job *job; /* in_flight of them */
};

struct load_counts {
	uint64_t done, right, ids, text_bytes;
	uint64_t not_sent; /* open loop: as many were under way as there may be */
	uint64_t no_answer, refused;
	uint64_t retransmits, asks; /* as in struct tokd_request */
	uint64_t other_frames;	    /* that are neither replies nor ARP */
	uint64_t no_mbuf;	    /* packets that waited for want of one */
	uint64_t begin_ns, end_ns;
};

struct load {
	const struct options *o;
	const struct slices *slices;
	FILE *out; /* NULL: none */
	struct frames frames;
	struct faults forth, back; /* to the appliance, from it */
	struct ring ring;
	struct load_counts counts;
	double ns_a_tick;
	uint64_t t_start;  /* TSC */
	uint64_t next;	   /* index of the next request */
	uint64_t requests; /* how many there are */
	struct arrivals arrivals;
	uint64_t due_ns; /* open loop: the next one's intended start */
	uint64_t drained_ns;
	struct job *first_free, *last_free; /* idle clients, first in, first out */
	uint32_t epoch;			    /* of the first client */
	uint32_t n_clients, in_flight;
	struct client *client;
	uint32_t n_tx;
	struct rte_mbuf *tx[LOAD_TX];
};

/* load_open.c, set-up: memory and engines; frames has its addresses. Prints why not: -1. */
int load_open(struct load *l, const struct options *o, const struct slices *slices);
void load_close(struct load *l);

static inline uint64_t
load_now_ns(const struct load *l)
{
	return (uint64_t)((double)(rte_rdtsc() - l->t_start) * l->ns_a_tick);
}

/* load_requests.c. */
void load_requests_start(struct load *l); /* their schedule, if there is one, begins */
void load_requests_begin(struct load *l); /* those that are due */
int load_requests_take(struct load *l);	  /* the answers; -1: the ring cannot be read any more */

/* load_run.c: until all are answered, or *stop. -1: it had to end before. */
int load_run(struct load *l, const volatile sig_atomic_t *stop);
/* What was counted, as JSON. */
void load_report(const struct load *l, FILE *file);

#endif
