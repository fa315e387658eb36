/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way back: what an engine calls. gpu_ring.h has the protocol. All calls for one producer are
 * made by one thread, in any order of its lanes; threads of several producers need not wait for
 * each other.
 *
 *   tokg_log_continue   once, in each incarnation
 *   tokg_lane_look      has this lane a text, and how many tokens may it make now? Ends what must
 *                       end: cancelled, cut, or of a dead producer
 *   tokg_token_put      a token
 *   tokg_lane_end       the text is complete
 */
#pragma once

#include "consumer.cuh"

/* What tokg_lane_look found. */
struct tokg_look {
	tokg_lane *lane;
	uint32_t producer, number, turn;
	uint32_t made, may; /* tokens made; tokens it may still make */
	bool final;	    /* no more than that ever */
};

TOKG_DEV uint64_t *
tokg_ended_in(const tokg_consumer *c, uint8_t *back, uint32_t producer, uint32_t lane)
{
	return (uint64_t *)(back + (tokg_ended_at(&c->g, producer, lane) - c->g.back_off));
}

/*
 * Words that an older incarnation wrote after the last position that it noted stay, because a
 * producer may have read them. They were written in order, so there are no gaps.
 */
TOKG_DEV void
tokg_log_continue(const tokg_consumer *c, uint32_t producer)
{
	uint64_t at = tokg_own_ld(&c->log_head[producer]);

	while (TOKG_TOKEN_LAP(tokg_ld(tokg_word(c, tokg_log_at(&c->g, producer, at)))) ==
		tokg_lap_of(&c->g, at))
		at++;
	tokg_own_st(&c->log_head[producer], at);
}

/* The text may have no more than it was granted. */
TOKG_DEV void
tokg_token_put(const tokg_consumer *c, tokg_look *l, uint32_t id)
{
	uint64_t *const head = &c->log_head[l->producer];
	const uint64_t at = tokg_own_ld(head);

	tokg_st(tokg_word(c, tokg_log_at(&c->g, l->producer, at)),
		TOKG_TOKEN(id, l->number, l->turn, tokg_lap_of(&c->g, at)));
	tokg_own_st(head, at + 1);
	l->made++;
	l->may--;
	tokg_own_st(&l->lane->made, l->made);
}

TOKG_DEV void
tokg_lane_end(const tokg_consumer *c, const tokg_look *l, enum tokg_end how)
{
	const uint64_t word = TOKG_LANE_WORD(l->made, l->turn, how);

	tokg_fence();
	if (c->back_far != NULL) {
		tokg_st_fenced(tokg_ended_in(c, c->back_far, l->producer, l->number), word);
		tokg_own_fence();
	}
	tokg_st_fenced(tokg_ended_in(c, c->back, l->producer, l->number), word);
}

enum tokg_lane_state { TOKG_LANE_FREE, TOKG_LANE_OPEN, TOKG_LANE_MUST_END };

/* Reads a lane, and writes nothing. MUST_END: *how says why. */
TOKG_DEV enum tokg_lane_state
tokg_lane_read(const tokg_consumer *c, uint32_t producer, uint32_t number, tokg_look *l,
	enum tokg_end *how)
{
	tokg_lane *const lane = &c->lanes[(uint64_t)producer * c->g.lanes + number];
	const uint64_t begun = tokg_own_ld_acquire(&lane->begun);
	const uint32_t turn = TOKG_BEGUN_TURN(begun);
	uint64_t ask, epoch;

	if (turn == TOKG_LANE_TURN(tokg_own_ld(tokg_ended_in(c, c->back, producer, number))))
		return TOKG_LANE_FREE;
	*l = {lane, producer, number, turn, (uint32_t)tokg_own_ld(&lane->made), 0, false};
	ask = tokg_ld(tokg_word(c, tokg_ask_at(&c->g, producer, number)));
	epoch = tokg_get(&lane->epoch);
	if (TOKG_LANE_TURN(ask) != turn || TOKG_ASK_EPOCH_BITS(ask) != TOKG_EPOCH_BITS(epoch))
		ask = 0;
	if (begun >> 16 != c->incarnation)
		*how = TOKG_END_CUT;
	else if (epoch != tokg_epoch_now(c, producer)) /* read after `begun` */
		*how = TOKG_END_STALE;
	else if (ask & TOKG_ASK_CANCEL)
		*how = TOKG_END_CANCELLED;
	else {
		l->may = TOKG_LANE_N(ask) > l->made ? TOKG_LANE_N(ask) - l->made : 0;
		l->final = (ask & TOKG_ASK_FINAL) != 0;
		return TOKG_LANE_OPEN;
	}
	return TOKG_LANE_MUST_END;
}

/* False: the lane has no text, or it has just ended. */
TOKG_DEV bool
tokg_lane_look(const tokg_consumer *c, uint32_t producer, uint32_t number, tokg_look *l)
{
	enum tokg_end how;
	const enum tokg_lane_state state = tokg_lane_read(c, producer, number, l, &how);

	if (state == TOKG_LANE_MUST_END)
		tokg_lane_end(c, l, how);
	return state == TOKG_LANE_OPEN;
}
