/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token ring and its readers, worker's side: how far each has come, which space may be reused,
 * who joins and who leaves. Called when a reservation passes the limit, and in housekeeping.
 */
#include "token_ring_write.h"

/* Tail moves are made this much larger than asked, so that few reservations pay for the fence. */
#define TAIL_STEP_SHIFT 6 /* ring size / 64 */

/*
 * Position up to which all active readers have finished, and in *slowest the one that is there.
 * A cursor is memory of another process: whatever stands in it, the result lies in what the
 * reader had and the head, and a reader that goes back only fools itself.
 */
static uint64_t
readers_done(struct tokd_ring *r, uint32_t *slowest)
{
	uint64_t done = r->head;

	for (uint32_t i = 0; r->n_active > 0 && i < TOKD_READERS_MAX; i++) {
		struct tokd_reader *rd = &r->reader[i];
		uint64_t cursor;

		/* One that is leaving is not waited for, and its cursor is not touched. */
		if (atomic_load_explicit(&rd->state, memory_order_acquire) != TOKD_READER_ACTIVE)
			continue;
		/* Its last use of what lies below its cursor comes before our writing there. */
		cursor = atomic_load_explicit(rd->cursor, memory_order_acquire);
		if (cursor > rd->seen)
			rd->seen = RTE_MIN(cursor, r->head);
		if (rd->seen < done) {
			done = rd->seen;
			*slowest = i;
		}
	}
	return done;
}

static void
ring_full(struct tokd_ring *r, uint32_t slowest)
{
	uint64_t since = atomic_load_explicit(&r->full_since, memory_order_relaxed);
	uint32_t before = atomic_load_explicit(&r->slowest, memory_order_relaxed);

	if (since != 0 && before == slowest)
		return;
	/* A reader is blamed for the time since it became the slowest, not for another's. */
	atomic_store_explicit(&r->slowest, slowest, memory_order_relaxed);
	/* The control thread that sees the time sees whose it is. */
	atomic_store_explicit(&r->full_since, rte_rdtsc() | 1, memory_order_release);
}

static void
ring_not_full(struct tokd_ring *r)
{
	if (atomic_load_explicit(&r->full_since, memory_order_relaxed) != 0)
		atomic_store_explicit(&r->full_since, 0, memory_order_relaxed);
}

bool
tokd_ring_make_room(struct tokd_ring *r, uint64_t end)
{
	const uint64_t size = r->mask + 1;
	uint32_t slowest = 0;
	uint64_t done, need, tail = r->tail;

	if (end <= r->limit) {
		ring_not_full(r);
		return true;
	}
	done = readers_done(r, &slowest);
	need = end - size; /* the tail has to come this far */
	while (tail < need + (size >> TAIL_STEP_SHIFT) && tail < done) {
		uint64_t next = tail + tokd_ring_at(r, tail)->bytes;

		if (next > done)
			break; /* a reader is inside that record, or says so */
		tail = next;
	}
	if (tail != r->tail) {
		if (r->before_reuse != NULL)
			r->before_reuse(r->before_reuse_arg, r->tail, tail);
		r->tail = tail;
		r->limit = tail + size;
		__atomic_store_n(&r->hdr->tail, tail, __ATOMIC_RELEASE);
		/*
		 * The new tail is visible before any byte below it changes: whoever read new bytes
		 * and looks at the tail afterwards finds out.
		 */
		atomic_thread_fence(memory_order_seq_cst);
	}
	if (tail < need) {
		ring_full(r, slowest);
		return false;
	}
	ring_not_full(r);
	return true;
}

void
tokd_ring_readers(struct tokd_ring *r)
{
	uint32_t n_active = 0;

	for (uint32_t i = 0; i < TOKD_READERS_MAX; i++) {
		struct tokd_reader *rd = &r->reader[i];
		uint32_t state = atomic_load_explicit(&rd->state, memory_order_acquire);

		if (state == TOKD_READER_JOIN) {
			rd->start = r->head;
			rd->seen = r->head;
			/*
			 * The control thread that sees ACTIVE sees the start. It may have changed
			 * its mind meanwhile: then `state` becomes LEAVE here, and stays so there.
			 */
			if (atomic_compare_exchange_strong_explicit(&rd->state, &state,
				    TOKD_READER_ACTIVE, memory_order_acq_rel, memory_order_acquire))
				state = TOKD_READER_ACTIVE;
		}
		if (state == TOKD_READER_ACTIVE) {
			n_active++;
		} else if (state == TOKD_READER_LEAVE) {
			/* Our last load of the cursor comes before its page is unmapped. */
			atomic_store_explicit(&rd->state, TOKD_READER_FREE, memory_order_release);
			/* Whoever holds the ring now is not blamed for the one that left. */
			ring_not_full(r);
		}
	}
	r->n_active = n_active;
}
