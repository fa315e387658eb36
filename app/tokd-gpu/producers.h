/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Producer slots, and their workers.
 *
 *           hello                connection ends             1 s
 *   FREE ──────────▶ TAKEN ────────────────────▶ KEPT ─────────────────▶ ENDING ──▶ FREE
 *                      ▲      hello, to resume     │     back.epoch = 0    │
 *                      └───────────────────────────┘                       └ all published slots
 * are done, read from the outbox, and released
 *
 * Knows no connections: its owner reports when they come and go.
 */
#pragma once

#include "handshake/handshake.h"
#include "kernel/device.h"
#include "postings.h"

#define TOKG_KEEP_NS 1000000000ull	/* for resume */
#define TOKG_HEARTBEAT_NS 5000000ull	/* between the agent's heartbeats */
#define TOKG_ENDING_CHECK_NS 2000000ull /* between checks of done words */

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
	uint64_t link;	   /* TAKEN: its connection; never reused */
	uint64_t since_ns; /* KEPT; ENDING: last check */
	bool all_done;	   /* ENDING: all published slots are done, lanes have ended, and */
	uint64_t all_read; /* ... their entries are below this outbox index */
	uint64_t released; /* as written to the producer */
	/*
	 * Texts of this worker with a lower serial are shed: what comes of them is not delivered,
	 * and subscribers are told (shed_due: not yet).
	 */
	uint64_t shed_below;
	bool shed_due;
	struct tokg_postings postings;
};

/* Callbacks to the owner of the connections. */
struct tokg_producers_calls {
	/* Closes this connection; may call tokg_producers_left. */
	void (*disconnect)(void *owner, uint64_t link);
	/*
	 * After it returns, nothing more is sent to the producer slot by RDMA. What was sent to a
	 * GPU may still land. A process that has mapped the ring is not kept from writing; the
	 * sink does not, once its connection is broken.
	 */
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
	uint64_t *lane;			/* [2 * lanes], scratch */
	uint64_t grants, resumes, ended;
	bool broken; /* the device failed to read or write a word, or its owner to fence: fatal */
};

/* For a new device with an empty ring. False: no memory. */
bool tokg_producers_create(struct tokg_producers *p, struct tokg_device *device,
	uint32_t ring_epoch, const struct tokg_producers_calls *calls);
void tokg_producers_free(struct tokg_producers *p);

/*
 * A validated hello. 1: *producer is granted, and its epoch is in the ring; 0: not yet, but soon;
 * below 0: refused. `err` with both. Disconnects the producer slot's former link.
 */
int tokg_producers_grant(struct tokg_producers *p, const struct tokg_hello *hello, uint64_t link,
	uint64_t now_ns, uint32_t *producer, struct tokg_error *err);
/* The connection has ended. Does nothing for a link without a producer slot. */
void tokg_producers_left(struct tokg_producers *p, uint64_t link, uint64_t now_ns);
/* Ends its epoch at once, and its connection, if any. */
void tokg_producers_end(struct tokg_producers *p, uint32_t producer);
/* Heartbeats, time limits, ending producer slots. `read`: outbox entries read so far. */
void tokg_producers_poll(struct tokg_producers *p, uint64_t now_ns, uint64_t read);
/* Outbox entries reserved by the consumer so far. False, and `broken`: the device does not
 * answer. */
bool tokg_producers_taken(struct tokg_producers *p, uint64_t *n);
/* Delivers failed postings whose `done` is final. */
void tokg_producers_settle(struct tokg_producers *p);
/* Subscribers have passed `passed` in their ring: update `released` of the producers. */
void tokg_producers_release(struct tokg_producers *p, uint64_t passed);
