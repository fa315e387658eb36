/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places in the GPU ring, and whose they are.
 *
 *           hello                connection ends             a second
 *   FREE ──────────▶ TAKEN ────────────────────▶ KEPT ─────────────────▶ ENDING ──▶ FREE
 *                      ▲      hello, to resume     │     back.epoch = 0    │
 *                      └───────────────────────────┘                       └ all that was published
 *                                                                            is done, told of, and
 *                                                                            given back
 *
 * Knows of no connection: whoever has one says when it comes and goes.
 */
#ifndef TOKG_AGENT_PRODUCERS_H
#define TOKG_AGENT_PRODUCERS_H

#include "handshake/handshake.h"
#include "kernel/device.h"
#include "postings.h"

#define TOKG_KEEP_NS 1000000000ull     /* for resume */
#define TOKG_HEARTBEAT_NS 5000000ull   /* between two of the agent's */
#define TOKG_ENDING_LOOK_NS 2000000ull /* between looks at what is not done yet */

enum tokg_producer_state {
	TOKG_PRODUCER_FREE,
	TOKG_PRODUCER_TAKEN,
	TOKG_PRODUCER_KEPT,
	TOKG_PRODUCER_ENDING
};

struct tokg_producer {
	enum tokg_producer_state state;
	uint32_t epoch;
	uint32_t worker;
	uint64_t instance;
	uint64_t link;	   /* TAKEN: whoever says when it goes; never the same twice */
	uint64_t since_ns; /* of KEPT; ENDING: of the last look */
	bool all_done;	   /* ENDING: nothing that was published is not done, and */
	uint64_t all_told; /* ... all of it is told of below this index of the outbox */
	uint64_t released; /* as written to the producer */
	struct tokg_postings postings;
};

/* What producer slots ask of whoever has the connections. */
struct tokg_producers_calls {
	/* End this connection: tokg_producers_left may be called out of it. */
	void (*disconnect)(void *owner, uint64_t link);
	/* When it returns, nothing in flight can land in the producer slot any more. */
	void (*fence)(void *owner, uint32_t producer);
	void *owner;
};

struct tokg_producers {
	struct tokg_producers_calls calls;
	struct tokg_device *device;
	struct tokg_geometry geometry;
	uint32_t ring_epoch;
	uint32_t last_epoch; /* granted */
	uint64_t heartbeat, beat_ns;
	struct tokg_producer *producer; /* [producers] */
	uint64_t *done;			/* [slots], scratch */
	struct tokg_hdr *hdr;		/* [slots], scratch */
	uint64_t grants, resumes, ended;
	bool broken; /* the device did not take or give a word: nothing goes on */
};

/* False: no memory. `device` and its geometry as made, with nothing in it. */
bool tokg_producers_create(struct tokg_producers *p, struct tokg_device *device,
	uint32_t ring_epoch, const struct tokg_producers_calls *calls);
void tokg_producers_free(struct tokg_producers *p);

/*
 * A hello, right in its form. 1: *producer slot is its own from now on, its epoch stands in the
 * ring; 0: not yet, but soon; below 0: refused. `err` with both. A link that had the producer slot
 * before is disconnected.
 */
int tokg_producers_grant(struct tokg_producers *p, const struct tokg_hello *hello, uint64_t link,
	uint64_t now_ns, uint32_t *producer, struct tokg_error *err);
/* The connection ended: of a link that has no producer slot any more, nothing. */
void tokg_producers_left(struct tokg_producers *p, uint64_t link, uint64_t now_ns);
/* Its epoch ends now, without a second's grace; so does its connection, if it has one. */
void tokg_producers_end(struct tokg_producers *p, uint32_t producer);
/* Heartbeats, time limits, producer slots that become free. `told`: outbox entries read so far. */
void tokg_producers_poll(struct tokg_producers *p, uint64_t now_ns, uint64_t told);
/* Entries of the outbox taken so far. False, and `broken`: the device does not answer. */
bool tokg_producers_taken(struct tokg_producers *p, uint64_t *n);
/* What failed is handed on once `done` says so, too. */
void tokg_producers_settle(struct tokg_producers *p);
/* Entries up to `passed` of the subscribers' ring are given back: say so to the producers. */
void tokg_producers_release(struct tokg_producers *p, uint64_t passed);

#endif
