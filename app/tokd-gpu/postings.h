/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one producer has posted, put back in its order. The consumer's outbox tells of slots in any
 * order, of a BATCH in parts, and of some twice; subscribers get them once, as they were posted,
 * and the producer is told how many of its slots are given back.
 *
 *   outbox ─▶ pending[slot] ─▶ ready ─▶ given (subscribers) ─▶ released
 *             until all parts    until there is room
 *             and its turn       in the subscribers' ring
 *
 * What failed waits in pending for `done` to say the same: a consumer that died before it did may
 * be followed by one that finds the slot as posted, and whose word counts.
 *
 * The n-th slot of an epoch (from 0 on) is slot n % S, with the ticket that it had when the epoch
 * was granted, plus n / S + 1. At most S of them are not done, so S are put in order at once.
 */
#ifndef TOKG_AGENT_POSTINGS_H
#define TOKG_AGENT_POSTINGS_H

#include "kernel/device.h"

enum tokg_take {
	TOKG_TAKEN,
	TOKG_TWIN,	/* it was there already: dropped */
	TOKG_IMPOSSIBLE /* no posting in order can have led to it, or there are too many */
};

struct tokg_pending {
	uint32_t first, last; /* nodes, by rising part */
	uint32_t incarnation;
	uint32_t got, parts;
	uint8_t worst; /* enum tokg_status, of all parts */
};

struct tokg_posting_node {
	struct tokg_out_entry entry;
	uint32_t next;
	bool ends;  /* the last of its posting */
	bool again; /* of a BATCH that failed: its records are posted again, each alone */
};

/* A posting that was given to the subscribers, or failed. */
struct tokg_given {
	uint64_t end;	  /* position in the subscribers' ring behind it */
	uint64_t out_end; /* position in the producer's outputs behind it */
};

struct tokg_postings {
	uint32_t slots;
	uint32_t room;	 /* nodes, and postings that are not given back */
	uint32_t unused; /* list of nodes */
	uint32_t ready_first, ready_last;
	uint64_t *base;	 /* [slots] tickets when the epoch was granted */
	uint64_t next;	 /* posting whose turn it is to become ready */
	uint64_t final;	 /* below: nothing more will be said of them */
	uint64_t filled; /* postings given */
	uint64_t released;
	/* The producer's outputs, counted as it does: with what it skips before the wrap, and with
	 * what failed. [out_tail, out_head) are not given back: at most out_bytes. */
	uint64_t out_head, out_tail, out_bytes;
	uint32_t row_bytes;
	uint64_t twins; /* entries dropped because another incarnation said the same, ever */
	struct tokg_pending *pending;	/* [slots] */
	struct tokg_posting_node *node; /* [room] */
	struct tokg_given *given;	/* [room]: posting n at n % room */
};

/* False: no memory. */
bool tokg_postings_create(struct tokg_postings *p, const struct tokg_geometry *g);
void tokg_postings_free(struct tokg_postings *p);
/* A new epoch: forget all, and count from `base` on, the tickets of the slots' last use. */
void tokg_postings_begin(struct tokg_postings *p, const uint64_t *base);

/* e->slot is below slots. */
enum tokg_take tokg_postings_take(struct tokg_postings *p, const struct tokg_out_entry *e);
/* A posting that failed waits for `done`. */
bool tokg_postings_waits(const struct tokg_postings *p);
/* done[slots] as the consumer has them; NULL: all that was published is done, and told of. */
void tokg_postings_settle(struct tokg_postings *p, const uint64_t *done);
/* The next whose turn it is, or NULL. `again`: not for subscribers, it comes once more. */
const struct tokg_out_entry *tokg_postings_ready(const struct tokg_postings *p, bool *again);
/* They have got it, or it is not for them: `end` is their ring's head behind it. */
void tokg_postings_give(struct tokg_postings *p, uint64_t end);
/* The producer may wait for outputs, or for postings, that are not given back. */
bool tokg_postings_full(const struct tokg_postings *p);
/*
 * Subscribers have passed `passed`; done[slots] as the consumer has them: how many postings of this
 * epoch are given back now. Not one that is not done, though subscribers have finished with it: a
 * consumer that died between entry and `done` writes its rows once more.
 */
uint64_t tokg_postings_release(struct tokg_postings *p, uint64_t passed, const uint64_t *done);
/* Behind the oldest that is not given back; UINT64_MAX: there is none. */
uint64_t tokg_postings_oldest(const struct tokg_postings *p);
/* Drop what waits for others that will not come. How many entries. */
uint32_t tokg_postings_drop_pending(struct tokg_postings *p);
/* All that came is given back. */
bool tokg_postings_idle(const struct tokg_postings *p);

#endif
