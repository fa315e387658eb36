/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token ring, writer's side: its state. token_ring_write.h reserves and publishes;
 * token_ring_readers.c lets readers join and leave.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tokd/ring.h>

#define TOKD_READERS_MAX 16
/* After the readers that attach: the worker's own sink, which is never dropped. */
#define TOKD_READER_SINK TOKD_READERS_MAX
#define TOKD_READER_SLOTS (TOKD_READERS_MAX + 1)

/*
 * A reader as the worker sees it. The control thread sets `cursor`, then state JOIN; the worker, in
 * housekeeping, sets `start` to its head, then state ACTIVE, and waits for the cursor from then on.
 * To remove a reader the control thread sets LEAVE; the worker sets FREE and no longer reads the
 * cursor; then the control thread may unmap it.
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
	uint64_t start;		  /* position of its first record */
	uint64_t seen;		  /* worker only: cursor as last read, clamped, never decreases */
	/*
	 * For the control thread: TSC since when it has blocked a reservation, or 0. It ends when
	 * the reader reaches must_reach, whatever other readers do. What is left of earlier times
	 * (tokd_hold_left) is before it: now - since is all that counts.
	 */
	_Atomic uint64_t since;
	/* worker only */
	uint64_t must_reach;
	uint64_t held;	  /* ticks of earlier times, when the last one ended */
	uint64_t held_at; /* TSC then */
};

/* A reader may keep the ring full for tokd_ring.hold_ms of this time, at once or in parts. */
#define TOKD_HOLD_WINDOW_MS 100000u

/*
 * What is left of `held` ticks after `rest` ticks in which the reader did not keep the ring full.
 * In the long run hold_ms of every window is forgotten, in any window a reader has less than twice
 * that. From the whole window on, only the time without a pause counts.
 */
static inline uint64_t
tokd_hold_left(uint64_t held, uint64_t rest, uint32_t hold_ms)
{
	uint64_t parts;

	if (hold_ms == 0)
		return held;
	if (hold_ms >= TOKD_HOLD_WINDOW_MS)
		return 0;
	parts = rest / (TOKD_HOLD_WINDOW_MS - hold_ms);
	return parts > held / hold_ms ? 0 : held - parts * hold_ms;
}

struct tokd_ring {
	/* hot, worker only */
	uint8_t *data;	 /* start of the records */
	uint64_t mask;	 /* data_bytes - 1 */
	uint64_t head;	 /* one past the last published record */
	uint64_t limit;	 /* the head may not pass it before readers are checked again */
	uint64_t tail;	 /* as published */
	uint64_t wiped;	 /* --wipe: what was below is zero, or was written anew */
	uint64_t serial; /* of the next stream */
	struct tokd_ring_hdr *hdr;
	uint32_t block_size; /* ids of a block; 0: records have no keys */
	uint32_t key_bytes;
	uint32_t n_active; /* readers in state ACTIVE */
	bool full;	   /* a reservation failed and would still fail */
	uint64_t wanted;   /* bytes from the head, of the largest that failed */
	uint32_t hold_ms;  /* see TOKD_HOLD_WINDOW_MS; 0: nothing is forgotten */
	/* Called by the worker if not NULL. before_reuse: before [from, to) may be overwritten.
	 * in_use: the lowest position that must not be overwritten yet. */
	void (*before_reuse)(void *owner, uint64_t from, uint64_t to);
	uint64_t (*in_use)(void *owner);
	/* The sink holds a full ring: true if it has been passed over, its cursor is the head. */
	bool (*shed)(void *owner);
	void *owner;
	struct tokd_reader reader[TOKD_READER_SLOTS];
	/* set-up */
	int fd;
	size_t map_bytes;
	bool huge;	    /* backed by huge pages */
	size_t front_bytes; /* before hdr, not in the memfd: for EAL's header; a page size */
	bool memzone;	    /* tokd_ring_N */
	bool registered;    /* DPDK knows the memory */
};

/* Has a reader kept the ring full for `ticks`, or longer? Any thread. */
static inline bool
tokd_reader_is_overdue(const struct tokd_reader *rd, uint64_t ticks, uint64_t now)
{
	const uint64_t since = atomic_load_explicit(&rd->since, memory_order_relaxed);

	return since != 0 && now > since && now - since > ticks;
}

/*
 * --wipe, a bounded part at a time. Records published before TSC `before`: the position after them.
 * Then those below `to` are given up that no reader needs, and zeroed.
 */
uint64_t tokd_ring_old(const struct tokd_ring *r, uint64_t before);
void tokd_ring_wipe(struct tokd_ring *r, uint64_t to);

/*
 * Worker, in housekeeping: let readers join and leave, and check whether a full ring is still full,
 * also when no text is being fed.
 */
void tokd_ring_readers(struct tokd_ring *r);
