/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the scanning block passes work to the resident blocks: a queue of lines in device memory.
 *
 *   scanner   line[i % Q]: waits until `freed` shows that use i - Q has ended, writes the job, then
 *             seq = i + 1 (release)
 *   worker    takes the next index from `next`, before its job exists, and spins on that line only
 *             until seq is its index + 1 (acquire)
 *
 * A job is rows, or a slot that was claimed (struct tokg_taken). A worker checks the slot
 * (slot.cuh). What is one job it then does itself; what is more goes back to the scanner:
 *
 *   worker    ready[i % R], i from `n_ready`: its slot (release); what it found is in found[slot]
 *   scanner   takes ready slots in this order, and puts their rows on the queue
 *
 * So only the scanner waits for room in the queue. A worker waits for nothing but its next job: a
 * slot is claimed once, and the list has room for all slots. So the scanner's wait ends: each line
 * before the one that it waits for has a worker, or the next free worker takes it.
 *
 * A record with many ids is several jobs with consecutive indices. The line of its first job is
 * freed when the last one is finished: until then record[i % Q] belongs to them.
 */
#pragma once

#include <tokd/ring.h>

#include "device.h"
#include "embed.cuh"
#include "tokenize/encode.cuh"

#define TOKG_QUEUE 1024		   /* lines; a power of two */
#define TOKG_JOBS_MAX 256	   /* of one record: fewer than TOKG_QUEUE */
#define TOKG_LIMIT_NS 10000000000u /* of every wait for another block */
#define TOKG_BUSY_NS 1000000u
#ifdef __CUDA_ARCH__
#define TOKG_STOP_EVERY 4096 /* polls; some milliseconds */
#else
#define TOKG_STOP_EVERY 64
#endif
#define TOKG_BEGUN(incarnation, turn) ((uint64_t)(incarnation) << 16 | (turn))
#define TOKG_BEGUN_TURN(begun) ((uint32_t)(begun)&0xffffu)

enum tokg_what { TOKG_WHAT_ROWS, TOKG_WHAT_SLOT };

/* Some rows of one record, and its outbox entry. */
struct tokg_job {
	uint64_t ids;  /* offset from `copies` of the record's first id */
	uint64_t out;  /* offset in the outputs of the record's first row */
	uint64_t job0; /* index of the record's first job */
	uint64_t ticket;
	uint64_t done_was; /* the previous value of `done` */
	uint64_t request, out_off, t_post, visible;
	uint32_t slot; /* producer * slots + slot */
	uint32_t first, position0, tokens, epoch;
	uint32_t row0, rows, jobs;
	uint16_t part, parts, flags;
	uint8_t redo;
	uint8_t what; /* enum tokg_what */
#ifdef TOKG_STAGES
	uint64_t checked, handed, begun; /* stamps, of a build that measures: see TOKG_STAMP */
#endif
};
#ifndef TOKG_STAGES
static_assert(sizeof(struct tokg_job) == 112, "a job and its two words are a line");
#endif

/* A claimed slot. */
struct tokg_taken {
	struct tokg_hdr hdr;
	uint64_t ticket, done_was, visible;
	uint32_t slot, epoch; /* back.epoch as it was then */
	uint64_t checked;     /* stamp, as above */
	uint8_t pad[6], redo;
	uint8_t what; /* where a job has it */
};
static_assert(sizeof(struct tokg_taken) == 112 &&
		      offsetof(struct tokg_taken, what) == offsetof(struct tokg_job, what),
	"one is told from the other");

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

union alignas(sizeof(tokg_vec16)) tokg_work_item {
	struct tokg_job job;
	struct tokg_taken taken;
};

struct tokg_line {
	uint64_t seq, freed;
	union tokg_work_item item;
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
	uint64_t n_ready;
	uint64_t pad2[15];
	struct tokg_line line[TOKG_QUEUE];
	struct tokg_state record[TOKG_QUEUE];
	uint64_t ready[TOKG_SCAN_MAX]; /* its index + 1, in 32 bits, and the slot */
};

/* A validated record of a slot. */
struct tokg_part {
	uint64_t request;
	uint64_t out; /* from the slot's first row, bytes */
	uint32_t ids; /* from the payload's begin, bytes */
	uint32_t first, position0, tokens;
	uint32_t job0; /* from the slot's first job */
	uint16_t flags, pad;
};

/*
 * A lane, in the consumer's memory; continues over incarnations. A worker writes it and then
 * `begun`, when the slot of a text is done; then it is the engine's, until `ended` has its turn.
 */
struct tokg_lane {
	uint64_t begun; /* incarnation << 16 | turn */
	uint64_t epoch;
	uint64_t prompt;       /* ids of the text */
	uint64_t last, before; /* ids: the last one, and the one before it */
	uint64_t made;	       /* tokens */
	uint32_t use;	       /* how many texts it has had; never 0 after the first */
	uint32_t shown;	       /* external: the use that is shown as OPEN; 0: none */
	uint64_t engine;       /* external: the one attached when it was begun */
	uint64_t grant;	       /* external: as it is shown, with its use */
};

/* A slot that is right, and more than a job. Its parts are in `parts`. */
struct tokg_found {
	struct tokg_taken taken;
	uint32_t parts, jobs;
};

/*
 * The state of one incarnation. Its starter zeroes work and slots, and ensures that no thread
 * of an older one still writes outputs.
 */
struct tokg_consumer {
	struct tokg_geometry g; /* validated; the copy in the region is not read */
	struct tokg_embed e;
	uint8_t *region, *outputs;
	struct tokg_out_entry *outbox;
	uint64_t outbox_mask;
	uint64_t *outbox_reserved; /* continues over incarnations */
	/*
	 * What the consumer reads of each slot is in its own memory: if a GPU's ring is in host
	 * memory, a read of the ring crosses the bus and takes a microsecond. So done words exist
	 * twice if others read them on the other side. `back` is a back area in the consumer's
	 * memory; only its done words are used. `back_far` is one that the consumer only writes;
	 * it may be NULL. The far word is written first, so that others know what the consumer
	 * takes for done.
	 */
	uint8_t *back, *back_far;
	uint64_t *claim; /* [producers * slots]; continues over incarnations */
	uint8_t *copies; /* [producers * slots][slot_bytes]: payloads as checked */
	struct tokg_work *work;
	struct tokg_state *slots;   /* [producers * slots] */
	struct tokg_found *found;   /* [producers * slots] */
	struct tokg_part *parts;    /* [producers * slots][slot_bytes / 64] */
	struct tokg_state *records; /* likewise; of graphs only, see schedule.cuh */
	/* Of TEXT slots. */
	const struct tokg_view *text_view; /* NULL: there are none */
	uint64_t text_ids; /* [producers * slots][tokg_text_ids_bytes()]: offset from `copies` */
	uint8_t *text_scratch; /* [1 + workers], of a block each; or [producers * slots] */
	uint64_t text_scratch_bytes;
	bool text_by_slot; /* with graphs: blocks of many children run at the same time */
	/* Of generation; see lanes.cuh. */
	struct tokg_lane *lanes; /* [producers * lanes] */
	uint64_t *log_head;	 /* [producers]: next position of the log */
	uint32_t *asked;	 /* [producers * slots]: flags of the header */
	uint32_t stop_id;	 /* the engine's end of a text */
	/* Of an external engine; see relay.cuh and engine_area.h. shown NULL: there is none. */
	uint32_t *ids;		       /* of all rows */
	struct tokd_lane_shown *shown; /* [producers * lanes] */
	const struct tokd_lane_made *engine_made;
	const uint32_t *engine_ids; /* [producers * lanes][room] */
	uint32_t room, ids_of_page;
	const uint64_t *owner;		    /* in host memory; changes while the owner runs */
	uint64_t owner_limit_ns;	    /* the consumer ends after this time without a change */
	struct tokg_scan_times *scan_times; /* in host memory; NULL: not measured */
	uint32_t incarnation;		    /* 1 to 65535 */
	uint32_t workers;		    /* 0: the scanning thread does the work itself (CPU) */
	uint32_t rows;			    /* the most rows of a job */
	bool heads;
};

/* The most bytes of ids of a TEXT slot: a text has at most one id per byte. */
TOKG_FN uint64_t
tokg_text_ids_bytes(const struct tokg_geometry *g)
{
	return 4ull * (g->slot_bytes < TOKG_TEXT_MAX ? g->slot_bytes : TOKG_TEXT_MAX);
}

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

/* A done word of a back area. */
TOKG_DEV uint64_t *
tokg_done_in(const tokg_consumer *c, uint8_t *back, uint32_t slot)
{
	return (uint64_t *)(back + c->g.back_stride * (slot / c->g.slots) +
			    sizeof(struct tokg_back) + 8ull * (slot % c->g.slots));
}

TOKG_DEV uint8_t *
tokg_copy_of(const tokg_consumer *c, uint32_t slot)
{
	return c->copies + (uint64_t)c->g.slot_bytes * slot;
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

/* Nobody else has ended this ticket. */
TOKG_DEV bool
tokg_done_lacks(const tokg_consumer *c, const tokg_job *j)
{
	return tokg_ld(tokg_done_in(c, c->back, j->slot)) == j->done_was;
}

/* By compare-and-swap from its previous value: if that has changed, another incarnation has ended
 * this ticket. */
TOKG_DEV void
tokg_done_write(const tokg_consumer *c, const tokg_job *j, uint64_t status)
{
	const uint64_t done = TOKG_DONE(j->ticket, status);

	if (c->back_far != NULL) {
		tokg_st_fenced(tokg_done_in(c, c->back_far, j->slot), done);
		/* Or it could land after that of the slot's next use, which the near word allows.
		 */
		tokg_own_fence();
	}
	tokg_cas_fenced(tokg_done_in(c, c->back, j->slot), j->done_was, done);
}

/*
 * Writes a record's outbox entry except its seq, which is 1 + the index that it returns. `lane`: it
 * begins there; or NULL.
 */
TOKG_DEV uint64_t
tokg_entry_write(const tokg_consumer *c, const tokg_job *j, const tokg_lane *lane, uint8_t status,
	uint64_t now)
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
	if (lane != NULL) {
		e.lane = (uint32_t)(lane - c->lanes);
		e.use = lane->use;
	}
#ifdef TOKG_STAGES
	e.reserved[0] = j->checked;
	e.reserved[1] = j->handed;
	e.reserved[2] = j->begun;
#endif
	memcpy(words, &e, sizeof(e));

	index = tokg_own_add(c->outbox_reserved, 1);
	to = (uint64_t *)(c->outbox + (index & c->outbox_mask));
	for (uint32_t i = 1; i < sizeof(e) / 8; i++)
		tokg_put(to + i, words[i]);
	return index;
}

TOKG_DEV void
tokg_entry_publish(const tokg_consumer *c, uint64_t index)
{
	tokg_st_fenced((uint64_t *)(c->outbox + (index & c->outbox_mask)), index + 1);
}

/* By who finishes a slot that generates, before it is done. Returns its lane. */
TOKG_DEV const tokg_lane *
tokg_lane_begin(const tokg_consumer *c, const tokg_job *j)
{
	const uint32_t producer = j->slot / c->g.slots, flags = c->asked[j->slot];
	const uint32_t number = TOKG_FLAGS_LANE(flags), turn = TOKG_FLAGS_TURN(flags);
	tokg_lane *const lane = &c->lanes[(uint64_t)producer * c->g.lanes + number];
	const uint32_t *const ids = (const uint32_t *)(c->copies + j->ids);
	uint64_t last = 0;

	/* An older incarnation had begun it: it is cut. */
	if (TOKG_BEGUN_TURN(tokg_own_ld_acquire(&lane->begun)) == turn)
		return lane;
	if (j->tokens > 0)
		last = ids[j->tokens - 1] % c->g.n_ids;
	tokg_put(&lane->epoch, j->epoch);
	tokg_put(&lane->prompt, (uint64_t)j->first + j->tokens);
	tokg_put(&lane->last, last);
	tokg_put(&lane->before, 0);
	tokg_put(&lane->made, 0);
	if (++lane->use == 0)
		lane->use = 1;
	/* An engine that comes later does not get the entry. */
	tokg_put(&lane->engine, tokg_ld(&tokg_ctl_of(c)->engine));
	/* Before `done`: who waits for all lanes looks when all slots are done. */
	tokg_st(tokg_word(c, tokg_opened_at(&c->g, producer, number)), TOKG_LANE_WORD(0, turn, 0));
	tokg_own_st_release(&lane->begun, TOKG_BEGUN(c->incarnation, turn));
	return lane;
}

/*
 * A worker may have ended between the two words, and its slot may fail when it is done again: then
 * the lane has not begun. By all threads of the scanner, before it takes a slot.
 */
TOKG_DEV void
tokg_lanes_repair(const tokg_consumer *c, const tokg_block *b)
{
	for (uint32_t i = b->tid; i < c->g.producers * c->g.lanes; i += b->n) {
		uint64_t *const opened = tokg_word(c, c->g.opened_off + 8ull * i);
		const uint32_t turn = TOKG_BEGUN_TURN(tokg_own_ld(&c->lanes[i].begun));

		if (TOKG_LANE_TURN(tokg_ld(opened)) != turn)
			tokg_st(opened, TOKG_LANE_WORD(0, turn, 0));
	}
}

/*
 * The end of a slot with one record, or of one that failed: outputs and entry, one fence, then the
 * entry's seq and `done`.
 *
 * Beyond the GPU `done` may be seen before seq. That is no harm: the entry's index was reserved
 * before the fence, so who sees `done` finds the entry among those that are reserved, and waits for
 * its seq; and the next incarnation begins when this one has ended, all of its stores with it.
 */
TOKG_DEV void
tokg_slot_finish(const tokg_consumer *c, const tokg_job *j, uint64_t status, uint64_t now)
{
	const tokg_lane *lane = NULL;
	uint64_t index;

	if (!tokg_done_lacks(c, j))
		return;
	if (status == TOKG_OK && (j->flags & TOKG_GENERATE))
		lane = tokg_lane_begin(c, j);
	index = tokg_entry_write(c, j, lane, (uint8_t)status, now);
	tokg_fence();
	tokg_entry_publish(c, index);
	tokg_done_write(c, j, status);
}

/* The end of a record of a BATCH, and with the last one of the slot. */
TOKG_DEV void
tokg_part_finish(const tokg_consumer *c, const tokg_job *j, uint64_t status, uint64_t now)
{
	struct tokg_state *const slot = &c->slots[j->slot];
	const bool right = tokg_done_lacks(c, j);
	uint64_t worst;

	if (right) {
		const uint64_t index = tokg_entry_write(c, j, NULL, (uint8_t)status, now);

		tokg_fence();
		tokg_entry_publish(c, index);
	}
	if (status > TOKG_OK)
		tokg_raise(&slot->status, status);
	if (tokg_add(&slot->finished, 1) + 1 != j->parts)
		return;
	worst = tokg_own_ld(&slot->status);
	tokg_own_st(&slot->finished, 0);
	tokg_own_st(&slot->status, 0);
	if (!right)
		return;
	tokg_fence();
	tokg_done_write(c, j, worst != 0 ? worst : (uint64_t)TOKG_OK);
}

/*
 * Counts a finished job of a record that has several. True: it was the last, and the record's
 * status is in *status.
 */
TOKG_DEV bool
tokg_record_counted(struct tokg_state *record, const tokg_job *j, uint64_t *status)
{
	uint64_t worst;

	if (*status > TOKG_OK)
		tokg_raise(&record->status, *status);
	if (tokg_add(&record->finished, 1) + 1 != j->jobs)
		return false;
	worst = tokg_own_ld(&record->status);
	tokg_own_st(&record->finished, 0);
	tokg_own_st(&record->status, 0);
	if (worst != 0)
		*status = worst;
	return true;
}

/*
 * By one thread, after all rows of the job: outputs, outbox entry, done, in this order. `record`:
 * counts the record's jobs. True: this was the last one.
 */
TOKG_DEV bool
tokg_job_finish(
	const tokg_consumer *c, const tokg_job *j, struct tokg_state *record, uint64_t status)
{
	if (j->jobs > 1 && !tokg_record_counted(record, j, &status))
		return false;
	if (j->parts == 1)
		tokg_slot_finish(c, j, status, tokg_now());
	else
		tokg_part_finish(c, j, status, tokg_now());
	return true;
}

/* For an external engine: ids beside their rows, which are before them in the outputs. */
TOKG_DEV void
tokg_ids_copy(const tokg_consumer *c, const tokg_block *b, const tokg_job *j)
{
	const uint32_t *const from = (const uint32_t *)(c->copies + j->ids) + j->row0;
	uint32_t *const to = c->ids + j->out / TOKG_OUT_ALIGN * c->ids_of_page + j->row0;

	for (uint32_t i = b->tid; i < j->rows; i += b->n)
		to[i] = from[i];
}

/* All threads: the rows. Returns the job's status. */
TOKG_DEV uint64_t
tokg_job_rows(const tokg_consumer *c, tokg_block *b, const tokg_job *j)
{
	if (c->ids != NULL)
		tokg_ids_copy(c, b, j);
	const uint64_t bad = tokg_rows(b, &c->e, (const uint32_t *)(c->copies + j->ids) + j->row0,
		j->rows, (uint64_t)j->position0 + j->row0,
		c->outputs + j->out + (uint64_t)j->row0 * c->g.row_bytes);

	return bad >> 32 ? TOKG_BADPOS : bad > 0 ? TOKG_BADID : TOKG_OK;
}

/* A job of the queue. */
TOKG_DEV void
tokg_job_run(const tokg_consumer *c, tokg_block *b, const tokg_job *j, uint64_t index)
{
	const uint64_t status = tokg_job_rows(c, b, j);

	if (b->tid != 0)
		return;
	if (tokg_job_finish(c, j, &c->work->record[j->job0 & (TOKG_QUEUE - 1)], status))
		tokg_own_st_release(&c->work->line[j->job0 & (TOKG_QUEUE - 1)].freed, j->job0 + 1);
	if (index != j->job0)
		tokg_own_st_release(&c->work->line[index & (TOKG_QUEUE - 1)].freed, index + 1);
}

/* By the scanner. False: stopped, or no progress of the queue within the limit. */
TOKG_DEV bool
tokg_queue_wait(const tokg_consumer *c, uint64_t index)
{
	const uint64_t *const freed = &c->work->line[index & (TOKG_QUEUE - 1)].freed;
	const uint64_t since = tokg_now();
	uint64_t busy = since;

	while (tokg_own_ld_acquire(freed) != index + 1) {
		if (tokg_stop_now(c) || tokg_busy(c, &busy) || tokg_now() - since > TOKG_LIMIT_NS)
			return false;
		tokg_pause();
	}
	return true;
}

TOKG_DEV bool
tokg_queue_push(const tokg_consumer *c, uint64_t index, const union tokg_work_item *item)
{
	struct tokg_line *const line = &c->work->line[index & (TOKG_QUEUE - 1)];
	tokg_vec16 words[sizeof(*item) / sizeof(tokg_vec16)];

	if (index >= TOKG_QUEUE && !tokg_queue_wait(c, index - TOKG_QUEUE))
		return false;
	memcpy(words, item, sizeof(words));
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		tokg_put_vec16((tokg_vec16 *)&line->item + i, words[i]);
	tokg_own_st_release(&line->seq, index + 1);
	return true;
}

/* By one thread of a worker, when found[slot] and its parts are written. */
TOKG_DEV void
tokg_ready_put(const tokg_consumer *c, uint32_t slot)
{
	const uint64_t index = tokg_own_add(&c->work->n_ready, 1);

	tokg_own_st_release(&c->work->ready[index & (TOKG_SCAN_MAX - 1)], (index + 1) << 32 | slot);
}

/* By one thread of the scanner: entry `index` of the list. */
TOKG_DEV bool
tokg_ready_get(const tokg_consumer *c, uint64_t index, uint32_t *slot)
{
	const uint64_t *const entry = &c->work->ready[index & (TOKG_SCAN_MAX - 1)];

	if (tokg_own_ld(entry) >> 32 != (uint32_t)(index + 1))
		return false;
	*slot = (uint32_t)tokg_own_ld_acquire(entry);
	return true;
}

/*
 * Waiting for work has no limit while the owner runs. It ends with either kind of stop. The scanner
 * ends when the owner's word does not change within the limit, and stops the workers; after twice
 * the limit they end by themselves, as the scanner hangs. `since`: 0 at the start of a wait.
 * `polls` of it: the stop word is looked at seldom. It may be on the other side of a GPU's bus, and
 * hundreds of blocks wait.
 */
TOKG_DEV bool
tokg_worker_leaves(const tokg_consumer *c, uint64_t *since, uint32_t polls)
{
	const uint64_t now = tokg_now();
	uint64_t alive = tokg_own_ld(&c->work->alive);

	if (*since == 0)
		*since = now;
	if (alive < *since)
		alive = *since;
	return tokg_own_ld(&c->work->quit) != 0 ||
	       (polls % TOKG_STOP_EVERY == 0 && tokg_stop_now(c)) ||
	       (now > alive && now - alive > 2 * c->owner_limit_ns);
}

TOKG_DEV bool
tokg_worker_wait(const tokg_consumer *c, tokg_block *b, uint64_t index)
{
	const uint64_t *const seq = &c->work->line[index & (TOKG_QUEUE - 1)].seq;
	uint64_t since = 0;

	for (uint32_t spin = 1; tokg_own_ld(seq) != index + 1; spin++) {
		if (spin % 64 == 0 && tokg_worker_leaves(c, &since, spin))
			return false;
		tokg_idle(b, false);
	}
	tokg_idle(b, true);
	/* Once: an acquire on every poll would invalidate the cache each time. */
	return tokg_own_ld_acquire(seq) == index + 1;
}
