/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For an external engine: shows it the lanes, and writes what it makes into the ring. The engine
 * reaches nothing of the ring itself, and nothing that it writes is trusted: whatever it does, a
 * producer gets ids of the table, not more than it granted, and an end. A thread has some of the
 * producers, as in engine.cuh.
 */
#pragma once

#include "engine_area.h"
#include "lanes.cuh"

static_assert(TOKG_TOKEN_ID(~0ull) >> TOKD_ENGINE_ID_BITS == 0, "ids have the bits of the log");
static_assert((int)TOKD_LANE_STOP == TOKG_END_STOP && (int)TOKD_LANE_LENGTH == TOKG_END_LENGTH &&
		      (int)TOKD_LANE_CANCELLED == TOKG_END_CANCELLED &&
		      (int)TOKD_LANE_CUT == TOKG_END_CUT && (int)TOKD_LANE_STALE == TOKG_END_STALE,
	"ends must be equal");

/* How its use ended is the last that the engine sees of a lane. */
TOKG_DEV void
tokg_relay_show(struct tokd_lane_shown *to, uint32_t use, uint32_t state)
{
	tokg_st(&to->state, TOKD_LANE(state, use));
}

/*
 * Takes what the engine has made. False: it broke the rules, or an engine before it has stored
 * late.
 */
TOKG_DEV bool
tokg_relay_take(const tokg_consumer *c, tokg_look *l, uint32_t index, uint32_t made)
{
	const uint32_t *const ids = c->engine_ids + (uint64_t)index * c->room;
	const uint32_t no_id = TOKD_ENGINE_WORD(l->lane->use, 0u);

	if (made - l->made > l->may || made - l->made > c->room)
		return false;
	while (l->made != made) {
		const uint32_t word = tokg_ld32(&ids[l->made & (c->room - 1)]);
		const uint32_t id = word ^ no_id; /* the upper byte is 0 only if it is equal */

		if (id >= c->g.n_ids)
			return false;
		tokg_token_put(c, l, id);
	}
	return true;
}

/* A lane with a text that goes on. True: there were tokens. */
TOKG_DEV bool
tokg_relay_step(const tokg_consumer *c, tokg_look *l, uint32_t index)
{
	/* After `begun`, so it is not older than what the lane remembers. */
	const uint64_t engine = tokg_ld(&tokg_ctl_of(c)->engine);
	const struct tokd_lane_made *const from = &c->engine_made[index];
	const uint32_t use = l->lane->use, before = l->made;
	/* In this order: an end counts when all before it are taken. */
	const uint64_t end = tokg_ld_acquire(&from->end), made = tokg_ld_acquire(&from->made);
	const uint32_t how = (uint32_t)end;
	bool right = l->lane->engine == engine && engine != 0;

	tokg_own_st(&l->lane->grant, TOKD_LANE(l->made + l->may, use));
	tokg_st(&c->shown[index].grant, TOKD_LANE(l->made + l->may, use));
	if (right && made >> 32 == use)
		right = tokg_relay_take(c, l, index, (uint32_t)made);
	else if (end >> 32 == use)
		right = false; /* its count was overwritten */
	if (!right)
		tokg_lane_end(c, l, TOKG_END_CUT);
	else if (end >> 32 == use)
		tokg_lane_end(c, l,
			how == TOKD_LANE_STOP || how == TOKD_LANE_LENGTH ? (enum tokg_end)how
									 : TOKG_END_CUT);
	else if (l->final && l->may == 0)
		tokg_lane_end(c, l, TOKG_END_LENGTH);
	return l->made != before;
}

/* Looks at all lanes of a producer. True: it took tokens. */
TOKG_DEV bool
tokg_relay_pass(const tokg_consumer *c, uint32_t producer)
{
	bool made = false;

	for (uint32_t i = 0; i < c->g.lanes; i++) {
		const uint32_t index = producer * c->g.lanes + i;
		struct tokd_lane_shown *const shown = &c->shown[index];
		const uint64_t *const ended = tokg_ended_in(c, c->back, producer, i);
		tokg_lane *const lane = &c->lanes[index];
		const uint32_t turn = TOKG_BEGUN_TURN(tokg_own_ld_acquire(&lane->begun));
		uint64_t word = tokg_own_ld(ended);
		tokg_look l;

		/* Before it may end: the engine waits for what its entry names. */
		if (turn != TOKG_LANE_TURN(word)) {
			if (lane->shown != lane->use) {
				tokg_relay_show(shown, lane->use, TOKD_LANE_OPEN);
				lane->shown = lane->use;
			}
			if (tokg_lane_look(c, producer, i, &l))
				made = tokg_relay_step(c, &l, index) || made;
			word = tokg_own_ld(ended);
		}
		if (lane->shown != 0 && turn == TOKG_LANE_TURN(word)) {
			tokg_relay_show(shown, lane->shown, TOKG_LANE_BITS(word));
			lane->shown = 0;
		}
	}
	return made;
}

/*
 * Would a pass do something here? Whatever the engine stores, one pass settles it: it takes what is
 * made, remembers what it has shown, or ends the lane.
 */
TOKG_DEV bool
tokg_relay_waits(const tokg_consumer *c, uint32_t producer, uint32_t number)
{
	const uint32_t index = producer * c->g.lanes + number;
	const tokg_lane *const lane = &c->lanes[index];
	const uint64_t engine = tokg_ld(&tokg_ctl_of(c)->engine);
	const uint64_t end = tokg_ld(&c->engine_made[index].end);
	const uint64_t made = tokg_ld(&c->engine_made[index].made);
	tokg_look l;
	enum tokg_end how;
	const enum tokg_lane_state state = tokg_lane_read(c, producer, number, &l, &how);

	if (state == TOKG_LANE_FREE)
		return lane->shown != 0;
	return state == TOKG_LANE_MUST_END || lane->engine != engine || engine == 0 ||
	       end >> 32 == lane->use || (made >> 32 == lane->use && (uint32_t)made != l.made) ||
	       tokg_own_ld(&lane->grant) != TOKD_LANE(l.made + l.may, lane->use) ||
	       (l.final && l.may == 0);
}
