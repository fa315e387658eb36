/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer: one source for the persistent kernel and for CPU threads. A scanning block (CPU:
 * one thread) polls the tickets, claims slots, validates them, and passes their rows to the workers
 * (work.cuh).
 *
 * Nothing from a producer is trusted: a header is copied once, and the copy is validated; so are
 * the record headers of a BATCH; ids are checked against the table as they are read (embed.cuh).
 */
#pragma once

#include "ring/gpu_check.h"
#include "handshake/handshake.h"
#include "work.cuh"

#define TOKG_TAKEN 64		 /* the most slots claimed in one scan */
#define TOKG_WINDOW 16384	 /* bytes of a BATCH processed at a time */
#define TOKG_CHECK_TRIES 16	 /* for a correct check word */
#define TOKG_CHECK_WAIT_NS 500	 /* between tries */
#define TOKG_FULL_SCAN_EVERY 64	 /* with heads: scans per scan of all slots */
#define TOKG_HEARTBEAT_EVERY 256 /* scans */
#define TOKG_LOOK_AHEAD 8	 /* loads of tickets in flight per thread */
#define TOKG_ENTRY_FLAGS (TOKG_FIRST | TOKG_LAST | TOKG_BATCH | TOKG_ABORT)

struct tokg_taken {
	struct tokg_hdr hdr;
	uint64_t ticket, done_was, visible;
	uint32_t slot, epoch; /* back.epoch as it was then */
	uint8_t redo;
#ifdef TOKG_STAGES
	uint64_t checked;
#endif
};

/* Position in the records of a BATCH. */
struct tokg_walk {
	uint64_t out;
	uint32_t off, n, tokens, jobs;
	bool bad;
};

/* Shared by the scanner's threads. */
struct tokg_scan {
	struct tokg_reduce reduce;
	uint64_t pushed; /* jobs, in this incarnation's life */
	uint64_t scans;
	uint64_t timed;		       /* scans, where they are timed */
	uint64_t owner, alive, looked; /* its word, when it changed, when it was looked at */
	uint64_t busy;		       /* tokg_busy */
	uint32_t n_taken, stop;
	uint32_t begin; /* of a look at all slots: the first one of a producer */
	bool leave;
	struct tokg_walk walk;
	uint32_t head[TOKG_PRODUCERS_MAX], epoch[TOKG_PRODUCERS_MAX];
	struct tokg_taken taken[TOKG_TAKEN];
	alignas(16) uint64_t window[TOKG_WINDOW / 8];
};

TOKG_DEV void
tokg_hdr_copy(const tokg_consumer *c, uint32_t slot, struct tokg_hdr *to)
{
	const uint64_t *const from = tokg_word(c, c->g.hdr_off + sizeof(*to) * (uint64_t)slot);
	uint64_t words[sizeof(*to) / 8];

	for (uint32_t i = 0; i < sizeof(*to) / 8; i++)
		words[i] = tokg_read(from + i);
	memcpy(to, words, sizeof(*to));
}

TOKG_DEV uint32_t
tokg_epoch_now(const tokg_consumer *c, uint32_t producer)
{
	return tokg_ld32_acquire((const uint32_t *)(c->region + tokg_back_at(&c->g, producer) +
						    offsetof(struct tokg_back, epoch)));
}

/*
 * By one thread. The ticket is new: claims the slot if it is pending, or if an older incarnation
 * claimed it and did not finish.
 */
TOKG_DEV void
tokg_take(const tokg_consumer *c, tokg_scan *s, uint32_t slot, uint64_t ticket)
{
	const uint32_t p = slot / c->g.slots, i = slot % c->g.slots;
	uint64_t *const at = tokg_word(c, tokg_claim_at(&c->g, p, i));
	const uint64_t done = tokg_ld_acquire(tokg_word(c, tokg_done_at(&c->g, p, i)));
	const uint64_t claim = tokg_ld(at);
	const bool again = (claim & TOKG_TICKET_MAX) == ticket;
	struct tokg_taken *t;
	uint32_t k;

	if (done >> 8 == ticket)
		c->seen[slot] = ticket;
	if (done >> 8 != ticket - 1 || ticket > TOKG_TICKET_MAX)
		return;
	if (again && claim >> 48 >= c->incarnation)
		return;
	if (tokg_ld_acquire(tokg_word(
		    c, tokg_hdr_at(&c->g, p, i) + offsetof(struct tokg_hdr, ticket))) != ticket)
		return;
	/* First reserve an entry of the list: a claimed slot must be processed. */
	k = tokg_count(&s->n_taken);
	if (k >= TOKG_TAKEN)
		return;
	t = &s->taken[k];
	t->ticket = 0;
	if (!tokg_cas(at, claim, TOKG_CLAIM(c->incarnation, ticket)))
		return;
	c->seen[slot] = ticket;
	t->ticket = ticket;
	t->done_was = done;
	t->visible = tokg_now();
	t->slot = slot;
	t->epoch = tokg_epoch_now(c, p);
	t->redo = again;
	tokg_hdr_copy(c, slot, &t->hdr);
}

TOKG_DEV const uint64_t *
tokg_ticket_word(const tokg_consumer *c, uint32_t slot)
{
	return tokg_word(c, c->g.hdr_off + sizeof(struct tokg_hdr) * (uint64_t)slot +
				    offsetof(struct tokg_hdr, ticket));
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
		uint64_t ticket[TOKG_LOOK_AHEAD], seen[TOKG_LOOK_AHEAD];

		for (uint32_t k = 0; k < TOKG_LOOK_AHEAD; k++) {
			const uint32_t at = i + k * b->n;
			const uint32_t slot = tokg_slot_from(s->begin, at, n);

			ticket[k] = at < n ? tokg_ld(tokg_ticket_word(c, slot)) : 0;
			seen[k] = at < n ? c->seen[slot] : 0;
		}
		for (uint32_t k = 0; k < TOKG_LOOK_AHEAD; k++)
			if (ticket[k] != 0 && ticket[k] != seen[k])
				tokg_take(
					c, s, tokg_slot_from(s->begin, i + k * b->n, n), ticket[k]);
	}
}

/*
 * Scans the next slot of each producer. It is known from the last claimed slot, and from a new
 * epoch, which begins at slot 0; after a restart the next full scan finds it.
 */
TOKG_DEV void
tokg_scan_heads(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	for (uint32_t p = b->tid; p < c->g.producers; p += b->n) {
		const uint32_t epoch = tokg_epoch_now(c, p);
		uint32_t slot;
		uint64_t ticket;

		if (epoch != s->epoch[p]) {
			s->epoch[p] = epoch;
			s->head[p] = 0;
		}
		slot = p * c->g.slots + s->head[p];
		ticket = tokg_ld(tokg_ticket_word(c, slot));
		if (ticket != 0 && ticket != c->seen[slot])
			tokg_take(c, s, slot, ticket);
	}
}

/* Verifies the check word of header and payload as they are visible now. */
TOKG_DEV bool
tokg_check_fits(const tokg_consumer *c, tokg_block *b, const tokg_taken *t)
{
	const uint8_t *const payload =
		c->region + c->g.payload_off + (uint64_t)c->g.slot_bytes * t->slot;
	const uint32_t n = (uint32_t)(tokg_align(t->hdr.bytes, TOKG_LINE) / 16);
	uint32_t words[sizeof(t->hdr) / 4];
	uint64_t sum = 0;

	memcpy(words, &t->hdr, sizeof(words));
	words[offsetof(struct tokg_hdr, check) / 4] = 0;
	for (uint32_t i = 0; i < TOKG_CHECK_HDR_PAIRS; i++)
		if (i % b->n == b->tid)
			sum += tokg_check_pair(i, words[2 * i], words[2 * i + 1]);
	for (uint32_t i = b->tid; i < n; i += b->n) {
		const tokg_vec16 v = tokg_ld_vec16(payload + 16ull * i);
		const uint32_t pair = TOKG_CHECK_HDR_PAIRS + 2 * i;

		sum += tokg_check_pair(pair, v.w[0], v.w[1]) +
		       tokg_check_pair(pair + 1, v.w[2], v.w[3]);
	}
	return tokg_check_fold(tokg_sum(b, sum)) == t->hdr.check;
}

/* Validates that header and payload of this ticket are visible. TOKG_OK or another status; 0:
 * leave. */
TOKG_DEV uint32_t
tokg_slot_whole(const tokg_consumer *c, tokg_block *b, tokg_scan *s, tokg_taken *t)
{
	const bool checked = (c->g.flags & TOKG_CHECKED) != 0;

	for (uint32_t tries = 1;; tries++) {
		const bool fits = t->hdr.bytes <= c->g.slot_bytes && t->hdr.ticket == t->ticket;

		if (fits && (!checked || tokg_check_fits(c, b, t)))
			return TOKG_OK;
		if (!checked || tries == TOKG_CHECK_TRIES)
			return fits ? TOKG_BADSUM : TOKG_BADHDR;
		tokg_sync(b);
		if (b->tid == 0) {
			const uint64_t since = tokg_now();

			while (tokg_now() - since < TOKG_CHECK_WAIT_NS)
				tokg_pause();
			tokg_hdr_copy(c, t->slot, &t->hdr);
			s->leave = tokg_stop_now(c);
		}
		tokg_sync(b);
		if (s->leave)
			return 0;
	}
}

TOKG_DEV uint32_t
tokg_rows_of_job(const tokg_consumer *c, uint32_t tokens)
{
	const uint32_t least = (tokens + TOKG_JOBS_MAX - 1) / TOKG_JOBS_MAX;

	return least > c->rows ? least : c->rows;
}

TOKG_DEV uint32_t
tokg_jobs_of(const tokg_consumer *c, uint32_t tokens)
{
	const uint32_t rows = tokg_rows_of_job(c, tokens);

	return tokens > 0 ? (tokens + rows - 1) / rows : 1;
}

/* By one thread: adds a request of the slot. */
TOKG_DEV void
tokg_walk_add(const tokg_consumer *c, tokg_walk *w, struct tokg_part part)
{
	part.out = w->out;
	part.job0 = w->jobs;
	c->parts[w->n++] = part;
	w->out += tokg_out_bytes(part.tokens, c->g.row_bytes);
	w->tokens += part.tokens;
	w->jobs += tokg_jobs_of(c, part.tokens);
}

/* By one thread: records from w->off on with headers in the window [from, to). */
TOKG_DEV void
tokg_walk_window(const tokg_consumer *c, tokg_scan *s, uint32_t from, uint32_t to, uint32_t bytes)
{
	struct tokg_walk *const w = &s->walk;

	while (w->off < to && !w->bad) {
		struct tokd_rec r;

		memcpy(&r, (const uint8_t *)s->window + (w->off - from), sizeof(r));
		w->bad = r.bytes < sizeof(r) || r.bytes % TOKD_RING_ALIGN != 0 ||
			 r.bytes > bytes - w->off;
		if (!w->bad && r.kind == TOKD_REC_TOKENS) {
			const bool abort = (r.flags & TOKD_REC_ABORT) != 0;

			w->bad = r.count > (r.bytes - sizeof(r)) / 4 || (abort && r.count > 0);
			if (!w->bad) {
				struct tokg_part part = {};

				part.request = r.serial;
				part.ids = w->off + (uint32_t)sizeof(r);
				part.first = r.first;
				part.position0 = r.first;
				part.tokens = r.count;
				part.flags = TOKG_BATCH |
					     (r.flags & (TOKD_REC_FIRST | TOKD_REC_LAST)) |
					     (abort ? TOKG_ABORT : 0);
				tokg_walk_add(c, w, part);
			}
		} else if (r.kind != TOKD_REC_PAD && r.kind != TOKD_REC_TEXT) {
			w->bad = true;
		}
		w->off += r.bytes;
	}
}
static_assert((int)TOKD_REC_FIRST == TOKG_FIRST && (int)TOKD_REC_LAST == TOKG_LAST,
	"flags must be equal");

/* The records of a BATCH. `bytes` is a multiple of a record's alignment and at most a slot's. */
TOKG_DEV void
tokg_walk_batch(
	const tokg_consumer *c, tokg_block *b, tokg_scan *s, const uint8_t *payload, uint32_t bytes)
{
	while (s->walk.off < bytes && !s->walk.bad) {
		const uint32_t from = s->walk.off;
		const uint32_t to = bytes - from < TOKG_WINDOW ? bytes : from + TOKG_WINDOW;

		for (uint32_t i = b->tid; i < (to - from) / 16; i += b->n)
			((tokg_vec16 *)s->window)[i] = tokg_ld_vec16(payload + from + 16ull * i);
		tokg_sync(b);
		if (b->tid == 0)
			tokg_walk_window(c, s, from, to, bytes);
		tokg_sync(b);
	}
}

/* Validates the header, and lists the slot's requests. TOKG_OK or another status. */
TOKG_DEV uint32_t
tokg_slot_parts(const tokg_consumer *c, tokg_block *b, tokg_scan *s, const tokg_taken *t)
{
	const struct tokg_hdr *const h = &t->hdr;
	const uint64_t room = c->g.out_bytes - (h->out_off & (c->g.out_bytes - 1));

	if (h->epoch == 0 || h->epoch != t->epoch)
		return TOKG_STALE;
	if (h->kind != c->g.kind || h->vocab >= TOKG_VOCABS_MAX ||
		h->out_off % TOKG_OUT_ALIGN != 0 ||
		(h->flags & ~(uint32_t)(TOKG_ENTRY_FLAGS | TOKG_STRICT)) != 0)
		return TOKG_BADHDR;
	if (h->bytes % ((h->flags & TOKG_BATCH) ? TOKD_RING_ALIGN : 4) != 0)
		return TOKG_BADHDR;
	if (b->tid == 0) {
		struct tokg_part whole = {};

		s->walk = {};
		if (!(h->flags & TOKG_BATCH)) {
			whole.request = h->request;
			whole.first = h->first;
			whole.position0 = h->position0;
			whole.tokens = h->bytes / 4;
			whole.flags = h->flags & TOKG_ENTRY_FLAGS;
			tokg_walk_add(c, &s->walk, whole);
			s->walk.bad = (h->flags & TOKG_ABORT) && h->bytes > 0;
		}
	}
	tokg_sync(b);
	if (h->flags & TOKG_BATCH)
		tokg_walk_batch(c, b, s,
			c->region + c->g.payload_off + (uint64_t)c->g.slot_bytes * t->slot,
			h->bytes);
	if (s->walk.bad || s->walk.n == 0 || s->walk.tokens != h->tokens || s->walk.out > room)
		return TOKG_BADHDR;
	return TOKG_OK;
}

TOKG_DEV tokg_job
tokg_job_of_slot(const tokg_taken *t)
{
	tokg_job j = {};

	j.ticket = t->ticket;
	j.done_was = t->done_was;
	j.request = t->hdr.request;
	j.out_off = t->hdr.out_off;
	j.t_post = t->hdr.t_post;
	j.visible = t->visible;
	j.slot = t->slot;
	j.epoch = t->hdr.epoch;
	j.flags = t->hdr.flags & TOKG_ENTRY_FLAGS;
	j.redo = t->redo;
	j.parts = 1;
	return j;
}

/* Job number k of the slot. */
TOKG_DEV tokg_job
tokg_job_make(const tokg_consumer *c, const tokg_scan *s, const tokg_taken *t, uint32_t k)
{
	tokg_job j = tokg_job_of_slot(t);
	uint32_t part = 0, end = s->walk.n;

	while (end - part > 1) {
		const uint32_t middle = part + (end - part) / 2;

		if (c->parts[middle].job0 <= k)
			part = middle;
		else
			end = middle;
	}
	const struct tokg_part p = c->parts[part];
	const uint32_t rows = tokg_rows_of_job(c, p.tokens);

	j.ids = c->g.payload_off + (uint64_t)c->g.slot_bytes * t->slot + p.ids;
	j.out_off += p.out;
	j.out = (t->slot / c->g.slots) * c->g.out_bytes + (j.out_off & (c->g.out_bytes - 1));
	j.job0 = s->pushed + p.job0;
	j.request = p.request;
	j.first = p.first;
	j.position0 = p.position0;
	j.tokens = p.tokens;
	j.row0 = (k - p.job0) * rows;
	j.rows = p.tokens - j.row0 < rows ? p.tokens - j.row0 : rows;
	j.jobs = tokg_jobs_of(c, p.tokens);
	j.part = (uint16_t)part;
	j.parts = (uint16_t)s->walk.n;
	j.flags = p.flags;
#ifdef TOKG_STAGES
	j.checked = t->checked;
	TOKG_STAMP(j.handed);
#endif
	return j;
}

TOKG_DEV void
tokg_slot_hand_out(const tokg_consumer *c, tokg_block *b, tokg_scan *s, const tokg_taken *t)
{
	const uint32_t n = s->walk.jobs;

	for (uint32_t k = b->tid; k < n; k += b->n) {
		tokg_job j = tokg_job_make(c, s, t, k);

#ifndef __CUDA_ARCH__ /* a GPU always has workers; its threads cannot synchronize here */
		if (c->workers == 0) {
			TOKG_STAMP(j.begun);
			tokg_job_run(c, b, &j, s->pushed + k);
			s->leave = tokg_busy(c, &s->busy);
			if (s->leave)
				break;
			continue;
		}
#endif
		if (!tokg_queue_push(c, s->pushed + k, &j)) {
			s->leave = true;
			break;
		}
	}
	tokg_sync(b);
	if (b->tid == 0)
		s->pushed += n;
	tokg_sync(b);
}

TOKG_DEV void
tokg_slot_process(const tokg_consumer *c, tokg_block *b, tokg_scan *s, tokg_taken *t)
{
	uint32_t status;

	/* By one thread: a scan may have several slots of a producer. */
	if (b->tid == 0)
		s->head[t->slot / c->g.slots] = (t->slot + 1) % c->g.slots;
	status = tokg_slot_whole(c, b, s, t);
	if (b->tid == 0)
		TOKG_STAMP(t->checked);
	if (status == TOKG_OK)
		status = tokg_slot_parts(c, b, s, t);
	if (status == TOKG_OK) {
		tokg_slot_hand_out(c, b, s, t);
	} else if (status != 0 && b->tid == 0) {
		const tokg_job j = tokg_job_of_slot(t);
		const uint64_t now = tokg_now();

		tokg_entry_write(c, &j, (uint8_t)status, now);
		tokg_slot_end(c, &j, status, now);
	}
	tokg_sync(b);
	if (b->tid == 0 && tokg_busy(c, &s->busy))
		s->leave = true;
	tokg_sync(b);
}

/* By one thread: waits for all jobs, within the limit. */
TOKG_DEV void
tokg_drain(const tokg_consumer *c, const tokg_scan *s)
{
	uint64_t i = s->pushed > TOKG_QUEUE ? s->pushed - TOKG_QUEUE : 0;

	while (c->workers > 0 && i < s->pushed && tokg_queue_wait(c, i))
		i++;
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
		tokg_st(&c->work->alive, now);
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

/*
 * The scanning block: runs until a stop, or until its owner is gone. DRAIN ends after a full scan
 * that found nothing, or after as many slots as the ring has, as producers may go on.
 */
TOKG_DEV void
tokg_scanner(const tokg_consumer *c, tokg_block *b, tokg_scan *s)
{
	uint32_t drained = 0;

	b->shared = &s->reduce;
	for (uint32_t p = b->tid; p < c->g.producers; p += b->n) {
		s->head[p] = 0;
		s->epoch[p] = tokg_epoch_now(c, p);
	}
	if (b->tid == 0) {
		s->pushed = s->scans = s->timed = 0;
		if (c->scan_times != NULL)
			tokg_st(&c->scan_times->n, 0);
		s->owner = tokg_ld(c->owner);
		s->alive = s->looked = s->busy = tokg_now();
		s->n_taken = s->begin = 0;
		s->stop = TOKG_RUN;
		s->leave = false;
	}
	tokg_sync(b);
	for (;;) {
		const bool drain = s->stop == TOKG_STOP_DRAIN;
		const uint64_t began = c->scan_times != NULL ? tokg_ticks() : 0;
		uint32_t n;

		if (!c->heads || drain || s->scans % TOKG_FULL_SCAN_EVERY == 0)
			tokg_scan_all(c, b, s);
		else
			tokg_scan_heads(c, b, s);
		tokg_sync(b);
		n = s->n_taken < TOKG_TAKEN ? s->n_taken : TOKG_TAKEN;
		if (c->scan_times != NULL && b->tid == 0 && n == 0)
			tokg_scan_timed(c->scan_times, tokg_ticks() - began, s);
		for (uint32_t k = 0; k < n && !s->leave; k++)
			if (s->taken[k].ticket != 0)
				tokg_slot_process(c, b, s, &s->taken[k]);
		drained += drain ? n : 0;
		tokg_sync(b);
		if (b->tid == 0) {
			s->n_taken = 0;
			if (n == TOKG_TAKEN)
				s->begin = (s->begin + c->g.slots) % (c->g.producers * c->g.slots);
			s->stop = tokg_ld32_acquire(&tokg_ctl_of(c)->stop);
			if (s->stop == TOKG_STOP_NOW || tokg_owner_gone(c, s))
				s->leave = true;
			if (drain && (n == 0 || drained >= c->g.producers * c->g.slots))
				s->leave = true;
			if (s->scans++ % TOKG_HEARTBEAT_EVERY == 0)
				tokg_st(&tokg_ctl_of(c)->heartbeat, s->scans);
			tokg_idle(b, n > 0);
		}
		tokg_sync(b);
		if (s->leave)
			break;
	}
	if (b->tid == 0) {
		tokg_drain(c, s);
		tokg_st_release(&c->work->quit, 1);
	}
}
