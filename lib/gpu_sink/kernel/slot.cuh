/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done with a claimed slot by the block that has it, a worker or the scanner: copy, check,
 * validate, list its records; then its rows, if they are one job.
 */
#pragma once

#include "ring/gpu_check.h"
#include "handshake/handshake.h"
#include "work.cuh"

#define TOKG_WINDOW 256	       /* places of a BATCH looked at together, TOKD_RING_ALIGN apart */
#define TOKG_CHECK_TRIES 16    /* for a correct check word */
#define TOKG_CHECK_WAIT_NS 500 /* between tries */
#define TOKG_COPY_AHEAD 4      /* loads of 16 bytes of a payload in flight: 16 KB of a block */
#define TOKG_ENTRY_FLAGS                                                                           \
	(TOKG_FIRST | TOKG_LAST | TOKG_BATCH | TOKG_ABORT | TOKG_TEXT | TOKG_GENERATE)

/* The requests of a slot so far; of a BATCH also the offset of the next record. */
struct tokg_walk {
	uint64_t out;
	uint32_t off, n, tokens, jobs;
	bool bad;
};

/* Shared by the threads of a block with a job. */
struct tokg_hand {
	struct tokg_reduce reduce;
	union tokg_work_item item;
	uint64_t index;
	bool leave;
	struct tokg_walk walk;
	/* Of the places in a window: where a record there would lead to, and is there one? */
	uint32_t leap[2][TOKG_WINDOW];
	bool is_record[TOKG_WINDOW];
};

TOKG_DEV tokg_hdr
tokg_hdr_copy(const tokg_consumer *c, uint32_t slot)
{
	const uint8_t *const from = c->region + c->g.hdr_off + sizeof(tokg_hdr) * (uint64_t)slot;
	tokg_vec16 v[sizeof(tokg_hdr) / 16];
	tokg_hdr h;

	for (uint32_t i = 0; i < sizeof(h) / 16; i++)
		v[i] = tokg_read_vec16(from + 16 * i);
	memcpy(&h, v, sizeof(h));
	return h;
}

/* The header's part of the check word that this thread sums. */
TOKG_DEV uint64_t
tokg_check_of_hdr(const tokg_block *b, const struct tokg_hdr *h)
{
	uint32_t words[sizeof(*h) / 4];
	uint64_t sum = 0;

	memcpy(words, h, sizeof(words));
	words[offsetof(struct tokg_hdr, check) / 4] = 0;
	for (uint32_t i = 0; i < TOKG_CHECK_HDR_PAIRS; i++)
		if (i % b->n == b->tid)
			sum += tokg_check_pair(i, words[2 * i], words[2 * i + 1]);
	return sum;
}

/*
 * Copies the payload, as it is visible now, and compares header and copy with the check word.
 * h->bytes is at most a slot's.
 */
TOKG_DEV bool
tokg_slot_copy(const tokg_consumer *c, tokg_block *b, uint32_t slot, const struct tokg_hdr *h)
{
	const uint8_t *const from = c->region + c->g.payload_off + (uint64_t)c->g.slot_bytes * slot;
	uint8_t *const to = tokg_copy_of(c, slot);
	const uint32_t n = (uint32_t)(tokg_align(h->bytes, TOKG_LINE) / 16);
	uint64_t sum = tokg_check_of_hdr(b, h);

	for (uint32_t i = b->tid; i < n; i += TOKG_COPY_AHEAD * b->n) {
		tokg_vec16 v[TOKG_COPY_AHEAD] = {};

		for (uint32_t k = 0; k < TOKG_COPY_AHEAD; k++)
			if (i + k * b->n < n)
				v[k] = tokg_ld_vec16(from + 16ull * (i + k * b->n));
		for (uint32_t k = 0; k < TOKG_COPY_AHEAD && i + k * b->n < n; k++) {
			const uint32_t pair = TOKG_CHECK_HDR_PAIRS + 2 * (i + k * b->n);

			sum += tokg_check_pair(pair, v[k].w[0], v[k].w[1]) +
			       tokg_check_pair(pair + 1, v[k].w[2], v[k].w[3]);
			tokg_vec_store(to, i + k * b->n, v[k]);
		}
	}
	/* Its barriers are also between the copy and who reads it. */
	sum = tokg_sum(b, sum);
	return !(c->g.flags & TOKG_CHECKED) || tokg_check_fold(sum) == h->check;
}

/* Validates that header and payload of this ticket are visible. TOKG_OK or another status; 0:
 * leave. */
TOKG_DEV uint32_t
tokg_slot_whole(const tokg_consumer *c, tokg_block *b, tokg_hand *h, tokg_taken *t)
{
	const bool checked = (c->g.flags & TOKG_CHECKED) != 0;

	for (uint32_t tries = 1;; tries++) {
		const bool fits = t->hdr.bytes <= c->g.slot_bytes && t->hdr.ticket == t->ticket;

		if (fits && tokg_slot_copy(c, b, t->slot, &t->hdr))
			return TOKG_OK;
		if (!checked || tries == TOKG_CHECK_TRIES)
			return fits ? TOKG_BADSUM : TOKG_BADHDR;
		tokg_sync(b);
		if (b->tid == 0) {
			const uint64_t since = tokg_now();

			while (tokg_now() - since < TOKG_CHECK_WAIT_NS)
				tokg_pause();
			t->hdr = tokg_hdr_copy(c, t->slot);
			h->leave = tokg_stop_now(c);
		}
		tokg_sync(b);
		if (h->leave)
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

TOKG_DEV struct tokg_part *
tokg_parts_of(const tokg_consumer *c, uint32_t slot)
{
	return c->parts + (uint64_t)(c->g.slot_bytes / TOKD_RING_ALIGN) * slot;
}

/* By one thread: adds a request of the slot. */
TOKG_DEV void
tokg_walk_add(const tokg_consumer *c, tokg_walk *w, struct tokg_part *parts, struct tokg_part part)
{
	part.out = w->out;
	part.job0 = w->jobs;
	parts[w->n++] = part;
	w->out += tokg_out_bytes(part.tokens, c->g.row_bytes);
	w->tokens += part.tokens;
	w->jobs += tokg_jobs_of(c, part.tokens);
}

/*
 * The records of a BATCH. Each says where the next one is, so a thread alone would wait for one
 * load after the other. Instead each place of a window is looked at as if a record were there, at
 * the same time. Those that are records are found by leaps of one record, two, four, ... from the
 * first. What stands at other places leads nowhere that is used, and a record whose length is wrong
 * leads to some place or none: that it is wrong is found when it is looked at.
 *
 * All threads: is_record[] of the n places from `at` on, the first of which is a record.
 */
TOKG_DEV void
tokg_records_find(tokg_block *b, tokg_hand *h, const uint8_t *at, uint32_t n)
{
	uint32_t *leap = h->leap[0], *further = h->leap[1];

	for (uint32_t u = b->tid; u < n; u += b->n) {
		leap[u] = u + *(const uint32_t *)(at + TOKD_RING_ALIGN * u) / TOKD_RING_ALIGN;
		h->is_record[u] = u == 0;
	}
	tokg_sync(b);
	/* One thread goes upwards, and finds all in the first round. */
	for (uint32_t reach = 1; reach < n && (reach == 1 || b->n > 1); reach *= 2) {
		uint32_t *const was = leap;

		for (uint32_t u = b->tid; u < n; u += b->n) {
			const uint32_t to = leap[u];

			if (h->is_record[u] && to < n)
				h->is_record[to] = true;
			further[u] = to < n ? leap[to] : to;
		}
		tokg_sync(b);
		leap = further;
		further = was;
	}
}

enum tokg_place { TOKG_PLACE_NONE, TOKG_PLACE_BAD, TOKG_PLACE_SKIPPED, TOKG_PLACE_REQUEST };

TOKG_DEV bool
tokg_record_fits(uint32_t bytes, uint32_t left)
{
	return bytes >= sizeof(struct tokd_rec) && bytes % TOKD_RING_ALIGN == 0 && bytes <= left;
}

/* What the record is that begins `left` bytes before the payload's end. */
TOKG_DEV enum tokg_place
tokg_place_of(const struct tokd_rec *r, uint32_t left)
{
	if (!tokg_record_fits(r->bytes, left))
		return TOKG_PLACE_BAD;
	if (r->kind == TOKD_REC_PAD || r->kind == TOKD_REC_TEXT)
		return TOKG_PLACE_SKIPPED;
	if (r->kind != TOKD_REC_TOKENS || r->count > (r->bytes - sizeof(*r)) / 4 ||
		((r->flags & TOKD_REC_ABORT) && r->count > 0))
		return TOKG_PLACE_BAD;
	return TOKG_PLACE_REQUEST;
}
static_assert((int)TOKD_REC_FIRST == TOKG_FIRST && (int)TOKD_REC_LAST == TOKG_LAST,
	"flags must be equal");

TOKG_DEV tokd_rec
tokg_record_load(const uint8_t *at)
{
	tokg_vec16 v[sizeof(tokd_rec) / 16];
	tokd_rec r;

	for (uint32_t i = 0; i < sizeof(r) / 16; i++)
		v[i] = tokg_vec_load(at, i);
	memcpy(&r, v, sizeof(r));
	return r;
}

TOKG_DEV tokg_part
tokg_part_of(const struct tokd_rec *r, uint32_t off)
{
	tokg_part part = {};

	part.request = r->serial;
	part.ids = off + (uint32_t)sizeof(*r);
	part.first = part.position0 = r->first;
	part.tokens = r->count;
	part.flags = TOKG_BATCH | (r->flags & (TOKD_REC_FIRST | TOKD_REC_LAST)) |
		     (r->flags & TOKD_REC_ABORT ? TOKG_ABORT : 0);
	return part;
}

#define TOKG_WALK_JOBS 20 /* bits, below the number of requests */
static_assert((uint64_t)TOKG_BLOCK * TOKG_JOBS_MAX < 1u << TOKG_WALK_JOBS, "a block's jobs fit");
#define TOKG_WALK_BITS 24 /* of tokens, and of places: records that fit have not more */
static_assert(TOKG_SLOT_BYTES_MAX / 4 < 1u << TOKG_WALK_BITS, "a slot's tokens fit");

/*
 * All threads, each a place: lists the requests of the places from `first` on, of the n places of
 * the window at w->off. Each thread has the same walk after it. w->off goes on by the last record.
 */
TOKG_DEV void
tokg_walk_places(const tokg_consumer *c, tokg_block *b, const tokg_hand *h, uint32_t slot,
	uint32_t window, uint32_t first, uint32_t n, uint32_t bytes, tokg_walk *w)
{
	const uint32_t place = first + b->tid, off = window + TOKD_RING_ALIGN * place;
	enum tokg_place what = TOKG_PLACE_NONE;
	uint32_t all, all_pages, jobs = 0, pages = 0, leads = 0;
	uint64_t sum;
	tokd_rec r = {};

	if (place < n && h->is_record[place]) {
		r = tokg_record_load(tokg_copy_of(c, slot) + off);
		what = tokg_place_of(&r, bytes - off);
	}
	const bool asks = what == TOKG_PLACE_REQUEST;

	if (asks) {
		jobs = tokg_jobs_of(c, r.count);
		pages = (uint32_t)(tokg_out_bytes(r.count, c->g.row_bytes) / TOKG_OUT_ALIGN);
	}
	if (what >= TOKG_PLACE_SKIPPED && place + r.bytes / TOKD_RING_ALIGN >= n)
		leads = place + r.bytes / TOKD_RING_ALIGN;
	const uint32_t before = tokg_prefix(b, (uint32_t)asks << TOKG_WALK_JOBS | jobs, &all);
	const uint32_t pages_before = tokg_prefix(b, pages, &all_pages);

	sum = tokg_sum(b, (asks ? r.count : 0) | (uint64_t)leads << TOKG_WALK_BITS |
				  (uint64_t)(what == TOKG_PLACE_BAD) << 2 * TOKG_WALK_BITS);
	if (asks) {
		tokg_part part = tokg_part_of(&r, off);

		part.out = w->out + (uint64_t)pages_before * TOKG_OUT_ALIGN;
		part.job0 = w->jobs + (before & ((1u << TOKG_WALK_JOBS) - 1));
		tokg_parts_of(c, slot)[w->n + (before >> TOKG_WALK_JOBS)] = part;
	}
	w->n += all >> TOKG_WALK_JOBS;
	w->jobs += all & ((1u << TOKG_WALK_JOBS) - 1);
	w->out += (uint64_t)all_pages * TOKG_OUT_ALIGN;
	w->tokens += sum & ((1u << TOKG_WALK_BITS) - 1);
	w->off += TOKD_RING_ALIGN * (sum >> TOKG_WALK_BITS & ((1u << TOKG_WALK_BITS) - 1));
	w->bad |= sum >> 2 * TOKG_WALK_BITS > 0;
}

/* `bytes` is a multiple of a record's alignment and at most a slot's. */
TOKG_DEV void
tokg_walk_batch(const tokg_consumer *c, tokg_block *b, tokg_hand *h, uint32_t slot, uint32_t bytes)
{
	tokg_walk w = {};

	while (w.off < bytes && !w.bad) {
		const uint32_t window = w.off, left = bytes - window;
		const uint32_t n =
			left / TOKD_RING_ALIGN < TOKG_WINDOW ? left / TOKD_RING_ALIGN : TOKG_WINDOW;

		tokg_records_find(b, h, tokg_copy_of(c, slot) + window, n);
		for (uint32_t first = 0; first < n; first += b->n)
			tokg_walk_places(c, b, h, slot, window, first, n, bytes, &w);
	}
	if (b->tid == 0)
		h->walk = w;
}

TOKG_DEV bool
tokg_is_text(const struct tokg_hdr *h)
{
	return (h->flags & TOKG_TEXT) != 0;
}

/* The ids of a slot's text, which only the consumer writes. */
TOKG_DEV uint64_t
tokg_text_ids_of(const tokg_consumer *c, uint32_t slot)
{
	return c->text_ids + tokg_text_ids_bytes(&c->g) * slot;
}

/* Encodes the copy of a TEXT slot, whose one request it lists. TOKG_OK or another status. */
TOKG_DEV uint32_t
tokg_slot_encode(
	const tokg_consumer *c, tokg_block *b, tokg_hand *hand, const tokg_taken *t, uint64_t room)
{
	const struct tokg_hdr *const h = &t->hdr;
	const uint32_t whole = TOKG_FIRST | TOKG_LAST;
	struct tokg_text text;
	enum tokg_text_status status;
	uint32_t n = 0;

	if (!b->encodes || c->text_view == NULL || h->vocab != 0 || h->tokens != 0 ||
		(h->flags & ~(uint32_t)TOKG_STRICT) != (whole | TOKG_TEXT) ||
		tokg_out_bytes(h->bytes, c->g.row_bytes) > room)
		return TOKG_BADHDR;
	text.bytes = tokg_copy_of(c, t->slot);
	text.n = text.room = h->bytes;
	text.ids = (uint32_t *)(c->copies + tokg_text_ids_of(c, t->slot));
	text.scratch = c->text_scratch +
		       c->text_scratch_bytes * (c->text_by_slot ? t->slot : tokg_block_index(b));
	status = tokg_encode(b, c->text_view, &text, &n);
	if (b->tid == 0 && status == TOKG_TEXT_OK) {
		struct tokg_part part = {};

		part.request = h->request;
		part.first = h->first;
		part.position0 = h->position0;
		part.tokens = n;
		part.flags = h->flags & TOKG_ENTRY_FLAGS;
		hand->walk = {};
		tokg_walk_add(c, &hand->walk, tokg_parts_of(c, t->slot), part);
	}
	tokg_sync(b);
	return status == TOKG_TEXT_OK ? TOKG_OK : TOKG_CPU;
}

/* The flags mean something together, and a lane is one of the producer's. */
TOKG_DEV bool
tokg_flags_right(const tokg_consumer *c, uint32_t flags)
{
	const uint32_t not_so = TOKG_BATCH | TOKG_ABORT | TOKG_TEXT;

	if (!(flags & TOKG_GENERATE))
		return (flags & ~(uint32_t)(TOKG_ENTRY_FLAGS | TOKG_STRICT)) == 0;
	return (flags & 0xffu & ~(uint32_t)(TOKG_ENTRY_FLAGS | TOKG_STRICT)) == 0 &&
	       (flags & TOKG_LAST) && !(flags & not_so) && TOKG_FLAGS_TURN(flags) != 0 &&
	       TOKG_FLAGS_LANE(flags) < c->g.lanes;
}

/* Validates the header, and lists the slot's requests. TOKG_OK or another status. */
TOKG_DEV uint32_t
tokg_slot_parts(const tokg_consumer *c, tokg_block *b, tokg_hand *hand, const tokg_taken *t)
{
	const struct tokg_hdr *const h = &t->hdr;
	const uint64_t room = c->g.out_bytes - (h->out_off & (c->g.out_bytes - 1));

	if (h->epoch == 0 || h->epoch != t->epoch)
		return TOKG_STALE;
	if (h->kind != c->g.kind || h->vocab >= TOKG_VOCABS_MAX ||
		h->out_off % TOKG_OUT_ALIGN != 0 || !tokg_flags_right(c, h->flags))
		return TOKG_BADHDR;
	if (tokg_is_text(h))
		return tokg_slot_encode(c, b, hand, t, room);
	if (h->bytes % ((h->flags & TOKG_BATCH) ? TOKD_RING_ALIGN : 4) != 0)
		return TOKG_BADHDR;
	if (h->flags & TOKG_BATCH) {
		tokg_walk_batch(c, b, hand, t->slot, h->bytes);
	} else if (b->tid == 0) {
		struct tokg_part whole = {};

		whole.request = h->request;
		whole.first = h->first;
		whole.position0 = h->position0;
		whole.tokens = h->bytes / 4;
		whole.flags = h->flags & TOKG_ENTRY_FLAGS;
		hand->walk = {};
		if (h->flags & TOKG_GENERATE)
			c->asked[t->slot] = h->flags;
		tokg_walk_add(c, &hand->walk, tokg_parts_of(c, t->slot), whole);
		hand->walk.bad = (h->flags & TOKG_ABORT) && h->bytes > 0;
	}
	tokg_sync(b);
	if (hand->walk.bad || hand->walk.n == 0 || hand->walk.tokens != h->tokens ||
		hand->walk.out > room)
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

/* Job number k of a slot with n parts, whose first job has index job0. */
TOKG_DEV tokg_job
tokg_job_make(const tokg_consumer *c, const tokg_taken *t, uint32_t n, uint64_t job0, uint32_t k)
{
	const struct tokg_part *const parts = tokg_parts_of(c, t->slot);
	tokg_job j = tokg_job_of_slot(t);
	uint32_t part = 0, end = n;

	while (end - part > 1) {
		const uint32_t middle = part + (end - part) / 2;

		if (parts[middle].job0 <= k)
			part = middle;
		else
			end = middle;
	}
	const struct tokg_part p = parts[part];
	const uint32_t rows = tokg_rows_of_job(c, p.tokens);

	j.ids = tokg_is_text(&t->hdr) ? tokg_text_ids_of(c, t->slot)
				      : (uint64_t)c->g.slot_bytes * t->slot + p.ids;
	j.out_off += p.out;
	j.out = (t->slot / c->g.slots) * c->g.out_bytes + (j.out_off & (c->g.out_bytes - 1));
	j.job0 = job0 + p.job0;
	j.request = p.request;
	j.first = p.first;
	j.position0 = p.position0;
	j.tokens = p.tokens;
	j.row0 = (k - p.job0) * rows;
	j.rows = p.tokens - j.row0 < rows ? p.tokens - j.row0 : rows;
	j.jobs = tokg_jobs_of(c, p.tokens);
	j.part = (uint16_t)part;
	j.parts = (uint16_t)n;
	j.flags = p.flags;
#ifdef TOKG_STAGES
	j.checked = t->checked;
	TOKG_STAMP(j.handed);
#endif
	return j;
}

/*
 * Checks and validates a slot, and lists its records. True: it is right, and h->walk has what it
 * is. False: it has failed, and that is published; or h->leave.
 */
TOKG_DEV bool
tokg_slot_check(const tokg_consumer *c, tokg_block *b, tokg_hand *h, tokg_taken *t)
{
	uint32_t status = tokg_slot_whole(c, b, h, t);

	if (b->tid == 0)
		TOKG_STAMP(t->checked);
	if (status == TOKG_OK)
		status = tokg_slot_parts(c, b, h, t);
	if (status > TOKG_OK && b->tid == 0) {
		const tokg_job j = tokg_job_of_slot(t);

		tokg_slot_finish(c, &j, status, tokg_now());
	}
	tokg_sync(b);
	return status == TOKG_OK;
}

/* A worker's job is a slot. True: it is right and one job, which h->item then is. */
TOKG_DEV bool
tokg_slot_run(const tokg_consumer *c, tokg_block *b, tokg_hand *h)
{
	tokg_taken *const t = &h->item.taken;
	const bool right = tokg_slot_check(c, b, h, t);
	const bool one = right && h->walk.jobs == 1;

	if (b->tid == 0 && one) {
		h->item.job = tokg_job_make(c, t, 1, h->index, 0);
	} else if (b->tid == 0 && !h->leave) {
		if (right) {
			c->found[t->slot] = {*t, h->walk.n, h->walk.jobs};
			tokg_ready_put(c, t->slot);
		}
		tokg_own_st_release(
			&c->work->line[h->index & (TOKG_QUEUE - 1)].freed, h->index + 1);
	}
	tokg_sync(b);
	return one;
}

/* A resident worker: runs until a stop. */
TOKG_DEV void
tokg_worker(const tokg_consumer *c, tokg_block *b, tokg_hand *h)
{
	b->shared = &h->reduce;
	if (b->tid == 0)
		h->leave = false;
	for (;;) {
		if (b->tid == 0 && !h->leave) {
			h->index = tokg_own_add(&c->work->next, 1);
			h->leave = !tokg_worker_wait(c, b, h->index);
		}
		tokg_sync(b);
		if (h->leave)
			return;
		for (uint32_t i = b->tid; i < sizeof(h->item) / 8; i += b->n)
			((uint64_t *)&h->item)[i] = tokg_get(
				(const uint64_t *)&c->work->line[h->index & (TOKG_QUEUE - 1)].item +
				i);
		tokg_sync(b);
		if (h->item.job.what == TOKG_WHAT_ROWS || tokg_slot_run(c, b, h)) {
			if (b->tid == 0)
				TOKG_STAMP(h->item.job.begun);
			tokg_job_run(c, b, &h->item.job, h->index);
		}
		tokg_sync(b);
	}
}
