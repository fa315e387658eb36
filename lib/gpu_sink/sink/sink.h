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

#include "transport/transport.h"

struct tokg_sink_config {
	struct tokg_transport *transport; /* owned by the caller, closed after the sink is freed */
	uint8_t *data;			  /* the token ring's records; their padding is zeroed */
	uint64_t mask;			  /* data bytes - 1 */
	uint64_t start;			  /* position to begin at */
	uint32_t n_vocabs;
	const uint32_t *vocab; /* checksums, as in the records */
	uint64_t batch_ticks;  /* a small record waits at most so long for others; 0: not at all */
	uint64_t read_ticks;   /* between two reads of the back area while slots are out */
	uint64_t dead_ticks;   /* heartbeat unchanged for so long: the agent is dead */
	int node;	       /* NUMA node for what it has of its own, -1: any */
	/*
	 * Both may be NULL, and are called by tokg_sink_poll. A text's ids could not be embedded,
	 * or never will be: once for a text, but for coincidences of many that fail. A slot posted
	 * at t_post was read as done.
	 */
	void (*failed)(void *owner, uint64_t serial, enum tokg_status status);
	void (*done)(void *owner, uint64_t t_post, uint64_t now);
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

/*
 * Set-up: takes up to a second for the first read of the back area, which says where tickets go on.
 * NULL and `err`.
 */
struct tokg_sink *tokg_sink_create(const struct tokg_sink_config *c, struct tokg_error *err);
void tokg_sink_free(struct tokg_sink *s);

/*
 * Set-up: go on with another transport, hence in another epoch, when the old one is gone for ever:
 * all that is not done is posted anew from the cursor. The old one may be closed before. False and
 * `err`, up to a second later; then the sink stays gone, and another may be tried.
 */
bool tokg_sink_attach(struct tokg_sink *s, struct tokg_transport *t, struct tokg_error *err);

/*
 * Hot: once a turn of the worker. `head`: the token ring's; `now`: TSC; `idle`: nothing came in
 * this turn, so a batch need not wait. Posts what it can, looks for what is done, moves the cursor.
 * False: the connection is broken, or the agent gone: not to be called again before
 * tokg_sink_recover, or tokg_sink_attach, called by the control thread, has said that it goes on.
 */
bool tokg_sink_poll(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle);

/*
 * Not hot. 1: goes on, what was lost is posted again by the next turns; 0: not yet, call again;
 * below 0 and `err`: never with this transport, see tokg_sink_attach.
 */
int tokg_sink_recover(struct tokg_sink *s, struct tokg_error *err);

/* Position up to which the ring may be reused; for struct tokd_reader.cursor. */
_Atomic uint64_t *tokg_sink_cursor(struct tokg_sink *s);
/* Nothing is out and nothing waits below `head`. Any thread. */
bool tokg_sink_is_idle(const struct tokg_sink *s, uint64_t head);
const uint64_t *tokg_sink_counters(const struct tokg_sink *s); /* [TOKG_C_COUNT] */

#endif
