/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine that stands in for a model: the next id follows from the last two by a rule that the
 * other end can compute. A block of its own; each thread has some of the producers. A pass makes at
 * most one token for each lane, as a model makes one for each text of its batch.
 */
#pragma once

#include "engine_rule.h"
#include "lanes.cuh"
#include "relay.cuh"

TOKG_DEV void
tokg_engine_step(const tokg_consumer *c, tokg_look *l)
{
	const uint32_t last = (uint32_t)tokg_own_ld(&l->lane->last);
	const uint32_t before = (uint32_t)tokg_own_ld(&l->lane->before);
	const uint32_t prompt = (uint32_t)tokg_own_ld(&l->lane->prompt);
	const uint32_t next = tokg_engine_next(last, before, prompt, c->g.n_ids);

	if (next == c->stop_id) {
		tokg_lane_end(c, l, TOKG_END_STOP);
		return;
	}
	tokg_own_st(&l->lane->last, next);
	tokg_own_st(&l->lane->before, last);
	tokg_token_put(c, l, next);
}

/* Looks at all lanes of a producer. True: it made tokens. */
TOKG_DEV bool
tokg_engine_pass(const tokg_consumer *c, uint32_t producer)
{
	bool made = false;

	for (uint32_t i = 0; i < c->g.lanes; i++) {
		tokg_look l;

		if (!tokg_lane_look(c, producer, i, &l))
			continue;
		if (l.may > 0) {
			tokg_engine_step(c, &l);
			made = true;
		} else if (l.final) {
			tokg_lane_end(c, &l, TOKG_END_LENGTH);
		}
	}
	return made;
}

/* Would a pass do something here? */
TOKG_DEV bool
tokg_engine_waits(const tokg_consumer *c, uint32_t producer, uint32_t number)
{
	tokg_look l;
	enum tokg_end how;
	const enum tokg_lane_state state = tokg_lane_read(c, producer, number, &l, &how);

	return state == TOKG_LANE_MUST_END || (state == TOKG_LANE_OPEN && (l.may > 0 || l.final));
}

/* By another than the engine or relay, while neither runs. */
TOKG_DEV bool
tokg_lane_waits(const tokg_consumer *c, uint32_t producer, uint32_t number)
{
	if (c->shown == NULL)
		return tokg_engine_waits(c, producer, number);
	return tokg_relay_waits(c, producer, number);
}

/* The stand-in's, or an external engine's. */
TOKG_DEV bool
tokg_lanes_pass(const tokg_consumer *c, uint32_t producer)
{
	if (c->shown == NULL)
		return tokg_engine_pass(c, producer);
	return tokg_relay_pass(c, producer);
}

/* Runs until the consumer ends. */
TOKG_DEV void
tokg_engine(const tokg_consumer *c, tokg_block *b)
{
	uint64_t since = 0;
	bool leaves = false;

	/* Nothing here waits for all threads. */
	if (b->tid >= c->g.producers)
		return;
	for (uint32_t p = b->tid; p < c->g.producers; p += b->n)
		tokg_log_continue(c, p);
	for (uint32_t pass = 1; !leaves; pass++) {
		bool made = false;

		for (uint32_t p = b->tid; p < c->g.producers; p += b->n)
			made = tokg_lanes_pass(c, p) || made;
		tokg_idle(b, made);
		leaves = pass % 64 == 0 && tokg_worker_leaves(c, &since, pass);
	}
}
