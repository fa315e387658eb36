/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer: one source for the persistent kernel and for CPU threads. A scanning block (CPU:
 * one thread) polls the tickets, claims slots, validates them, and passes their rows to the workers
 * (work.cuh).
 *
 * Nothing from a producer is trusted: header and payload are copied once, and the copies are
 * checked, validated and used, whatever the producer writes meanwhile; ids are checked against the
 * table as they are read (embed.cuh).
 */
#pragma once

#include "slot.cuh"

#define TOKG_TAKEN 64		 /* the most slots claimed in one scan */
#define TOKG_FULL_SCAN_EVERY 64	 /* with heads: scans per scan of all slots */
#define TOKG_HEARTBEAT_EVERY 256 /* scans */
#define TOKG_LOOK_AHEAD 8	 /* loads of tickets in flight per thread */

/* Shared by the scanner's threads. */
struct tokg_scan {
	struct tokg_hand hand; /* of the slots that it checks itself */
	uint64_t pushed;       /* jobs, in this incarnation's life */
	uint64_t scans;
	uint64_t timed;		       /* scans, where they are timed */
	uint64_t owner, alive, looked; /* its word, when it changed, when it was looked at */
	uint64_t busy;		       /* tokg_busy */
	uint32_t n_taken, n_right, stop;
	uint32_t stop_next; /* as the look has read it */
	uint32_t begin;	    /* of a look at all slots: the first one of a producer */
	uint32_t drained;   /* slots since DRAIN */
	bool leave;
	uint64_t n_found; /* ready slots that were taken */
	bool has_found;
	struct tokg_found found;
	/*
	 * With heads: the slot that is expected next of each producer, and by how many slots it
	 * goes on after this look. A head is always a slot of its producer, and it is a hint: what
	 * stands elsewhere is found by the next look at all slots.
	 */
	uint32_t head[TOKG_PRODUCERS_MAX], passes[TOKG_PRODUCERS_MAX];
	uint32_t epoch[TOKG_PRODUCERS_MAX];
	/*
	 * The last processed ticket of each slot, its lower half: enough, as the next is one more.
	 * A look compares it with the ticket that is there.
	 */
	uint32_t seen[TOKG_SCAN_MAX];
	struct tokg_taken taken[TOKG_TAKEN];
};

TOKG_DEV uint32_t
tokg_epoch_now(const tokg_consumer *c, uint32_t producer)
{
	return tokg_ld32((const uint32_t *)(c->region + tokg_back_at(&c->g, producer) +
					    offsetof(struct tokg_back, epoch)));
}

TOKG_DEV const uint64_t *
tokg_ticket_word(const tokg_consumer *c, uint32_t slot)
{
	return tokg_word(c, c->g.hdr_off + sizeof(struct tokg_hdr) * (uint64_t)slot +
				    offsetof(struct tokg_hdr, ticket));
}

/*
 * Orders the reads of the slot after its ticket. With check words a GPU leaves this out, which
 * saves a wait for memory: a header or payload older than the ticket fails the check and is read
 * again.
 */
TOKG_DEV bool
tokg_is_published(const tokg_consumer *c, uint32_t slot, uint64_t ticket)
{
#ifdef __CUDA_ARCH__
	if (c->g.flags & TOKG_CHECKED)
		return true;
#endif
	return tokg_ld_acquire(tokg_ticket_word(c, slot)) == ticket;
}

/*
 * By one thread. The ticket is new: claims the slot if it is pending, or if an older incarnation
 * claimed it and did not finish.
 */
TOKG_DEV void
tokg_take(const tokg_consumer *c, tokg_scan *s, uint32_t slot, uint64_t ticket)
{
	const uint64_t claim = tokg_own_ld(&c->claim[slot]);
	/* Acquire: who ended the slot's last use is done with its copy and its counts. */
	const uint64_t done = tokg_own_ld_acquire(tokg_done_in(c, c->back, slot));
	const bool again = (claim & TOKG_TICKET_MAX) == ticket;
	struct tokg_taken *t;
	tokg_hdr hdr;
	uint32_t k, epoch;

	if (done >> 8 == ticket)
		s->seen[slot] = (uint32_t)ticket;
	if (done >> 8 != ticket - 1 || ticket > TOKG_TICKET_MAX)
		return;
	if (again && claim >> 48 >= c->incarnation)
		return;
	if (!tokg_is_published(c, slot, ticket))
		return;
	/* First reserve an entry of the list: a claimed slot must be processed. */
	k = tokg_count(&s->n_taken);
	if (k >= TOKG_TAKEN)
		return;
	/*
	 * In flight with the claim. The epoch must not be older than the ticket, as a dead
	 * producer's header may be. The branch on the ticket, before this, ensures that.
	 */
	hdr = tokg_hdr_copy(c, slot);
	epoch = tokg_epoch_now(c, slot / c->g.slots);
	t = &s->taken[k];
	t->ticket = 0;
	if (!tokg_own_cas(&c->claim[slot], claim, TOKG_CLAIM(c->incarnation, ticket)))
		return;
	s->seen[slot] = (uint32_t)ticket;
	t->ticket = ticket;
	t->done_was = done;
	t->visible = tokg_now();
	t->slot = slot;
	t->what = TOKG_WHAT_SLOT;
	t->epoch = epoch;
	t->redo = again;
	t->hdr = hdr;
}

/* The i-th of n slots from `begin` on. */
TOKG_DEV uint32_t
tokg_slot_from(uint32_t begin, uint32_t i, uint32_t n)
{
	return i < n - begin ? begin + i : i - (n - begin);
}

/*
 * Scans all slots, with several loads in flight per thread. If more are pending than can be
 * claimed, the next scan begins with the next producer, for fairness. The slots of a producer are
 * scanned from the first one on: its outputs are released in order.
 */
TOKG_DEV void
tokg_scan_all(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	const uint32_t n = c->g.producers * c->g.slots;

	for (uint32_t i = b->tid; i < n; i += b->n * TOKG_LOOK_AHEAD) {
		uint64_t ticket[TOKG_LOOK_AHEAD];

		for (uint32_t k = 0; k < TOKG_LOOK_AHEAD; k++) {
			const uint32_t at = i + k * b->n;
			const uint32_t slot = tokg_slot_from(s->begin, at, n);

			ticket[k] = at < n ? tokg_ld(tokg_ticket_word(c, slot)) : 0;
		}
		for (uint32_t k = 0; k < TOKG_LOOK_AHEAD && i + k * b->n < n; k++) {
			const uint32_t slot = tokg_slot_from(s->begin, i + k * b->n, n);

			if (ticket[k] != 0 && (uint32_t)ticket[k] != s->seen[slot])
				tokg_take(c, s, slot, ticket[k]);
		}
	}
}

/*
 * Scans the next slot of each producer. It is known from the last claimed slot, and from a new
 * epoch, which begins at slot 0: that is for the next scan, so that epoch and ticket are read
 * together. After a restart the next full scan finds it.
 */
TOKG_DEV void
tokg_scan_heads(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	for (uint32_t p = b->tid; p < c->g.producers; p += b->n) {
		const uint32_t slot = p * c->g.slots + s->head[p];
		const uint32_t epoch = tokg_epoch_now(c, p);
		const uint64_t ticket = tokg_ld(tokg_ticket_word(c, slot));

		if (epoch != s->epoch[p]) {
			s->epoch[p] = epoch;
			s->head[p] = 0;
		} else if (ticket != 0 && (uint32_t)ticket != s->seen[slot]) {
			tokg_take(c, s, slot, ticket);
		}
	}
}

/* Puts a slot's rows on the queue. */
TOKG_DEV void
tokg_slot_hand_out(const tokg_consumer *c, tokg_block *b, tokg_scan *s, const tokg_taken *t,
	uint32_t parts, uint32_t n)
{
	for (uint32_t k = b->tid; k < n; k += b->n) {
		union tokg_work_item item;

		item.job = tokg_job_make(c, t, parts, s->pushed, k);
#ifndef __CUDA_ARCH__ /* a GPU always has workers; its threads cannot synchronize here */
		if (c->workers == 0) {
			TOKG_STAMP(item.job.begun);
			tokg_job_run(c, b, &item.job, s->pushed + k);
			s->leave = tokg_busy(c, &s->busy);
			if (s->leave)
				break;
			continue;
		}
#endif
		if (!tokg_queue_push(c, s->pushed + k, &item)) {
			s->leave = true;
			break;
		}
	}
	tokg_sync(b);
	if (b->tid == 0)
		s->pushed += n;
	tokg_sync(b);
}

/*
 * Hands out the slots that workers have checked. Returns their number.
 */
TOKG_DEV uint32_t
tokg_found_hand_out(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	uint32_t n = 0, slot;

	for (;; n++) {
		if (b->tid == 0) {
			s->has_found =
				n < TOKG_TAKEN && !s->leave && tokg_ready_get(c, s->n_found, &slot);
			if (s->has_found) {
				s->found = c->found[slot];
				s->n_found++;
			}
		}
		tokg_sync(b);
		if (!s->has_found)
			return n;
		tokg_slot_hand_out(c, b, s, &s->found.taken, s->found.parts, s->found.jobs);
	}
}

/*
 * By one thread, for each taken slot: its producer's head moves past the farthest of them. Threads
 * take slots in any order, so moving past the last one in the list could move it back.
 */
TOKG_DEV void
tokg_head_passes(const tokg_consumer *c, tokg_scan *s, uint32_t slot)
{
	const uint32_t p = slot / c->g.slots, at = slot % c->g.slots, head = s->head[p];
	const uint32_t passes = at < head ? at + c->g.slots - head + 1 : at - head + 1;

	if (passes > s->passes[p])
		s->passes[p] = passes;
}

TOKG_DEV void
tokg_head_move(const tokg_consumer *c, tokg_scan *s, uint32_t p)
{
	s->head[p] = (s->head[p] + s->passes[p]) % c->g.slots;
	s->passes[p] = 0;
}

/* By one thread: leaves no gaps in the list, and moves the heads. Returns the length. */
TOKG_DEV uint32_t
tokg_taken_list(const tokg_consumer *c, tokg_scan *s)
{
	const uint32_t n = s->n_taken < TOKG_TAKEN ? s->n_taken : TOKG_TAKEN;
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++) {
		const struct tokg_taken *const t = &s->taken[k];

		if (t->ticket == 0)
			continue;
		if (c->heads)
			tokg_head_passes(c, s, t->slot);
		if (m != k)
			s->taken[m] = *t;
		m++;
	}
	for (uint32_t k = 0; c->heads && k < m; k++)
		tokg_head_move(c, s, s->taken[k].slot / c->g.slots);
	return m;
}

/*
 * By one thread: waits until the queue is so short that n more jobs do not wait long. Unclaimed
 * slots are taken from the producers in turn, queued ones are not, so a long queue would be unfair.
 */
TOKG_DEV bool
tokg_queue_short(const tokg_consumer *c, const tokg_scan *s, uint32_t n)
{
	const uint64_t wanted = TOKG_TAKEN + 2ull * c->workers;
	const uint64_t ahead = wanted < TOKG_QUEUE ? wanted : TOKG_QUEUE;

	return s->pushed + n <= ahead || tokg_queue_wait(c, s->pushed + n - ahead - 1);
}

/* Gives slots to workers, each slot by a thread. */
TOKG_DEV void
tokg_taken_push(const tokg_consumer *c, tokg_block *b, tokg_scan *s, uint32_t n)
{
	if (b->tid == 0 && !tokg_queue_short(c, s, n))
		s->leave = true;
	tokg_sync(b);
	for (uint32_t k = b->tid; k < n && !s->leave; k += b->n) {
		union tokg_work_item item;

		item.taken = s->taken[k];
		if (!tokg_queue_push(c, s->pushed + k, &item))
			s->leave = true;
	}
	tokg_sync(b);
	if (b->tid == 0)
		s->pushed += n;
	tokg_sync(b);
}

/*
 * A worker that checks such a slot does the rest itself: a text, which takes long to encode, or
 * rows of one job. A hint: the header may show something else when it is read again.
 */
TOKG_DEV bool
tokg_is_for_one(const tokg_consumer *c, const tokg_hdr *h)
{
	return tokg_is_text(h) || (!(h->flags & TOKG_BATCH) && h->tokens <= c->rows);
}

/*
 * Slots of a look. One alone that is several jobs, or any without workers, is checked here, which
 * saves it the way to a worker and back; several are checked by workers, at the same time.
 */
TOKG_DEV void
tokg_taken_process(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	const uint32_t n = s->n_right;

	if (c->workers > 0 && (n > 1 || (n == 1 && tokg_is_for_one(c, &s->taken[0].hdr)))) {
		tokg_taken_push(c, b, s, n);
		return;
	}
	for (uint32_t k = 0; k < n && !s->leave; k++) {
		tokg_taken *const t = &s->taken[k];

		if (tokg_slot_check(c, b, &s->hand, t))
			tokg_slot_hand_out(c, b, s, t, s->hand.walk.n, s->hand.walk.jobs);
		if (b->tid == 0 && (s->hand.leave || tokg_busy(c, &s->busy)))
			s->leave = true;
		tokg_sync(b);
	}
}

/* By one thread: waits for all jobs, within the limit. False: stopped, or not all have ended. */
TOKG_DEV bool
tokg_drain(const tokg_consumer *c, const tokg_scan *s)
{
	uint64_t i = s->pushed > TOKG_QUEUE ? s->pushed - TOKG_QUEUE : 0;

	while (c->workers > 0 && i < s->pushed && tokg_queue_wait(c, i))
		i++;
	return c->workers == 0 || i == s->pushed;
}

/* By one thread, after each scan; a GPU reads the word over its bus, so rarely. */
TOKG_DEV bool
tokg_owner_gone(const tokg_consumer *c, tokg_scan *s)
{
	const uint64_t now = tokg_now();
	uint64_t owner;

	if (now - s->looked < c->owner_limit_ns / 16)
		return false;
	s->looked = now;
	owner = tokg_ld(c->owner);
	if (owner != s->owner) {
		s->owner = owner;
		s->alive = now;
		tokg_own_st(&c->work->alive, now);
	}
	return now - s->alive > c->owner_limit_ns;
}

/*
 * By one thread: records the time of a scan that found nothing. `t` is not NULL.
 */
TOKG_DEV void
tokg_scan_timed(struct tokg_scan_times *t, uint64_t ticks, tokg_scan *s)
{
	const uint64_t n = s->timed++;

	if (n == 0 || n % TOKG_HEARTBEAT_EVERY == 0) {
		tokg_st(&t->tick[n > 0], tokg_ticks());
		tokg_st(&t->ns[n > 0], tokg_now());
	}
	tokg_st(&t->scan[n & (TOKG_SCAN_TIMES - 1)], ticks);
	tokg_st(&t->n, n + 1);
}

/* All threads, before the first look. */
TOKG_DEV void
tokg_scan_begin(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	b->shared = &s->hand.reduce;
	for (uint32_t p = b->tid; p < c->g.producers; p += b->n) {
		s->head[p] = s->passes[p] = 0;
		s->epoch[p] = tokg_epoch_now(c, p);
	}
	for (uint32_t i = b->tid; i < c->g.producers * c->g.slots; i += b->n)
		s->seen[i] = (uint32_t)(tokg_ld(tokg_done_in(c, c->back, i)) >> 8);
	if (b->tid == 0) {
		s->pushed = s->scans = s->timed = 0;
		if (c->scan_times != NULL)
			tokg_st(&c->scan_times->n, 0);
		s->owner = tokg_ld(c->owner);
		s->alive = s->looked = s->busy = tokg_now();
		s->n_taken = s->begin = s->drained = 0;
		s->n_found = 0;
		s->stop = TOKG_RUN;
		s->leave = s->hand.leave = false;
	}
	tokg_lanes_repair(c, b);
	tokg_sync(b);
}

/*
 * All threads: a look. Claims what is pending, s->n_right slots, in s->taken. Returns for how many
 * there was room, also those that others have claimed. A barrier must follow.
 */
TOKG_DEV uint32_t
tokg_scan_once(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	const uint64_t began = c->scan_times != NULL ? tokg_ticks() : 0;
	/* In flight with the tickets; looked at when what they show is processed. */
	const uint32_t stop = b->tid == 0 ? tokg_ld32(&tokg_ctl_of(c)->stop) : 0;
	uint32_t n;

	if (!c->heads || s->stop == TOKG_STOP_DRAIN || s->scans % TOKG_FULL_SCAN_EVERY == 0)
		tokg_scan_all(c, b, s);
	else
		tokg_scan_heads(c, b, s);
	tokg_sync(b);
	n = s->n_taken < TOKG_TAKEN ? s->n_taken : TOKG_TAKEN;
	if (b->tid == 0) {
		if (c->scan_times != NULL && n == 0)
			tokg_scan_timed(c->scan_times, tokg_ticks() - began, s);
		s->stop_next = stop;
		s->n_right = tokg_taken_list(c, s);
	}
	return n;
}

/*
 * All threads, when what a look has claimed is on its way. `n`: what tokg_scan_once returned. DRAIN
 * ends after a full scan that found nothing, or after as many slots as the ring has, as producers
 * may go on. `worked`: there was something to do.
 */
TOKG_DEV void
tokg_scan_end(const tokg_consumer *c, tokg_block *b, tokg_scan *s, uint32_t n, bool worked)
{
	tokg_sync(b);
	if (b->tid == 0) {
		const bool drain = s->stop == TOKG_STOP_DRAIN;

		s->drained += drain ? n : 0;
		s->n_taken = 0;
		if (n == TOKG_TAKEN)
			s->begin = (s->begin + c->g.slots) % (c->g.producers * c->g.slots);
		s->stop = s->stop_next;
		if (s->stop == TOKG_STOP_NOW || tokg_owner_gone(c, s))
			s->leave = true;
		if (drain && (n == 0 || s->drained >= c->g.producers * c->g.slots))
			s->leave = true;
		if (tokg_busy(c, &s->busy))
			s->leave = true;
		if (s->scans++ % TOKG_HEARTBEAT_EVERY == 0)
			tokg_st(&tokg_ctl_of(c)->heartbeat, s->scans);
		tokg_idle(b, worked);
	}
	tokg_sync(b);
}

/* The scanning block: runs until a stop, or until its owner is gone. */
TOKG_DEV void
tokg_scanner(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	tokg_scan_begin(c, b, s);
	do {
		const uint32_t n = tokg_scan_once(c, b, s);
		const uint32_t found = tokg_found_hand_out(c, b, s); /* a barrier is in it */

		tokg_taken_process(c, b, s);
		tokg_scan_end(c, b, s, n, n + found > 0);
	} while (!s->leave);
	tokg_sync(b); /* all have read `leave`, which is written again */
	/* Slots that workers have may still come back. */
	do {
		if (b->tid == 0)
			s->leave = !tokg_drain(c, s);
		tokg_sync(b);
	} while (tokg_found_hand_out(c, b, s) > 0);
	if (b->tid == 0)
		tokg_own_st_release(&c->work->quit, 1);
}
