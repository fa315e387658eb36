/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a producer's writes come into the GPU ring. One interface, three kinds behind it (shm, cuda,
 * verbs), chosen at set-up; the hot path calls through `ops` and does not know which it is.
 *
 * A transport belongs to one worker and one producer's producer slot. Nothing here locks or
 * allocates after tokg_transport_open; post, flush, poll and read_back do not call the kernel.
 */
#ifndef TOKG_TRANSPORT_H
#define TOKG_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handshake/peer.h"
#include "ring/gpu_ring.h"

struct tokg_transport;

/*
 * Results below 0 are final for the connection: the sink goes to reconnect. All are called by the
 * worker alone.
 */
struct tokg_transport_ops {
	const char *name;
	/*
	 * Payload (in the source region, aligned to TOKG_LINE, `bytes` a multiple of TOKG_LINE, may
	 * be 0), then header, into `slot` of this producer. The header is taken at once; the
	 * payload must stand until the slot is done. 1: taken; 0: queue full, try again after poll;
	 * below 0: broken.
	 */
	int (*post)(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
		const struct tokg_hdr *hdr, enum tokg_order order);
	/* What was posted since the last flush goes out: one doorbell. Below 0: broken. */
	int (*flush)(struct tokg_transport *t);
	/* Reap completions. 0, or below 0: the connection is broken. */
	int (*poll)(struct tokg_transport *t);
	/*
	 * Begin to read the back area of this producer (struct tokg_back and done[]) into t->back.
	 * 1: begun; 0: one is under way, or the queue is full; below 0: broken. t->n_reads rises
	 * when it is there.
	 */
	int (*read_back)(struct tokg_transport *t);
	/*
	 * Not hot. The connection is broken: make another for the same producer slot and epoch, and
	 * read the headers' tickets of this producer into tickets[slots]: what was published
	 * before. Called again and again; 1: done; 0: not yet; below 0 and `err`: not possible
	 * (agent gone, epoch changed).
	 */
	int (*reconnect)(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err);
	/* For the log: which way it took and why. Not hot. */
	void (*describe)(const struct tokg_transport *t, char path[256]);
	void (*close)(struct tokg_transport *t);
};

struct tokg_transport {
	const struct tokg_transport_ops *ops;
	struct tokg_geometry geometry; /* proved */
	uint32_t producer, epoch;
	uint32_t ring_epoch;
	enum tokg_order order; /* what this path asks for; logged at set-up */
	/* Copy of the back area as last read: read by the sink after n_reads rose. */
	struct tokg_back *back;
	uint64_t *done; /* [slots], behind it */
	uint64_t n_reads;
	int link;  /* connection to the agent; -1: none. Of set-up and tokg_transport_look alone */
	bool gone; /* it has ended; by __atomic alone */
};

/*
 * NULL and `err`. Takes up to `timeout_ms` (verbs: for the connection, and once more for the
 * agent's answer; and what the RDMA device takes), unless the target is yet to be resolved. Says in
 * `path` (for the log) which way it took and why.
 */
struct tokg_transport *tokg_transport_open(const struct tokg_target *target,
	const struct tokg_source *source, uint32_t timeout_ms, char path[256],
	struct tokg_error *err);
/*
 * Does the connection to the agent stand? When not, poll says so from then on: a heartbeat that
 * stands still says it as well, but later. One system call: for whoever does housekeeping, never at
 * the same time as reconnect or close.
 */
bool tokg_transport_look(struct tokg_transport *t);

#endif
