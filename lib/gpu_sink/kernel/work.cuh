/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the scanning block passes work to the resident blocks: a queue of lines in device memory.
 *
 *   scanner   line[i % Q]: waits until `freed` shows that use i - Q has ended, writes the job, then
 *             seq = i + 1 (release)
 *   worker    takes the next index from `next`, before its job exists, and spins on that line only
 *             until seq is its index + 1 (acquire)
 *
 * A record with many ids is several jobs with consecutive indices. The line of its first job is
 * freed when the last one is finished: until then record[i % Q] belongs to them.
 */
#pragma once

#include <tokd/ring.h>

#include "device.h"
#include "embed.cuh"

#define TOKG_QUEUE 1024		   /* lines; a power of two */
#define TOKG_JOBS_MAX 256	   /* of one record: fewer than TOKG_QUEUE */
#define TOKG_LIMIT_NS 10000000000u /* of every wait for another block */
#define TOKG_BUSY_NS 1000000u

/* Some rows of one record, and its outbox entry. */
struct tokg_job {
	uint64_t ids;  /* offset in the region of the record's first id */
	uint64_t out;  /* offset in the outputs of the record's first row */
	uint64_t job0; /* index of the record's first job */
	uint64_t ticket;
	uint64_t done_was; /* the previous value of `done` */
	uint64_t request, out_off, t_post, visible;
	uint32_t slot; /* producer * slots + slot */
	uint32_t first, position0, tokens, epoch;
	uint32_t row0, rows, jobs;
	uint16_t part, parts, flags;
	uint8_t redo, status;
#ifdef TOKG_STAGES
	uint64_t checked, handed, begun; /* stamps, of a build that measures: see TOKG_STAMP */
#endif
};
#ifndef TOKG_STAGES
static_assert(sizeof(struct tokg_job) == 112, "a job and its two words are a line");
#endif

/*
 * With -DTOKG_STAGES, for measuring programs only, a slot's outbox entry has in `reserved` when its
 * check word was correct, when it was queued, and when its last worker took the job: consumer's
 * clock, ns.
 */
#ifdef TOKG_STAGES
#define TOKG_STAMP(word) ((word) = tokg_now())
#else
#define TOKG_STAMP(word) ((void)0)
#endif

struct tokg_line {
	uint64_t seq, freed;
	struct tokg_job job;
};

/* Counts finished parts; the last one resets it to 0. */
struct tokg_state {
	uint64_t finished;
	uint64_t status; /* the worst one */
};

struct tokg_work {
	uint64_t next; /* index that the next worker takes */
	uint64_t pad0[15];
	uint64_t quit;	/* no more jobs */
	uint64_t alive; /* when the owner's word last changed; consumer's clock, ns */
	uint64_t pad1[14];
	struct tokg_line line[TOKG_QUEUE];
	struct tokg_state record[TOKG_QUEUE];
};

/* A validated record of the current slot. */
struct tokg_part {
	uint64_t request;
	uint64_t out; /* from the slot's first row, bytes */
	uint32_t ids; /* from the payload's begin, bytes */
	uint32_t first, position0, tokens;
	uint32_t job0; /* from the slot's first job */
	uint16_t flags, pad;
};

/*
 * The state of one incarnation. Its starter zeroes work, seen and slots, and ensures that no thread
 * of an older one still writes outputs.
 */
struct tokg_consumer {
	struct tokg_geometry g; /* validated; the copy in the region is not read */
	struct tokg_embed e;
	uint8_t *region, *outputs;
	struct tokg_out_entry *outbox;
	uint64_t outbox_mask;
	uint64_t *outbox_reserved; /* continues over incarnations */
	struct tokg_work *work;
	uint64_t *seen;			    /* [producers * slots]: last processed tickets */
	struct tokg_state *slots;	    /* [producers * slots] */
	struct tokg_part *parts;	    /* [slot_bytes / 64] */
	const uint64_t *owner;		    /* in host memory; changes while the owner runs */
	uint64_t owner_limit_ns;	    /* the consumer ends after this time without a change */
	struct tokg_scan_times *scan_times; /* in host memory; NULL: not measured */
	uint32_t incarnation;		    /* 1 to 65535 */
	uint32_t workers;		    /* 0: the scanning thread does the work itself (CPU) */
	uint32_t rows;			    /* the most rows of a job */
	bool heads;
};

TOKG_DEV struct tokg_ctl *
tokg_ctl_of(const tokg_consumer *c)
{
	return (struct tokg_ctl *)c->region;
}

TOKG_DEV uint64_t *
tokg_word(const tokg_consumer *c, uint64_t offset)
{
	return (uint64_t *)(c->region + offset);
}

TOKG_DEV bool
tokg_stop_now(const tokg_consumer *c)
{
	return tokg_ld32(&tokg_ctl_of(c)->stop) == TOKG_STOP_NOW;
}

/*
 * By one thread, between slots and between jobs: shows the owner every TOKG_BUSY_NS that work
 * continues. True: stop.
 */
TOKG_DEV bool
tokg_busy(const tokg_consumer *c, uint64_t *last)
{
	const uint64_t now = tokg_now();

	if (now - *last < TOKG_BUSY_NS)
		return false;
	*last = now;
	tokg_st(&tokg_ctl_of(c)->busy, now);
	return tokg_stop_now(c);
}

/*
 * The end of a slot: stamps, then `done`, by compare-and-swap from its previous value. If that has
 * changed, another incarnation has ended this ticket, and nothing else is written.
 */
TOKG_DEV void
tokg_slot_end(const tokg_consumer *c, const tokg_job *j, uint64_t status, uint64_t now)
{
	const uint32_t p = j->slot / c->g.slots, s = j->slot % c->g.slots;
	uint64_t *const done = tokg_word(c, tokg_done_at(&c->g, p, s));
	uint64_t *const stamp = tokg_word(c, tokg_stamp_at(&c->g, p, s));

	if (tokg_ld(done) != j->done_was)
		return;
	tokg_st(stamp, j->visible);
	tokg_st(stamp + 1, now);
	tokg_cas(done, j->done_was, TOKG_DONE(j->ticket, status));
}

/* Writes a record's outbox entry. */
TOKG_DEV void
tokg_entry_write(const tokg_consumer *c, const tokg_job *j, uint8_t status, uint64_t now)
{
	struct tokg_out_entry e = {};
	uint64_t words[sizeof(e) / 8];
	uint64_t index;
	uint64_t *to;

	e.producer = j->slot / c->g.slots;
	e.slot = j->slot % c->g.slots;
	e.ticket = j->ticket;
	e.request = j->request;
	e.out_off = j->out_off;
	e.first = j->first;
	e.tokens = j->tokens;
	e.flags = j->flags;
	e.status = status;
	e.redo = j->redo;
	e.epoch = j->epoch;
	e.incarnation = c->incarnation;
	e.part = j->part;
	e.parts = j->parts;
	e.t_post = j->t_post;
	e.visible = j->visible;
	e.embedded = now;
#ifdef TOKG_STAGES
	e.reserved[0] = j->checked;
	e.reserved[1] = j->handed;
	e.reserved[2] = j->begun;
#endif
	memcpy(words, &e, sizeof(e));

	index = tokg_add(c->outbox_reserved, 1);
	to = (uint64_t *)(c->outbox + (index & c->outbox_mask));
	for (uint32_t i = 1; i < sizeof(e) / 8; i++)
		tokg_put(to + i, words[i]);
	tokg_st_release(to, index + 1);
}

/* 0 means OK. */
TOKG_DEV uint64_t
tokg_worst(uint64_t status)
{
	return status != 0 ? status : (uint64_t)TOKG_OK;
}

/* By one thread, after all rows of the job: outputs, outbox entry, done, in this order. */
TOKG_DEV void
tokg_job_finish(const tokg_consumer *c, const tokg_job *j, uint64_t index, uint64_t status)
{
	struct tokg_state *const record = &c->work->record[j->job0 & (TOKG_QUEUE - 1)];
	struct tokg_state *const slot = &c->slots[j->slot];
	const uint32_t p = j->slot / c->g.slots, s = j->slot % c->g.slots;

	if (status > TOKG_OK)
		tokg_raise(&record->status, status);
	if (tokg_add(&record->finished, 1) + 1 == j->jobs) {
		const uint64_t worst = tokg_ld(&record->status);
		const uint64_t now = tokg_now();

		tokg_st(&record->finished, 0);
		tokg_st(&record->status, 0);
		if (tokg_ld(tokg_word(c, tokg_done_at(&c->g, p, s))) == j->done_was)
			tokg_entry_write(c, j, (uint8_t)tokg_worst(worst), now);
		if (worst > TOKG_OK)
			tokg_raise(&slot->status, worst);
		if (tokg_add(&slot->finished, 1) + 1 == j->parts) {
			const uint64_t all = tokg_ld(&slot->status);

			tokg_st(&slot->finished, 0);
			tokg_st(&slot->status, 0);
			tokg_slot_end(c, j, tokg_worst(all), now);
		}
		tokg_st_release(&c->work->line[j->job0 & (TOKG_QUEUE - 1)].freed, j->job0 + 1);
	}
	if (index != j->job0)
		tokg_st_release(&c->work->line[index & (TOKG_QUEUE - 1)].freed, index + 1);
}

TOKG_DEV void
tokg_job_run(const tokg_consumer *c, tokg_block *b, const tokg_job *j, uint64_t index)
{
	const uint64_t bad = tokg_rows(b, &c->e, (const uint32_t *)(c->region + j->ids) + j->row0,
		j->rows, (uint64_t)j->position0 + j->row0,
		c->outputs + j->out + (uint64_t)j->row0 * c->g.row_bytes);

	if (b->tid == 0)
		tokg_job_finish(c, j, index,
			bad >> 32 ? TOKG_BADPOS
			: bad > 0 ? TOKG_BADID
				  : TOKG_OK);
}

/* By the scanner. False: stopped, or no progress of the queue within the limit. */
TOKG_DEV bool
tokg_queue_wait(const tokg_consumer *c, uint64_t index)
{
	const uint64_t *const freed = &c->work->line[index & (TOKG_QUEUE - 1)].freed;
	const uint64_t since = tokg_now();
	uint64_t busy = since;

	while (tokg_ld_acquire(freed) != index + 1) {
		if (tokg_stop_now(c) || tokg_busy(c, &busy) || tokg_now() - since > TOKG_LIMIT_NS)
			return false;
		tokg_pause();
	}
	return true;
}

TOKG_DEV bool
tokg_queue_push(const tokg_consumer *c, uint64_t index, const tokg_job *j)
{
	struct tokg_line *const line = &c->work->line[index & (TOKG_QUEUE - 1)];
	uint64_t words[sizeof(*j) / 8];

	if (index >= TOKG_QUEUE && !tokg_queue_wait(c, index - TOKG_QUEUE))
		return false;
	memcpy(words, j, sizeof(words));
	for (uint32_t i = 0; i < sizeof(words) / 8; i++)
		tokg_put((uint64_t *)&line->job + i, words[i]);
	tokg_st_release(&line->seq, index + 1);
	return true;
}

/* Shared by a worker's threads. */
struct tokg_hand {
	struct tokg_reduce reduce;
	struct tokg_job job;
	uint64_t index;
	bool leave;
};

/*
 * Waiting for work has no limit while the owner runs. It ends with either kind of stop. The scanner
 * ends when the owner's word does not change within the limit, and stops the workers; after twice
 * the limit they end by themselves, as the scanner hangs. `since`: 0 at the start of a wait.
 */
TOKG_DEV bool
tokg_worker_leaves(const tokg_consumer *c, uint64_t *since)
{
	const uint64_t now = tokg_now();
	uint64_t alive = tokg_ld(&c->work->alive);

	if (*since == 0)
		*since = now;
	if (alive < *since)
		alive = *since;
	return tokg_ld(&c->work->quit) != 0 || tokg_stop_now(c) ||
	       (now > alive && now - alive > 2 * c->owner_limit_ns);
}

TOKG_DEV bool
tokg_worker_wait(const tokg_consumer *c, tokg_block *b, uint64_t index)
{
	const uint64_t *const seq = &c->work->line[index & (TOKG_QUEUE - 1)].seq;
	uint64_t since = 0;

	for (uint32_t spin = 1; tokg_ld(seq) != index + 1; spin++) {
		if (spin % 64 == 0 && tokg_worker_leaves(c, &since))
			return false;
		tokg_idle(b, false);
	}
	tokg_idle(b, true);
	/* Once: an acquire on every poll would invalidate the cache each time. */
	return tokg_ld_acquire(seq) == index + 1;
}

/* A resident worker: runs until a stop. */
TOKG_DEV void
tokg_worker(const tokg_consumer *c, tokg_block *b, tokg_hand *h)
{
	b->shared = &h->reduce;
	for (;;) {
		if (b->tid == 0) {
			h->index = tokg_add(&c->work->next, 1);
			h->leave = !tokg_worker_wait(c, b, h->index);
		}
		tokg_sync(b);
		if (h->leave)
			return;
		for (uint32_t i = b->tid; i < sizeof(h->job) / 8; i += b->n)
			((uint64_t *)&h->job)[i] = tokg_get(
				(const uint64_t *)&c->work->line[h->index & (TOKG_QUEUE - 1)].job +
				i);
		tokg_sync(b);
		if (b->tid == 0)
			TOKG_STAMP(h->job.begun);
		tokg_job_run(c, b, &h->job, h->index);
		tokg_sync(b);
	}
}
