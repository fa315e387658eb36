/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients with requests in flight on one Ethernet port, and counts of their results. */
#pragma once

#include <signal.h>
#include <stdio.h>

#include <rte_cycles.h>

#include <tokd/client_engine.h>

#include "../tokd-load/slices.h"
#include "faults.h"
#include "frames.h"
#include "options.h"
#include "ring.h"

#define LOAD_PACKETS 32 /* most packets from one client per iteration */
/* Frames that wait for the driver: one client's packets, each duplicated, and all delayed ones. */
#define LOAD_TX (2 * (2 * LOAD_PACKETS + FAULTS_HELD))

/* A place for a request, and the request while it is in flight. */
struct job {
	struct tokd_request r;
	struct client *client;
	const struct slice *slice; /* NULL: the place is free */
	uint64_t index, intended_ns, sent_ns;
	struct job *next_free;
	struct ring_seen seen;
};

/* One UDP port with its engine. The engine's epoch is load.epoch plus the client's index. */
struct client {
	struct tokd_engine *engine;
	struct job *job; /* [in_flight] */
};

struct load_counts {
	uint64_t done, right, ids, text_bytes;
	uint64_t not_sent; /* open loop: the limit of requests in flight was reached */
	uint64_t no_answer, refused;
	uint64_t retransmits, asks; /* as in struct tokd_request */
	uint64_t other_frames;	    /* neither replies nor ARP */
	uint64_t no_mbuf;	    /* packets delayed because no mbuf was free */
	uint64_t begin_ns, end_ns;
	int64_t off_cpu_ns; /* in that time this thread had no CPU */
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
	uint64_t requests; /* number of requests */
	struct arrivals arrivals;
	uint64_t due_ns; /* open loop: intended start of the next request */
	uint64_t drained_ns;
	struct job *first_free, *last_free; /* idle clients, first in, first out */
	uint32_t epoch;			    /* of the first client */
	uint32_t n_clients, in_flight;
	struct client *client;
	uint32_t n_tx;
	struct rte_mbuf *tx[LOAD_TX];
};

/* load_open.c, set-up: allocate memory and open engines. The addresses in l->frames must be set.
 * On error prints a message and returns -1. */
int load_open(struct load *l, const struct options *o, const struct slices *slices);
void load_close(struct load *l);

static inline uint64_t
load_now_ns(const struct load *l)
{
	return (uint64_t)((double)(rte_rdtsc() - l->t_start) * l->ns_a_tick);
}

/* load_requests.c. */
void load_requests_start(struct load *l); /* start the schedule, if there is one */
void load_requests_begin(struct load *l); /* start the requests that are due */
int load_requests_take(struct load *l);	  /* take answers; -1: the ring can no longer be read */

/* load_run.c: run until all requests are answered, or *stop. -1: it had to end early. */
int load_run(struct load *l, const volatile sig_atomic_t *stop);
/* Write the counts as JSON. */
void load_report(const struct load *l, FILE *file);
