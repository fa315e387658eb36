/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sink: posts the records of one worker's token ring to the GPU ring. It is a reader of the
 * token ring: records that are not done are not overwritten, and if the GPU is slow, the ring
 * fills, text is not fed, and clients' windows close.
 *
 *   token ring   cursor                 next          head
 *   ───────────────┴──────────────────────┴─────────────┴────
 *        reusable  │ posted, not done     │ not posted  │
 *
 * Instead of waiting, its owner may shed: what is not done is passed over (tokg_sink_shed).
 *
 * A record of a text's bytes (TOKD_REC_BYTES) is posted as a TEXT slot, which the consumer encodes.
 *
 * A record with many ids takes several slots. Small records that wait at the same time are posted
 * as one BATCH slot, whole, from the ring. Records of decoded text are passed over; between two of
 * a batch they are sent with it.
 *
 * A text may have ids made for it after its last one: its owner takes a lane for its serial before
 * it publishes the record with LAST (tokg_sink_generate), and grants tokens as it has room for
 * them. They come by `token`, in order, each once, then `ended`. A text that does not take its
 * tokens keeps its lane, and nothing else.
 */
#pragma once

#include <stdatomic.h>

#include "transport/transport.h"

struct tokg_sink_config {
	struct tokg_transport *transport; /* owned by the caller, closed after the sink is freed */
	uint8_t *data;			  /* the token ring's records; padding of ids is zeroed */
	uint64_t mask;			  /* data bytes - 1 */
	uint64_t start;			  /* position to begin at */
	uint64_t start_records;		  /* published below it */
	uint32_t n_vocabs;
	const uint32_t *vocab; /* checksums, as in the records */
	uint64_t batch_ticks;  /* the longest that a small record waits for others; 0: no wait */
	/*
	 * Between reads of the back area while slots are posted or lanes are used: shorter after a
	 * read that showed something and when something is posted, longer after one that did not if
	 * nothing was posted for read_ticks_most. At least read_ticks; read_ticks_lanes while lanes
	 * are used.
	 */
	uint64_t read_ticks, read_ticks_lanes, read_ticks_most;
	uint64_t dead_ticks; /* without a heartbeat for this time the agent is dead */
	int node;	     /* NUMA node for its memory, -1: any */
	bool wipe;	     /* ids made do not stay in the copy of the log */
	/*
	 * Called by tokg_sink_poll; may be NULL. failed: a text's ids cannot be embedded; once per
	 * text, except if many fail at the same time. done: a slot posted at t_post was read as
	 * done.
	 */
	void (*failed)(void *owner, uint64_t serial, enum tokg_status status);
	void (*done)(void *owner, uint64_t t_post, uint64_t now);
	/*
	 * A TOKD_REC_BYTES is finished. OK: embedded; CPU: encode it, and publish its ids in a
	 * record; SHED: passed over; else it failed, too. Not called for what tokg_sink_shed passes
	 * over. An agent that comes after another may get a record again, and finish it again,
	 * but not after CPU: then the record has no flags any more.
	 * NULL: there are no such records.
	 */
	void (*text)(void *owner, const struct tokd_rec *rec, enum tokg_status status);
	/*
	 * Also by tokg_sink_poll; not NULL if tokg_sink_generate is called. Token `index` of the
	 * text; and its end, after which the lane may be another's. They may grant and cancel. A
	 * text that `failed` has no end besides.
	 */
	void (*token)(void *owner, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id);
	void (*ended)(void *owner, uint32_t lane, uint64_t serial, enum tokg_end how);
	void *owner;
};

enum tokg_sink_counter {
	TOKG_C_SLOTS,	/* posted, including repeats */
	TOKG_C_BATCHES, /* of these BATCH */
	TOKG_C_RECORDS, /* of the token ring */
	TOKG_C_TOKENS,
	TOKG_C_BYTES, /* payloads */
	TOKG_C_DONE,  /* slots read as done */
	TOKG_C_AGAIN, /* posted again: BADSUM, or lost with a connection */
	TOKG_C_BADSUM,
	TOKG_C_FAILED,	  /* requests given up, any status */
	TOKG_C_NO_SLOT,	  /* turns in which a record waited for a slot */
	TOKG_C_NO_OUTPUT, /* ... for outputs */
	TOKG_C_READS,	  /* of the back area */
	TOKG_C_RECONNECTS,
	TOKG_C_SHED,  /* records passed over */
	TOKG_C_TEXTS, /* TEXT slots posted, without repeats */
	TOKG_C_TEXT_BYTES,
	TOKG_C_TEXTS_CPU, /* texts given back to be encoded by the owner */
	TOKG_C_COUNT
};

struct tokg_sink; /* sink.c */

/*
 * Set-up: takes up to a second for the first read of the back area, which has the last tickets.
 * NULL and `err`.
 */
struct tokg_sink *tokg_sink_create(const struct tokg_sink_config *c, struct tokg_error *err);
void tokg_sink_free(struct tokg_sink *s);

/*
 * Set-up: continue with another transport, in a new epoch, after the old one has failed for good:
 * everything from the cursor on is posted again. The old one may be closed before. False and `err`,
 * after up to a second; then try with another transport.
 */
bool tokg_sink_attach(struct tokg_sink *s, struct tokg_transport *t, struct tokg_error *err);

/*
 * Hot: once per turn of the worker. `head`: the token ring's; `now`: TSC; `idle`: no packet in this
 * turn, so a batch need not wait. Posts records, reads what is done, moves the cursor. False: the
 * connection or the agent is lost: do not call again until the control thread's tokg_sink_recover
 * or tokg_sink_attach has succeeded.
 */
bool tokg_sink_poll(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle);

/*
 * Ends the connection: the next tokg_sink_recover gives it up, so that its owner may shed. By the
 * worker after tokg_sink_poll, or by the control thread if that has failed.
 */
void tokg_sink_give_up(struct tokg_sink *s);

/*
 * Hot, but rare: passes over all that is not done. Only without a transport: from when
 * tokg_sink_recover has failed and the transport is closed, to when tokg_sink_poll is called again.
 * The control thread may be in tokg_sink_attach: then that connection is given up, and needs
 * another, which is told. `head`: the token ring's, with `records` published below; `serial`: of
 * the next text. A text with a lower serial is not posted any more: what is left of it is shed,
 * too.
 */
void tokg_sink_shed(struct tokg_sink *s, uint64_t head, uint64_t records, uint64_t serial);
/* The last of these serials, for tokg_source; 0: none. Any thread. */
uint64_t tokg_sink_shed_below(const struct tokg_sink *s);

/*
 * Hot. Takes a lane for the text `serial`, whose record with LAST is not published yet; at most
 * `limit` tokens will be made, above 0. TOKG_NO_LANE: all are taken, nothing generates, or the text
 * was shed. The lane is the text's until `ended`, `failed`, or tokg_sink_cancel.
 */
uint32_t tokg_sink_generate(struct tokg_sink *s, uint64_t serial, uint32_t limit);
/* Hot. The owner takes `tokens` more. */
void tokg_sink_grant(struct tokg_sink *s, uint32_t lane, uint32_t tokens);
/* Hot. No token comes any more, nor `ended`. */
void tokg_sink_cancel(struct tokg_sink *s, uint32_t lane);
/* Any thread. 0: nothing generates. */
uint32_t tokg_sink_lanes(const struct tokg_sink *s);
uint32_t tokg_sink_lanes_used(const struct tokg_sink *s);
/*
 * Hot, but rare: ends all texts that generate as LOST. As tokg_sink_shed only without a transport;
 * else the next one does it, for those that may have tokens.
 */
void tokg_sink_cut(struct tokg_sink *s);

/*
 * Not hot. 1: recovered, lost slots are posted again by tokg_sink_poll; 0: not yet, call again;
 * below 0 and `err`: impossible with this transport, see tokg_sink_attach.
 */
int tokg_sink_recover(struct tokg_sink *s, struct tokg_error *err);

/* Position up to which the ring may be reused; for struct tokd_reader.cursor. */
_Atomic uint64_t *tokg_sink_cursor(struct tokg_sink *s);
/* True: all records below `head` are done. Any thread. */
bool tokg_sink_is_idle(const struct tokg_sink *s, uint64_t head);
const uint64_t *tokg_sink_counters(const struct tokg_sink *s); /* [TOKG_C_COUNT] */
