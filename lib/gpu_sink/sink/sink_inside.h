/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sink's inside, shared by its parts. sink.h says what it does, doc/reference/gpu-ring.md how.
 *
 * A *piece* is a stretch of the token ring that was posted and is not known to be embedded: a
 * batch of whole records, or a part of one record. Pieces are in the ring's order, whatever slots
 * they are in, so that the cursor is where the oldest one begins. A piece whose slot failed stays
 * one, and is posted again in other slots.
 *
 * A *post* is one use of a slot; posts are counted from 0 on in an epoch, and post n is in slot
 * n % slots. [oldest, posted) are those of which some are out.
 */
#ifndef TOKG_SINK_INSIDE_H
#define TOKG_SINK_INSIDE_H

#include <string.h>

#include "handshake/handshake.h"
#include "sink.h"

#define TOKG_TURN_POSTS 16   /* per turn: the worker has a queue to poll */
#define TOKG_FAILED_KNOWN 64 /* texts that are known to have failed, by serial modulo this */

enum tokg_slot_state {
	TOKG_SLOT_FREE = 0,
	TOKG_SLOT_OUT,	/* posted, perhaps published */
	TOKG_SLOT_LOST, /* posted, and not published before the connection broke */
};

struct tokg_sink_slot {
	struct tokg_hdr hdr; /* as last posted; before the first time it has the ticket alone */
	uint64_t payload;    /* its position in the token ring */
	uint32_t piece;
	uint8_t state; /* enum tokg_slot_state */
};

struct tokg_sink_piece {
	uint64_t start;	  /* of its first record */
	uint64_t at, end; /* records in [at, end) are to be posted again */
	uint32_t part;	  /* ids of the record before it */
	uint32_t tokens;
	uint32_t n_out; /* slots of it that are out */
	bool batch, second, strict;
};

/* What one slot is to carry. */
struct tokg_sink_job {
	uint64_t payload; /* position */
	uint64_t request, out_bytes;
	uint32_t bytes, tokens, first, flags;
	uint16_t vocab;
};

/* Records from `next` on that may travel together. */
struct tokg_sink_batch {
	uint64_t end;
	uint64_t out_bytes;
	uint32_t n, bytes, tokens;
	uint16_t vocab;
	bool closed; /* no more fit */
};

enum tokg_sink_broken {
	TOKG_WHOLE = 0,
	TOKG_CONNECTION, /* to be made again */
	TOKG_SILENT,	 /* the agent's heartbeat stands still */
	TOKG_GRANT,	 /* the producer slot is not ours any more */
	TOKG_BREACH,	 /* a word of the back area that cannot be */
	TOKG_TICKETS,	 /* a slot's are used up */
	TOKG_NEVER,	 /* reconnecting is not possible */
};

struct tokg_sink {
	/* hot */
	struct tokg_transport *t;
	uint8_t *data;
	uint64_t mask;
	uint64_t next; /* record to be posted next */
	uint32_t part; /* ids of it that are posted */
	uint32_t slot_bytes, row_bytes, slots;
	uint64_t out_mask;
	struct tokg_sink_batch batch;
	struct tokg_sink_slot *slot;
	struct tokg_sink_piece *piece;
	uint32_t piece_mask, piece_head, piece_tail; /* free-running */
	uint32_t next_slot, oldest_slot;	     /* posted, oldest modulo slots */
	uint64_t posted, oldest;
	uint32_t n_out; /* slots OUT or LOST */
	uint32_t n_lost, n_again;
	/* outputs: positions. out_end of post n stands at n & out_fifo_mask until it is released */
	uint64_t out_head, out_tail, released;
	uint64_t *out_end;
	uint64_t out_fifo_mask;
	/* the back area */
	uint64_t n_reads, t_read; /* as last seen; when the last one began */
	uint64_t heartbeat, t_alive;
	bool reading, watching;
	bool no_slot, no_output; /* a record waits for one, this turn */
	uint32_t turn_posts;
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
	/* set-up */
	int node;
	uint64_t *tickets; /* [slots], for reconnect */
	void *own;	   /* memory of all arrays */
	size_t own_bytes;
	char reason[160]; /* of TOKG_NEVER; else what is not right, where a number helps */
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

/* A text's ids are not embedded and never will be. */
void tokg_sink_fail(struct tokg_sink *s, uint64_t serial, enum tokg_status status);

/* sink_post.c. Both: 1: taken; 0: not; below 0: the connection broke, and it may be taken. */
/* Into the next slot, for a piece that is entered already. `again`: TOKG_STRICT, or 0. */
int tokg_sink_post(struct tokg_sink *s, const struct tokg_sink_job *job, uint32_t piece,
	uint32_t again, uint64_t now);
/* Posts that a broken connection lost, again: same slots, same tickets. 1: none is left. */
int tokg_sink_post_lost(struct tokg_sink *s);

/* sink_batch.c. As tokg_sink_post; 1: nothing more is to be posted. */
int tokg_sink_post_again(struct tokg_sink *s, uint64_t now);
int tokg_sink_post_fresh(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle);

/* sink_done.c: the back area was read. False: broken. */
bool tokg_sink_take_back(struct tokg_sink *s, uint64_t now);

#endif
