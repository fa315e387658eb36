/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the sink. sink.h has the interface, doc/reference/gpu-ring.md the protocol.
 *
 * A *piece* is a part of the token ring that was posted and is not done: a batch of whole records,
 * or a part of one record. Pieces are in the order of the ring, whatever slots they use; the cursor
 * is the start of the oldest. A piece whose slot failed is posted again in other slots.
 *
 * A *post* is one use of a slot. Posts are counted from 0 in an epoch; post n uses slot n % slots.
 * Posts before `oldest` are done.
 */
#pragma once

#include <string.h>

#include "handshake/handshake.h"
#include "sink.h"

#define TOKG_POLL_POSTS 16   /* per poll: the worker must poll its queue */
#define TOKG_POLL_SKIPS 256  /* likewise: records that have nothing to embed */
#define TOKG_FAILED_KNOWN 64 /* recently failed texts, by serial modulo this */

enum tokg_slot_state {
	TOKG_SLOT_FREE = 0,
	TOKG_SLOT_OUT,	/* posted, not done */
	TOKG_SLOT_LOST, /* posted, but not published when the connection broke */
};

struct tokg_sink_slot {
	struct tokg_hdr hdr; /* as last posted; before that only the ticket */
	uint64_t payload;    /* its position in the token ring */
	uint32_t piece;
	uint8_t state; /* enum tokg_slot_state */
};

struct tokg_sink_piece {
	uint64_t start;	  /* of its first record */
	uint64_t at, end; /* post records [at, end) again */
	uint32_t part;	  /* its first id in the record */
	uint32_t tokens;
	uint32_t records; /* that end in it, or behind it and are not posted */
	uint32_t n_out;	  /* its slots that are OUT or LOST */
	bool batch, second, strict;
};

/* The content of one slot. */
struct tokg_sink_job {
	uint64_t payload; /* position */
	uint64_t request, out_bytes;
	uint32_t bytes, tokens, first, flags;
	uint16_t vocab;
};

/* Records from `next` on for one slot. */
struct tokg_sink_batch {
	uint64_t end;
	uint64_t out_bytes;
	uint32_t n, bytes, tokens; /* bytes: up to the end of the last of n records */
	uint32_t texts;		   /* decoded texts before `end` */
	uint16_t vocab;
	bool closed; /* no more fit */
};

enum tokg_sink_broken {
	TOKG_INTACT = 0,
	TOKG_CONNECTION, /* lost: reconnect */
	TOKG_SILENT,	 /* no heartbeat of the agent */
	TOKG_GRANT,	 /* the agent has ended our epoch */
	TOKG_BREACH,	 /* an impossible word in the back area */
	TOKG_TICKETS,	 /* the tickets of a slot are exhausted */
	TOKG_NEVER,	 /* reconnecting is not possible */
	TOKG_FULL,	 /* given up: it holds the token ring */
	TOKG_ATTACHED,	 /* not broken: a new transport, not used yet */
};

struct tokg_sink {
	/* hot */
	struct tokg_transport *t;
	uint8_t *data;
	uint64_t mask;
	uint64_t next; /* next record to post */
	uint32_t part; /* its ids that are posted */
	uint32_t slot_bytes, row_bytes, slots;
	uint64_t out_mask;
	uint64_t skip_below; /* serial: texts below it were shed */
	uint64_t finished;   /* records that are done, have failed, or were shed */
	struct tokg_sink_batch batch;
	struct tokg_sink_slot *slot;
	struct tokg_sink_piece *piece;
	uint32_t piece_mask, piece_head, piece_tail; /* free-running */
	uint32_t next_slot, oldest_slot;	     /* posted, oldest modulo slots */
	uint64_t posted, oldest;
	uint32_t n_out; /* slots OUT or LOST */
	uint32_t n_lost, n_again;
	/* outputs, positions. out_end[n & out_fifo_mask] of post n, until it is released */
	uint64_t out_head, out_tail, released;
	uint64_t *out_end;
	uint64_t out_fifo_mask;
	/* the back area */
	uint64_t n_reads, t_read; /* last seen; start of the last read */
	uint64_t heartbeat, t_alive;
	bool reading, watching;
	bool no_slot, no_output; /* a record waits for one, in this poll */
	uint32_t poll_posts;
	enum tokg_sink_broken broken;
	uint64_t batch_ticks, read_ticks, dead_ticks;
	uint32_t n_vocabs;
	uint32_t vocab[TOKG_VOCABS_MAX];
	void (*failed)(void *owner, uint64_t serial, enum tokg_status status);
	void (*done)(void *owner, uint64_t t_post, uint64_t now);
	void *owner;
	uint64_t failed_known[TOKG_FAILED_KNOWN]; /* serial + 1 */
	uint64_t counter[TOKG_C_COUNT];
	_Alignas(64) _Atomic uint64_t cursor;
	_Atomic uint64_t shed_below;
	/* set-up */
	int node;
	uint64_t *tickets; /* [slots], for reconnect */
	void *own;	   /* memory of all arrays */
	size_t own_bytes;
	char reason[160]; /* of TOKG_NEVER */
};

static inline struct tokd_rec *
tokg_sink_rec(const struct tokg_sink *s, uint64_t pos)
{
	return (struct tokd_rec *)(s->data + (pos & s->mask));
}

static inline bool
tokg_sink_break(struct tokg_sink *s, enum tokg_sink_broken how)
{
	s->broken = how;
	return false;
}

/* A text's ids cannot be embedded. */
void tokg_sink_fail(struct tokg_sink *s, uint64_t serial, enum tokg_status status);

/* sink_post.c. Both return 1: posted; 0: not; below 0: connection lost, and perhaps posted. */
/* Post into the next slot, for an existing piece. `again`: TOKG_STRICT, or 0. */
int tokg_sink_post(struct tokg_sink *s, const struct tokg_sink_job *job, uint32_t piece,
	uint32_t again, uint64_t now);
/* Post LOST slots again, with the same tickets. 1: none is left. */
int tokg_sink_post_lost(struct tokg_sink *s);

/* sink_batch.c. As tokg_sink_post; 1: nothing is left to post. */
int tokg_sink_post_again(struct tokg_sink *s, uint64_t now);
int tokg_sink_post_fresh(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle);

/* sink_done.c: handles a read of the back area. False: broken. */
bool tokg_sink_take_back(struct tokg_sink *s, uint64_t now);
