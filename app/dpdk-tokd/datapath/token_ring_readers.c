/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token ring and its readers, worker's side: their cursors, which space may be reused, who
 * joins and leaves. Called when a reservation passes the limit, and in housekeeping.
 */
#include "token_ring_write.h"

/*
 * The tail moves by this much more than requested, so that few reservations pay for the fence; the
 * maximum bounds the loop over records to a few microseconds.
 */
#define TAIL_STEP_SHIFT 6 /* ring size / 64 */
#define TAIL_STEP_MAX (16u << 10)
/* The same for --wipe. */
#define WIPE_BYTES (256u << 10)

static void
end_hold(struct tokd_reader *rd)
{
	const uint64_t since = atomic_load_explicit(&rd->since, memory_order_relaxed);

	if (since == 0)
		return;
	rd->held_at = rte_rdtsc();
	rd->held = rd->held_at - since;
	atomic_store_explicit(&rd->since, 0, memory_order_relaxed);
}

/*
 * The position of an active reader. The cursor is written by another process: the result is clamped
 * to the last position and the head, whatever the cursor holds.
 */
static uint64_t
read_cursor(const struct tokd_ring *r, struct tokd_reader *rd)
{
	/* Acquire: the reader's last use below its cursor comes before our writes there. */
	uint64_t cursor = atomic_load_explicit(rd->cursor, memory_order_acquire);

	if (cursor > rd->seen)
		rd->seen = RTE_MIN(cursor, r->head);
	if (rd->seen >= rd->must_reach)
		end_hold(rd);
	return rd->seen;
}

static bool
is_active(struct tokd_reader *rd)
{
	/* In LEAVE we neither wait for it nor read its cursor. */
	return atomic_load_explicit(&rd->state, memory_order_acquire) == TOKD_READER_ACTIVE;
}

/* Position up to which all active readers, and packets that point into the ring, have finished. */
static uint64_t
min_cursor(struct tokd_ring *r)
{
	uint64_t done = r->head;

	for (uint32_t i = 0; r->n_active > 0 && i < TOKD_READER_SLOTS; i++) {
		struct tokd_reader *rd = &r->reader[i];

		if (is_active(rd))
			done = RTE_MIN(done, read_cursor(r, rd));
	}
	if (r->in_use != NULL)
		done = RTE_MIN(done, r->in_use(r->owner));
	return done;
}

/*
 * The tail cannot move to `need`: mark the readers that block it. Records are freed whole, so a
 * reader inside the first record blocks too.
 */
static void
mark_blocking(struct tokd_ring *r, uint64_t need)
{
	const uint64_t reach = RTE_MAX(need, r->tail + tokd_ring_at(r, r->tail)->bytes);
	const uint64_t now = rte_rdtsc();

	for (uint32_t i = 0; i < TOKD_READER_SLOTS; i++) {
		struct tokd_reader *rd = &r->reader[i];
		uint64_t held;

		if (!is_active(rd) || rd->seen >= reach ||
			atomic_load_explicit(&rd->since, memory_order_relaxed) != 0)
			continue;
		rd->must_reach = reach;
		held = tokd_hold_left(rd->held, now - rd->held_at, r->hold_ms);
		atomic_store_explicit(&rd->since, (now - held) | 1, memory_order_relaxed);
	}
}

/* Moves the tail up to `to`, to the end of a record, as far as readers allow. */
static void
move_tail(struct tokd_ring *r, uint64_t to)
{
	const uint64_t done = min_cursor(r);
	uint64_t tail = r->tail;

	while (tail < to && tail < done) {
		uint64_t next = tail + tokd_ring_at(r, tail)->bytes;

		if (next > done)
			break; /* a reader is inside that record */
		tail = next;
	}
	if (tail == r->tail)
		return;
	if (r->before_reuse != NULL)
		r->before_reuse(r->owner, r->tail, tail);
	r->tail = tail;
	r->limit = tail + r->mask + 1;
	__atomic_store_n(&r->hdr->tail, tail, __ATOMIC_RELEASE);
	/*
	 * The new tail is visible before any byte below it changes: a tap that read new bytes and
	 * checks the tail afterwards notices.
	 */
	atomic_thread_fence(memory_order_seq_cst);
}

/* The sink is in the way of a tail at `need`, and has been passed over. */
static bool
shed_sink(struct tokd_ring *r, uint64_t need)
{
	struct tokd_reader *rd = &r->reader[TOKD_READER_SINK];

	return r->shed != NULL && is_active(rd) && rd->seen < need && r->shed(r->owner);
}

bool
tokd_ring_reclaim(struct tokd_ring *r, uint64_t end)
{
	const uint64_t size = r->mask + 1;
	const uint64_t need = end - size; /* where the tail must be */
	const uint64_t step = RTE_MIN(size >> TAIL_STEP_SHIFT, (uint64_t)TAIL_STEP_MAX);

	move_tail(r, need + step);
	if (r->tail < need && shed_sink(r, need))
		move_tail(r, need + step);
	if (r->tail < need) {
		r->full = true;
		r->wanted = RTE_MAX(r->wanted, end - r->head);
		mark_blocking(r, need);
		return false;
	}
	if (r->full && end - r->head >= r->wanted) {
		r->full = false;
		r->wanted = 0;
	}
	return true;
}

uint64_t
tokd_ring_old(const struct tokd_ring *r, uint64_t before)
{
	uint64_t end = r->tail;

	while (end < r->head && end - r->tail < WIPE_BYTES) {
		const struct tokd_rec *rec = tokd_ring_at(r, end);

		if (rec->t_publish > before) /* that of padding is 0 */
			break;
		end += rec->bytes;
	}
	return end;
}

void
tokd_ring_wipe(struct tokd_ring *r, uint64_t to)
{
	const uint64_t size = r->mask + 1;
	uint64_t end;

	if (r->tail < to)
		move_tail(r, to);
	if (r->head > size)
		r->wiped = RTE_MAX(r->wiped, r->head - size); /* written anew */
	end = RTE_MIN(r->tail, r->wiped + WIPE_BYTES);
	while (r->wiped < end) {
		const uint64_t at = r->wiped & r->mask, n = RTE_MIN(end - r->wiped, size - at);

		memset(r->data + at, 0, n);
		r->wiped += n;
	}
}

void
tokd_ring_readers(struct tokd_ring *r)
{
	uint32_t n_active = 0;

	for (uint32_t i = 0; i < TOKD_READER_SLOTS; i++) {
		struct tokd_reader *rd = &r->reader[i];
		uint32_t state = atomic_load_explicit(&rd->state, memory_order_acquire);

		if (state == TOKD_READER_JOIN) {
			rd->start = r->head;
			rd->seen = r->head;
			rd->must_reach = 0;
			rd->held = 0;
			/*
			 * A control thread that sees ACTIVE sees `start`. If it has set LEAVE
			 * meanwhile, the exchange fails and `state` is LEAVE.
			 */
			if (atomic_compare_exchange_strong_explicit(&rd->state, &state,
				    TOKD_READER_ACTIVE, memory_order_acq_rel, memory_order_acquire))
				state = TOKD_READER_ACTIVE;
		}
		if (state == TOKD_READER_ACTIVE) {
			n_active++;
			if (atomic_load_explicit(&rd->since, memory_order_relaxed) != 0)
				read_cursor(r, rd);
		} else if (state == TOKD_READER_LEAVE) {
			atomic_store_explicit(&rd->since, 0, memory_order_relaxed);
			/* Release: after our last load of the cursor, which is then unmapped. */
			atomic_store_explicit(&rd->state, TOKD_READER_FREE, memory_order_release);
		}
	}
	r->n_active = n_active;
	if (r->full)
		tokd_ring_reclaim(r, RTE_MAX(r->head + r->wanted, r->mask + 1));
}
