/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The postings of one producer, put in order. The consumer's outbox reports slots in any order, a
 * BATCH in parts, and some slots twice; subscribers get each once, in the order of posting, and the
 * producer gets the number of released slots.
 *
 *   outbox ─▶ pending[slot] ─▶ ready ─▶ given (subscribers) ─▶ released
 *             until complete     until there is space
 *             and next           in the subscribers' ring
 *
 * A failed posting stays pending until `done` confirms it: if the consumer died before, the next
 * one processes the slot again, and its result counts.
 *
 * The n-th slot of an epoch (from 0 on) is slot n % S, with the ticket that it had when the epoch
 * was granted, plus n / S + 1. At most S of them are not done, so S are put in order at once.
 */
#pragma once

#include "kernel/device.h"

enum tokg_take {
	TOKG_TAKEN,
	TOKG_TWIN,	/* a duplicate: dropped */
	TOKG_IMPOSSIBLE /* valid postings cannot cause it, or there are too many */
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
	bool again; /* of a failed BATCH: its records will be posted again, one by one */
};

/* A posting that was delivered, or failed. */
struct tokg_given {
	uint64_t end;	  /* its end in the subscribers' ring */
	uint64_t out_end; /* its end in the producer's outputs */
};

struct tokg_postings {
	uint32_t slots;
	uint32_t room;	 /* nodes; also the limit of unreleased postings */
	uint32_t unused; /* list of nodes */
	uint32_t ready_first, ready_last;
	uint64_t *base;	 /* [slots] tickets when the epoch was granted */
	uint64_t next;	 /* the next posting to become ready */
	uint64_t final;	 /* results of postings below are final */
	uint64_t filled; /* postings given */
	uint64_t released;
	/* Positions in the producer's outputs, including what it skips before the wrap and failed
	 * slots. [out_tail, out_head) is not released: at most out_bytes. */
	uint64_t out_head, out_tail, out_bytes;
	uint32_t row_bytes;
	uint64_t twins;			/* duplicates dropped, of another incarnation */
	struct tokg_pending *pending;	/* [slots] */
	struct tokg_posting_node *node; /* [room] */
	struct tokg_given *given;	/* [room]: posting n at n % room */
};

/* False: no memory. */
bool tokg_postings_create(struct tokg_postings *p, const struct tokg_geometry *g);
void tokg_postings_free(struct tokg_postings *p);
/* A new epoch: forget everything; `base`: the last tickets of the slots. */
void tokg_postings_begin(struct tokg_postings *p, const uint64_t *base);

/* e->slot is below slots. */
enum tokg_take tokg_postings_take(struct tokg_postings *p, const struct tokg_out_entry *e);
/* True: a failed posting waits for `done`. */
bool tokg_postings_waits(const struct tokg_postings *p);
/* done[slots]; NULL: all published slots are done and reported. */
void tokg_postings_settle(struct tokg_postings *p, const uint64_t *done);
/* The next entry to deliver, or NULL. `again`: not for subscribers, it will be posted again. */
const struct tokg_out_entry *tokg_postings_ready(const struct tokg_postings *p, bool *again);
/* It was delivered or skipped; `end`: the head of the subscribers' ring after it. */
void tokg_postings_give(struct tokg_postings *p, uint64_t end);
/* True: the producer may wait for outputs, or for released postings. */
bool tokg_postings_full(const struct tokg_postings *p);
/*
 * Subscribers have passed `passed`. Returns the number of released postings of this epoch. A
 * posting that is not done is not released: after the death of a consumer between entry and `done`,
 * its rows are written again.
 */
uint64_t tokg_postings_release(struct tokg_postings *p, uint64_t passed, const uint64_t *done);
/* The end of the oldest unreleased posting; UINT64_MAX: none. */
uint64_t tokg_postings_oldest(const struct tokg_postings *p);
/* Drop entries that wait for others which will not come. Returns their number. */
uint32_t tokg_postings_drop_pending(struct tokg_postings *p);
/* True: everything is released. */
bool tokg_postings_idle(const struct tokg_postings *p);
