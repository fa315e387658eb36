/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a producer writes into the GPU ring: one interface with three implementations (shm, cuda,
 * verbs), chosen at set-up and called through `ops`.
 *
 * A transport belongs to one worker and one producer slot. Nothing locks or allocates after
 * tokg_transport_open; post, flush, poll and read_back make no system call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handshake/peer.h"
#include "ring/gpu_ring.h"

struct tokg_transport;

/*
 * Results below 0 mean that the connection is lost: the sink reconnects. Only the worker calls
 * these.
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
	/* Writes a lane's `ask`. With the next flush; results as for post. */
	int (*ask)(struct tokg_transport *t, uint32_t lane, uint64_t word);
	/* Sends what was posted since the last flush: one doorbell. Below 0: broken. */
	int (*flush)(struct tokg_transport *t);
	/* Reap completions. 0, or below 0: the connection is broken. */
	int (*poll)(struct tokg_transport *t);
	/*
	 * Begin to read the first t->read_bytes of the back area of this producer into t->back: all
	 * of it, or without the log, or without lanes, too. 1: begun; 0: one is under way, or the
	 * queue is full; below 0: broken. t->n_reads rises when it is there.
	 */
	int (*read_back)(struct tokg_transport *t);
	/*
	 * Not hot. The connection is broken: make another for the same producer slot and epoch, and
	 * read the headers' tickets of this producer into tickets[slots]: what was published
	 * before. Called again and again; 1: done; 0: not yet; below 0 and `err`: not possible
	 * (agent gone, epoch changed).
	 */
	int (*reconnect)(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err);
	/* For the log: the path chosen, and why. Not hot. */
	void (*describe)(const struct tokg_transport *t, char path[256]);
	void (*close)(struct tokg_transport *t);
};

struct tokg_transport {
	const struct tokg_transport_ops *ops;
	struct tokg_geometry geometry; /* validated */
	uint32_t producer, epoch;
	uint32_t ring_epoch;
	uint64_t shed_below;   /* as told to the agent */
	enum tokg_order order; /* needed on this path; logged at set-up */
	/* Copy of the back area; the sink reads it when n_reads has increased. */
	struct tokg_back *back;
	uint64_t *done; /* [slots], after it; then ended[lanes], log[log] */
	uint32_t read_bytes;
	uint64_t n_reads;
	int link;  /* connection to the agent; -1: none. For set-up and tokg_transport_check only */
	bool gone; /* it has ended; atomic */
};

/*
 * NULL and `err`. Takes up to `timeout_ms` (verbs: for the connection, and again for the agent's
 * answer, plus the time of the RDMA device), if the target is resolved. `path`, for the log: the
 * path chosen, and why.
 */
struct tokg_transport *tokg_transport_open(const struct tokg_target *target,
	const struct tokg_source *source, uint32_t timeout_ms, char path[256],
	struct tokg_error *err);
/*
 * Checks the connection to the agent; if it has ended, poll returns an error from then on, earlier
 * than by the heartbeat. One system call: for the control thread, never concurrent with reconnect
 * or close.
 */
bool tokg_transport_check(struct tokg_transport *t);
