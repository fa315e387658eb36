/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the consumer's outbox, by way of each producer slot's postings, into the ring that
 * subscribers read; and back, from the subscribers' cursors to `released`.
 */
#ifndef TOKG_AGENT_DELIVERY_H
#define TOKG_AGENT_DELIVERY_H

#include <tokd/embeddings.h>

#include "producers.h"

#define TOKG_RING_ENTRIES_MAX 65536

struct tokg_delivery_counts {
	uint64_t entries, rows; /* handed out */
	uint64_t status[8];	/* slots by enum tokg_status */
	uint64_t impossible;	/* entries that no posting in order can have led to */
	uint64_t holes;		/* of the outbox, left by a consumer that was stopped */
	uint64_t overruns;	/* the outbox went round */
};

struct tokg_delivery {
	struct tokg_producers *producers;
	struct tokg_outbox *outbox;
	uint64_t told;	/* entries of the outbox read */
	uint64_t holes; /* what is not written below this index never will be */
	struct tokg_emb_ring *ring;
	struct tokg_embedding *entry;
	size_t ring_bytes;
	int ring_fd;
	uint64_t head, tail;
	bool full; /* something waits for room in the ring */
	struct tokg_delivery_counts counts;
};

/* False and `err`. The ring has room for all that can be out, up to TOKG_RING_ENTRIES_MAX. */
bool tokg_delivery_create(struct tokg_delivery *d, struct tokg_producers *producers,
	uint64_t instance, struct tokg_error *err);
void tokg_delivery_free(struct tokg_delivery *d);

/* Hands out what is there. How many entries were read or handed out: 0, it is idle. */
uint32_t tokg_delivery_poll(struct tokg_delivery *d);
/* All subscribers have passed this position (head, where there is none): gives it back. */
void tokg_delivery_passed(struct tokg_delivery *d, uint64_t position);
/* The consumer has ended: what it took of the outbox and did not write, nobody will. */
void tokg_delivery_consumer_ended(struct tokg_delivery *d);
/* All that was done is told of and given back. */
bool tokg_delivery_idle(const struct tokg_delivery *d);

#endif
