/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token ring and its readers, worker's side: how far each has come, which space may be reused,
 * who joins and who leaves. Called when a reservation passes the limit, and in housekeeping.
 */
#include "token_ring_write.h"

/*
 * Tail moves are made this much larger than asked, so that few reservations pay for the fence: a
 * part of the ring, but no more than is walked record by record in a few microseconds.
 */
#define TAIL_STEP_SHIFT 6 /* ring size / 64 */
#define TAIL_STEP_MAX (16u << 10)

/*
 * How far an active reader has come. A cursor is memory of another process: whatever stands in it,
 * the result lies in what the reader had and the head, and one that goes back only fools itself.
 */
static uint64_t
look_at(const struct tokd_ring *r, struct tokd_reader *rd)
{
	/* Its last use of what lies below its cursor comes before our writing there. */
	uint64_t cursor = atomic_load_explicit(rd->cursor, memory_order_acquire);

	if (cursor > rd->seen)
		rd->seen = RTE_MIN(cursor, r->head);
	if (rd->seen >= rd->must_reach &&
		atomic_load_explicit(&rd->since, memory_order_relaxed) != 0)
		atomic_store_explicit(&rd->since, 0, memory_order_relaxed);
	return rd->seen;
}

static bool
is_active(struct tokd_reader *rd)
{
	/* One that is leaving is not waited for, and its cursor is not touched. */
	return atomic_load_explicit(&rd->state, memory_order_acquire) == TOKD_READER_ACTIVE;
}

/* Position up to which all active readers, and packets that point into the ring, have finished. */
static uint64_t
all_done(struct tokd_ring *r)
{
	uint64_t done = r->head;

	for (uint32_t i = 0; r->n_active > 0 && i < TOKD_READER_PLACES; i++) {
		struct tokd_reader *rd = &r->reader[i];

		if (is_active(rd))
			done = RTE_MIN(done, look_at(r, rd));
	}
	if (r->in_use != NULL)
		done = RTE_MIN(done, r->in_use(r->owner));
	return done;
}

/*
 * The tail cannot come to `need`: whoever has not is in the way, and from now on if not already.
 * A record is freed as a whole: one that is inside the first stands in the way as well.
 */
static void
blame(struct tokd_ring *r, uint64_t need)
{
	const uint64_t reach = RTE_MAX(need, r->tail + tokd_ring_at(r, r->tail)->bytes);

	for (uint32_t i = 0; i < TOKD_READER_PLACES; i++) {
		struct tokd_reader *rd = &r->reader[i];

		if (!is_active(rd) || rd->seen >= reach ||
			atomic_load_explicit(&rd->since, memory_order_relaxed) != 0)
			continue;
		rd->must_reach = reach;
		atomic_store_explicit(&rd->since, rte_rdtsc() | 1, memory_order_relaxed);
	}
}

bool
tokd_ring_make_room(struct tokd_ring *r, uint64_t end)
{
	const uint64_t size = r->mask + 1;
	const uint64_t step = RTE_MIN(size >> TAIL_STEP_SHIFT, (uint64_t)TAIL_STEP_MAX);
	const uint64_t need = end - size; /* the tail has to come this far */
	const uint64_t done = all_done(r);
	uint64_t tail = r->tail;

	while (tail < need + step && tail < done) {
		uint64_t next = tail + tokd_ring_at(r, tail)->bytes;

		if (next > done)
			break; /* a reader is inside that record, or says so */
		tail = next;
	}
	if (tail != r->tail) {
		if (r->before_reuse != NULL)
			r->before_reuse(r->owner, r->tail, tail);
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
		r->full = true;
		r->wanted = RTE_MAX(r->wanted, end - r->head);
		blame(r, need);
		return false;
	}
	if (r->full && end - r->head >= r->wanted) {
		r->full = false;
		r->wanted = 0;
	}
	return true;
}

void
tokd_ring_readers(struct tokd_ring *r)
{
	uint32_t n_active = 0;

	for (uint32_t i = 0; i < TOKD_READER_PLACES; i++) {
		struct tokd_reader *rd = &r->reader[i];
		uint32_t state = atomic_load_explicit(&rd->state, memory_order_acquire);

		if (state == TOKD_READER_JOIN) {
			rd->start = r->head;
			rd->seen = r->head;
			rd->must_reach = 0;
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
			if (atomic_load_explicit(&rd->since, memory_order_relaxed) != 0)
				look_at(r, rd);
		} else if (state == TOKD_READER_LEAVE) {
			atomic_store_explicit(&rd->since, 0, memory_order_relaxed);
			/* Our last load of the cursor comes before its page is unmapped. */
			atomic_store_explicit(&rd->state, TOKD_READER_FREE, memory_order_release);
		}
	}
	r->n_active = n_active;
	if (r->full)
		tokd_ring_make_room(r, RTE_MAX(r->head + r->wanted, r->mask + 1));
}
