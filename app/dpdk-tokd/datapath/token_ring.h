/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token ring, writer's side. Set-up (token_ring.c): make, seal, register, free; readers join
 * and leave. Hot path (token_ring_write.h, inline): reserve, publish.
 */
#ifndef TOKD_TOKEN_RING_H
#define TOKD_TOKEN_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tokd/ring.h>

#define TOKD_READERS_MAX 16
/* Behind the places of those that attach: the worker's own sink, which nobody drops. */
#define TOKD_READER_SINK TOKD_READERS_MAX
#define TOKD_READER_PLACES (TOKD_READERS_MAX + 1)

/*
 * A reader as the worker sees it. The control thread fills `cursor` and sets state to JOIN; the
 * worker, in its housekeeping, sets `start` to its head and state to ACTIVE; from then on it
 * waits for the cursor. To remove a reader the control thread sets state to LEAVE; the worker sets
 * it to FREE and does not touch the cursor again; only then may the control thread unmap it.
 */
enum tokd_reader_state {
	TOKD_READER_FREE = 0,
	TOKD_READER_JOIN,
	TOKD_READER_ACTIVE,
	TOKD_READER_LEAVE
};

struct tokd_reader {
	_Atomic uint32_t state;	  /* enum tokd_reader_state */
	_Atomic uint64_t *cursor; /* this ring's word in the reader's sealed cursor memfd */
	uint64_t start;		  /* position of the first record it will see */
	uint64_t seen;		  /* worker only: cursor as last taken, clamped, never back */
	/*
	 * TSC since when it has stood in the way of a reservation, 0: it does not; for the control
	 * thread. It stops doing so by coming to must_reach itself, whatever others do meanwhile.
	 */
	_Atomic uint64_t since;
	uint64_t must_reach; /* worker only */
};

struct tokd_ring {
	/* hot, worker only */
	uint8_t *data;	 /* start of the records */
	uint64_t mask;	 /* data_bytes - 1 */
	uint64_t head;	 /* one past the last published record */
	uint64_t limit;	 /* head may not pass this without looking at the readers again */
	uint64_t tail;	 /* as published */
	uint64_t serial; /* of the next stream */
	struct tokd_ring_hdr *hdr;
	uint32_t n_active; /* readers in state ACTIVE */
	bool full;	   /* a reservation failed, and would fail still */
	uint64_t wanted;   /* bytes from the head on of the largest that did */
	/* Both are called by the worker, with `owner`, where they are not NULL. */
	void (*before_reuse)(void *owner, uint64_t from, uint64_t to); /* all of it still stands */
	uint64_t (*in_use)(void *owner); /* what begins there must stand, for now */
	void *owner;
	struct tokd_reader reader[TOKD_READER_PLACES];
	/* set-up */
	int fd;
	size_t map_bytes;
	bool huge;	    /* backed by huge pages */
	size_t front_bytes; /* mapped before hdr, not of the memfd: for EAL's notes; its page size
			     */
	bool memzone;	    /* tokd_ring_N */
	bool registered;    /* DPDK knows the memory */
};

/*
 * The huge page size in bytes that wastes least on a ring of data_bytes, of those that have enough
 * free pages now; 0 if none has.
 */
uint64_t tokd_ring_hugepage(uint64_t data_bytes);

/*
 * Make a ring of data_bytes (a power of two, at least 64 KiB) on NUMA node `node` (-1: any), in
 * huge pages of hugepage_bytes, or in ordinary pages when that is 0 or, with a warning, when they
 * cannot be had after all. Sealed; the DPDK memzone tokd_ring_N, if it can be. Returns 0 or -errno,
 * with a message logged that names size, node and remedy.
 */
int tokd_ring_create(struct tokd_ring *r, uint32_t worker, uint32_t lcore, int node,
	uint64_t data_bytes, uint64_t hugepage_bytes, uint32_t vocab, uint64_t instance);
void tokd_ring_free(struct tokd_ring *r);

/*
 * Worker, in housekeeping: take readers that want to join, let go of those that leave, and see
 * whether a full ring still is: nobody may be feeding who would find out.
 */
void tokd_ring_readers(struct tokd_ring *r);

#endif
