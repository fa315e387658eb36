/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sink: walks one worker's token ring behind its head and posts its records to the GPU ring.
 * For the token ring it is a reader like any other: what it has not seen done is not overwritten,
 * and when the GPU is slow the ring fills, text is not fed and the clients' windows close.
 *
 *   token ring   cursor                 next          head
 *   ───────────────┴──────────────────────┴─────────────┴────
 *        reusable  │ posted, not done     │ not posted  │
 *
 * One record with many ids takes several slots, the first as soon as it is published; small ones
 * that wait together travel as one BATCH slot, straight from the ring, records and all.
 */
#ifndef TOKG_SINK_H
#define TOKG_SINK_H

#include <stdatomic.h>

#include "transport.h"

struct tokg_sink_config {
	struct tokg_transport *transport; /* owned by the caller, closed after the sink is freed */
	const uint8_t *data;		  /* the token ring's records */
	uint64_t mask;			  /* data bytes - 1 */
	uint64_t start;			  /* position to begin at */
	uint32_t n_vocabs;
	const uint32_t *vocab; /* checksums, as in the records */
	uint64_t batch_ticks;  /* a small record waits at most so long for others; 0: not at all */
	uint64_t read_ticks;   /* between two reads of the back area while slots are out */
	uint64_t dead_ticks;   /* heartbeat unchanged for so long: the agent is dead */
	/* A text's ids could not be embedded (status), or never will be. May be NULL. */
	void (*failed)(void *owner, uint64_t serial, enum tokg_status status);
	void *owner;
};

enum tokg_sink_counter {
	TOKG_C_SLOTS,	/* posted, again included */
	TOKG_C_BATCHES, /* of them BATCH */
	TOKG_C_RECORDS, /* of the token ring */
	TOKG_C_TOKENS,
	TOKG_C_BYTES, /* payloads */
	TOKG_C_DONE,  /* slots read as done */
	TOKG_C_AGAIN, /* posted again: BADSUM, or lost with a connection */
	TOKG_C_BADSUM,
	TOKG_C_FAILED,	  /* requests given up, any status */
	TOKG_C_NO_SLOT,	  /* turns in which a record waited for a slot */
	TOKG_C_NO_OUTPUT, /* ... for room in the outputs */
	TOKG_C_READS,	  /* of the back area */
	TOKG_C_RECONNECTS,
	TOKG_C_COUNT
};

struct tokg_sink; /* sink.c */

/* Set-up. NULL and `why`. On the source's NUMA node. */
struct tokg_sink *tokg_sink_create(const struct tokg_sink_config *c, struct tokg_error *why);
void tokg_sink_free(struct tokg_sink *s);

/*
 * Hot: once a turn of the worker. `head`: the token ring's; `now`: TSC; `idle`: nothing came in
 * this turn, so a batch need not wait. Posts what it can, looks for what is done, moves the cursor.
 * False: the connection is broken, call tokg_sink_recover from the control thread or housekeeping
 * until it returns 1.
 */
bool tokg_sink_turn(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle);

/* Not hot. 1: goes on; 0: not yet; below 0: never, all that is out has failed (and been reported).
 */
int tokg_sink_recover(struct tokg_sink *s, struct tokg_error *why);

/* Position up to which the ring may be reused; for struct tokd_reader.cursor. */
_Atomic uint64_t *tokg_sink_cursor(struct tokg_sink *s);
/* Nothing is out and nothing waits below `head`. */
bool tokg_sink_is_idle(const struct tokg_sink *s, uint64_t head);
const uint64_t *tokg_sink_counters(const struct tokg_sink *s); /* [TOKG_C_COUNT] */

#endif
