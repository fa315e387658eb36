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
	uint32_t records;  /* that end in it, or after it and are not posted */
	uint32_t n_out;	   /* its slots that are OUT or LOST */
	uint32_t generate; /* TOKG_GENERATE_FLAGS of its slot, or 0 */
	bool batch, text, second, strict;
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
	uint32_t lane;		   /* + 1, of its one record; or 0 */
	uint16_t vocab;
	bool closed; /* no more fit */
};

enum tokg_lane_state {
	TOKG_LANE_FREE = 0,
	TOKG_LANE_TAKEN,   /* its record is not posted */
	TOKG_LANE_POSTED,  /* its slot is not done */
	TOKG_LANE_SETTLED, /* its slot is done */
};

struct tokg_sink_lane {
	uint64_t serial;
	uint32_t turn;	      /* of the last post */
	uint32_t ended_turn;  /* the last that `ended` had */
	uint32_t limit, room; /* tokens that may be made; that the owner takes */
	uint32_t granted, taken;
	uint8_t state; /* enum tokg_lane_state */
	bool whole;    /* the text's other slots are done: it may begin */
	bool told;     /* the owner knows of its end */
	bool ended;    /* the engine's last word is read */
	bool due;      /* its ask is to be written */
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
	uint32_t text_most; /* bytes of a text that fits a slot and its outputs */
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
	uint64_t n_reads; /* last seen */
	uint64_t t_read;  /* start of the last read, or of a wait for the next */
	uint64_t t_post;  /* the last post */
	uint64_t heartbeat, t_alive;
	bool reading, watching, news;
	bool resumed; /* connected again: asks may be lost */
	/* in the read that is under way, or was the last */
	bool reading_lanes, reading_log;
	bool wipe;		 /* of the configuration */
	uint64_t interval;	 /* until the next read */
	bool no_slot, no_output; /* a record waits for one, in this poll */
	uint32_t poll_posts;
	enum tokg_sink_broken broken;
	uint64_t batch_ticks, read_ticks, read_ticks_lanes, read_ticks_most, dead_ticks;
	/* lanes: [n_lanes] are this transport's; see sink_lanes.c */
	uint32_t n_lanes, lanes_used, lanes_taken, asks_due;
	uint32_t quota;	 /* tokens granted and not read, of a lane */
	uint32_t owed;	 /* ... of all that have not ended */
	bool log_due;	 /* a lane's end was read, without the log */
	uint64_t log_at; /* next position to read */
	uint32_t n_vocabs;
	uint32_t vocab[TOKG_VOCABS_MAX];
	void (*failed)(void *owner, uint64_t serial, enum tokg_status status);
	void (*done)(void *owner, uint64_t t_post, uint64_t now);
	void (*text)(void *owner, const struct tokd_rec *rec, enum tokg_status status);
	void (*token)(void *owner, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id);
	void (*ended)(void *owner, uint32_t lane, uint64_t serial, enum tokg_end how);
	void *owner;
	uint64_t failed_known[TOKG_FAILED_KNOWN]; /* serial + 1 */
	uint64_t counter[TOKG_C_COUNT];
	_Alignas(64) _Atomic uint64_t cursor;
	_Atomic uint64_t shed_below;
	struct tokg_sink_lane lane[TOKG_LANES_MAX];
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

/* The owner has the text, and publishes its ids: no later agent gets its bytes. */
static inline void
tokg_sink_void(struct tokg_sink *s, uint64_t pos)
{
	tokg_sink_rec(s, pos)->flags = 0;
}

static inline bool
tokg_sink_break(struct tokg_sink *s, enum tokg_sink_broken how)
{
	s->broken = how;
	return false;
}

/* A text's ids cannot be embedded. */
void tokg_sink_fail(struct tokg_sink *s, uint64_t serial, enum tokg_status status);

/* A text's bytes are finished. */
void tokg_sink_text(struct tokg_sink *s, uint64_t pos, enum tokg_status status);

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

/* sink_lanes.c */
/* The lane taken for this record, + 1; 0: none. */
uint32_t tokg_sink_lane_for(const struct tokg_sink *s, const struct tokd_rec *rec);
/* Flags for its next post. */
uint32_t tokg_sink_lane_flags(const struct tokg_sink *s, uint32_t lane);
/* Its slot was posted. `alone`: it is the text's only one. */
void tokg_sink_lane_posted(struct tokg_sink *s, uint32_t flags, bool alone);
/* That slot is done, and is not posted again. */
void tokg_sink_lane_settled(struct tokg_sink *s, uint32_t flags, enum tokg_status status);
/* All that is older than it is done, too. */
void tokg_sink_lane_whole(struct tokg_sink *s, uint32_t flags);
/* The text has failed, and its owner was told. */
void tokg_sink_lane_failed(struct tokg_sink *s, uint64_t serial);
/* 1: no ask is due any more; else as tokg_sink_post. */
int tokg_sink_ask_all(struct tokg_sink *s);
/* What of the back area the next read has. */
uint32_t tokg_sink_read_bytes(struct tokg_sink *s);
/* False: an impossible word. */
bool tokg_sink_take_tokens(struct tokg_sink *s);
/* A new transport: its lanes, from the first read. */
void tokg_sink_lanes_begin(struct tokg_sink *s);
/* A new connection of the same transport. */
void tokg_sink_lanes_resume(struct tokg_sink *s);
