/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delivers entries of the consumer's outbox, put in order by each producer's postings, to the ring
 * of the subscribers; and updates `released` from the subscribers' cursors.
 */
#pragma once

#include <tokd/embeddings.h>

#include "kernel/engine_area.h"
#include "producers.h"

#define TOKG_RING_ENTRIES_MAX 65536

struct tokg_delivery_counts {
	uint64_t entries, rows; /* delivered */
	uint64_t status[16];	/* slots by enum tokg_status; SHED: notices */
	uint64_t impossible;	/* entries that valid postings cannot cause */
	uint64_t holes;		/* in the outbox, left by a stopped consumer */
	uint64_t overruns;	/* the outbox wrapped before it was read */
};

struct tokg_delivery {
	struct tokg_producers *producers;
	struct tokg_outbox *outbox;
	uint64_t n_read;	      /* outbox entries read */
	uint64_t holes;		      /* entries not written below this index never will be */
	struct tokg_engine_area area; /* with an external engine */
	struct tokg_emb_ring *ring;
	struct tokg_embedding *entry;
	size_t ring_bytes;
	int ring_fd;
	uint64_t head, tail;
	bool full; /* an entry waits for space in the ring */
	struct tokg_delivery_counts counts;
};

/* False and `err`. The ring holds all entries that can be unreleased, up to
 * TOKG_RING_ENTRIES_MAX. */
bool tokg_delivery_create(struct tokg_delivery *d, struct tokg_producers *producers,
	uint64_t instance, struct tokg_error *err);
void tokg_delivery_free(struct tokg_delivery *d);

/* Delivers what it can. Returns the number of entries read or delivered. */
uint32_t tokg_delivery_poll(struct tokg_delivery *d);
/* A subscriber has attached: tell again what was shed. */
void tokg_delivery_tell_shed(struct tokg_delivery *d);
/* All subscribers have passed this position (head, without subscribers): releases it. */
void tokg_delivery_passed(struct tokg_delivery *d, uint64_t position);
/* The consumer has ended: its unwritten outbox entries become holes. */
void tokg_delivery_consumer_ended(struct tokg_delivery *d);
/* True: everything done is delivered and released. */
bool tokg_delivery_idle(const struct tokg_delivery *d);
