/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer as graphs that the GPU launches: a scheduler of one block stays, and what a look at
 * the ring claims is the work of a child graph, which it launches. The scheduler is a graph itself.
 * On a GPU graphs are CUDA's (graphs_cuda.cu); what they may do is section 4.2.6 of the CUDA
 * programming guide, "Device Graph Launch":
 *
 * - One execution of a graph may launch 120 children (fire and forget), in all. It is a window of
 *   launches: when it is used up, the scheduler launches itself (tail launch) and ends. The count
 *   then begins anew. What it knows is in device memory meanwhile.
 * - A tail launch begins when the graph and all its children have ended.
 * - An executable graph cannot be launched again while it runs, and no call tells whether it does.
 *   Here there is one for each launch of a window, in order. So each is launched once in a window,
 *   and those of the window before have ended.
 * - The GPU cannot change the parameters of an executable graph. So each child has its place in
 *   device memory, where the scheduler writes what it is to do.
 *
 *   scheduler   look ─▶ claim ─▶ child[i] ─▶ launch i ── ... ── 120 launches ─▶ save, tail launch
 *   embed       check, validate (some blocks) ─▶ rows (many blocks) ─▶ entry, done
 *   step        the engine's next token of each lane, or the relay's look at each; launched when
 *               the last step has ended
 *
 * A child that was launched ends by itself, also after a stop: what is claimed is then done, except
 * slots whose check word is wrong at STOP_NOW.
 */
#pragma once

#include "engine.cuh"

#define TOKG_LAUNCHES 120   /* launches of an execution: guide, 4.2.6.2.1 */
#define TOKG_QUIET_LOOKS 64 /* that find nothing, until an execution ends early */

enum tokg_graph { TOKG_GRAPH_EMBED, TOKG_GRAPH_STEP, TOKG_GRAPHS };

/* The work of an embedding graph: its first kernel checks the slots, the second makes `rows`. */
struct tokg_child {
	uint64_t n;
	uint64_t rows[TOKG_TAKEN]; /* records, in 32 bits, and jobs; 0: nothing is left to do */
	struct tokg_taken taken[TOKG_TAKEN];
};

/* In device memory: what outlives an execution of the scheduler. Zeroed before each incarnation. */
struct tokg_schedule {
	uint64_t executions;
	uint64_t launches[TOKG_GRAPHS];
	uint64_t failed;       /* what the last launch returned: 0, or it ended the scheduler */
	uint64_t steps_ended;  /* written by the step */
	struct tokg_scan scan; /* between executions */
	struct tokg_child child[TOKG_LAUNCHES];
};

/* Shared by the scheduler's threads. */
struct tokg_scheduler {
	struct tokg_scan scan;
	uint32_t launched; /* in this execution */
	uint32_t quiet;	   /* looks without work, one after the other */
	bool step_ended, lane_waits;
};

/*
 * By one thread. Number `number` of its kind; it was not launched in this execution yet. Returns 0,
 * or why not. Relaunch: this execution ends without another launch.
 */
#ifdef __CUDA_ARCH__
TOKG_DEV uint32_t
tokg_graph_launch(void *const *graphs, enum tokg_graph kind, uint32_t number)
{
	return cudaGraphLaunch((cudaGraphExec_t)graphs[kind * TOKG_LAUNCHES + number],
		cudaStreamGraphFireAndForget);
}

TOKG_DEV uint32_t
tokg_graph_relaunch(void)
{
	return cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
#else
extern "C" uint32_t tokg_graph_launch(void *const *graphs, enum tokg_graph kind, uint32_t number);
extern "C" uint32_t tokg_graph_relaunch(void);
#endif

/*
 * After a turn: does this execution end? When the next turn, of a launch of each kind, would not
 * fit. Or when it has used half of its launches and there is nothing to do: nobody waits for it
 * then.
 */
TOKG_DEV bool
tokg_window_over(uint32_t launched, uint32_t quiet)
{
	return launched + TOKG_GRAPHS > TOKG_LAUNCHES ||
	       (launched >= TOKG_LAUNCHES / 2 && quiet >= TOKG_QUIET_LOOKS);
}

/* By one thread, when all that the child reads is written. */
TOKG_DEV void
tokg_launch(struct tokg_schedule *g, tokg_scheduler *s, void *const *graphs, enum tokg_graph kind)
{
	tokg_own_fence();
	g->failed = tokg_graph_launch(graphs, kind, s->launched);
	if (g->failed != 0) {
		s->scan.leave = true;
		return;
	}
	s->launched++;
	g->launches[kind]++;
}

/* All threads: into device memory. */
TOKG_DEV void
tokg_words_save(const tokg_block *b, void *to, const void *from, uint32_t bytes)
{
	for (uint32_t i = b->tid; i < bytes / 8; i += b->n)
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

/* All threads: what another graph, or another execution of this one, has saved. */
TOKG_DEV void
tokg_words_load(const tokg_block *b, void *to, const void *from, uint32_t bytes)
{
	for (uint32_t i = b->tid; i < bytes / 8; i += b->n)
		((uint64_t *)to)[i] = tokg_get((const uint64_t *)from + i);
}

/* All threads: launches a child for what the look has claimed. */
TOKG_DEV void
tokg_child_launch(tokg_block *b, struct tokg_schedule *g, tokg_scheduler *s, void *const *graphs)
{
	struct tokg_child *const child = &g->child[s->launched];
	const uint32_t n = s->scan.n_right;

	if (n == 0)
		return;
	tokg_words_save(b, child->taken, s->scan.taken, n * sizeof(child->taken[0]));
	if (b->tid == 0)
		child->n = n;
	tokg_sync(b);
	if (b->tid == 0)
		tokg_launch(g, s, graphs, TOKG_GRAPH_EMBED);
	tokg_sync(b);
}

/*
 * All threads: launches the engine's next step, if the one before has ended and a lane waits. One
 * step runs at a time, because one thread makes all calls for a producer (lanes.cuh).
 */
TOKG_DEV void
tokg_step_launch(const tokg_consumer *c, tokg_block *b, struct tokg_schedule *g, tokg_scheduler *s,
	void *const *graphs)
{
	if (c->g.lanes == 0)
		return;
	if (b->tid == 0) {
		s->step_ended =
			tokg_own_ld_acquire(&g->steps_ended) == g->launches[TOKG_GRAPH_STEP];
		s->lane_waits = false;
	}
	tokg_sync(b);
	if (!s->step_ended)
		return;
	for (uint32_t i = b->tid; i < c->g.producers * c->g.lanes; i += b->n)
		if (tokg_lane_waits(c, i / c->g.lanes, i % c->g.lanes))
			s->lane_waits = true;
	tokg_sync(b);
	if (b->tid == 0 && s->lane_waits && !s->scan.leave)
		tokg_launch(g, s, graphs, TOKG_GRAPH_STEP);
}

/* All threads: as the execution before has left it, or as a new incarnation begins. */
TOKG_DEV void
tokg_execution_begin(
	const tokg_consumer *c, tokg_block *b, struct tokg_schedule *g, tokg_scheduler *s)
{
	if (g->executions > 0) {
		tokg_words_load(b, &s->scan, &g->scan, sizeof(s->scan));
		b->shared = &s->scan.hand.reduce;
	} else {
		tokg_scan_begin(c, b, &s->scan);
		for (uint32_t p = b->tid; c->g.lanes > 0 && p < c->g.producers; p += b->n)
			tokg_log_continue(c, p);
	}
	tokg_sync(b);
	if (b->tid == 0) {
		g->executions++;
		s->launched = s->quiet = 0;
	}
	tokg_sync(b);
}

/* One execution of the scheduler's graph. */
TOKG_DEV void
tokg_schedule_run(const tokg_consumer *c, tokg_block *b, struct tokg_schedule *g, tokg_scheduler *s,
	void *const *graphs)
{
	tokg_execution_begin(c, b, g, s);
	do {
		const uint32_t before = s->launched;
		const uint32_t n = tokg_scan_once(c, b, &s->scan);

		tokg_sync(b);
		tokg_child_launch(b, g, s, graphs);
		tokg_step_launch(c, b, g, s, graphs);
		if (b->tid == 0)
			s->quiet = s->launched == before ? s->quiet + 1 : 0;
		tokg_scan_end(c, b, &s->scan, n, s->quiet == 0);
	} while (!s->scan.leave && !tokg_window_over(s->launched, s->quiet));
	if (s->scan.leave)
		return;
	tokg_words_save(b, &g->scan, &s->scan, sizeof(s->scan));
	tokg_sync(b);
	if (b->tid == 0) {
		tokg_own_fence();
		g->failed = tokg_graph_relaunch();
	}
}

/* Where the jobs of a record of a slot are counted. */
TOKG_DEV struct tokg_state *
tokg_record_of(const tokg_consumer *c, const tokg_job *j)
{
	return c->records + (uint64_t)(c->g.slot_bytes / TOKD_RING_ALIGN) * j->slot + j->part;
}

/*
 * The first kernel of an embedding graph, block `block` of `blocks`. What is one job is embedded
 * here, too.
 */
TOKG_DEV void
tokg_child_check(const tokg_consumer *c, tokg_block *b, struct tokg_child *child, tokg_hand *h,
	uint32_t block, uint32_t blocks)
{
	const uint32_t n = (uint32_t)tokg_own_ld(&child->n);

	b->shared = &h->reduce;
	if (b->tid == 0)
		h->leave = false;
	for (uint32_t k = block; k < n; k += blocks) {
		tokg_taken *const t = &h->item.taken;

		tokg_words_load(b, t, &child->taken[k], sizeof(*t));
		tokg_sync(b);
		const bool right = tokg_slot_check(c, b, h, t);
		const bool one = right && h->walk.jobs == 1;

		if (b->tid == 0) {
			child->rows[k] =
				right && !one ? (uint64_t)h->walk.n << 32 | h->walk.jobs : 0;
			if (one)
				h->item.job = tokg_job_make(c, t, 1, 0, 0);
			else
				child->taken[k] = *t; /* its header may have been read again */
			TOKG_STAMP(h->item.job.begun);
		}
		tokg_sync(b);
		if (one) {
			const uint64_t status = tokg_job_rows(c, b, &h->item.job);

			if (b->tid == 0)
				tokg_job_finish(c, &h->item.job, NULL, status);
			tokg_sync(b);
		}
	}
}

/* The second kernel: the rows that are left. Jobs of all slots, one after the other, in turns. */
TOKG_DEV void
tokg_child_rows(const tokg_consumer *c, tokg_block *b, struct tokg_child *child, tokg_hand *h,
	uint32_t block, uint32_t blocks)
{
	const uint32_t n = (uint32_t)tokg_own_ld(&child->n);
	uint32_t before = 0, next = block;

	b->shared = &h->reduce;
	for (uint32_t k = 0; k < n; k++) {
		const uint64_t rows = tokg_own_ld(&child->rows[k]);
		const uint32_t jobs = (uint32_t)rows;

		for (; next < before + jobs; next += blocks) {
			tokg_job *const j = &h->item.job;

			if (b->tid == 0) {
				*j = tokg_job_make(c, &child->taken[k], (uint32_t)(rows >> 32), 0,
					next - before);
				TOKG_STAMP(j->begun);
			}
			tokg_sync(b);
			const uint64_t status = tokg_job_rows(c, b, j);

			if (b->tid == 0)
				tokg_job_finish(c, j, tokg_record_of(c, j), status);
			tokg_sync(b);
		}
		before += jobs;
	}
}

/* The engine's step: at most one token for each lane. Or the relay's: all that is made. */
TOKG_DEV void
tokg_step(const tokg_consumer *c, tokg_block *b, struct tokg_schedule *g)
{
	for (uint32_t p = b->tid; p < c->g.producers; p += b->n)
		tokg_lanes_pass(c, p);
	tokg_sync(b);
	if (b->tid == 0)
		tokg_own_st_release(&g->steps_ended, tokg_own_ld(&g->steps_ended) + 1);
}
