/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hot: lanes, by which ids that are made for a text come back. gpu_ring.h has the protocol.
 *
 *           generate          posted           done read
 *   FREE ─────────────▶ TAKEN ──────▶ POSTED ───────────▶ SETTLED ──▶ FREE
 *                                                            when `ended` and all tokens are read
 *
 * A lane is free when its slot is done *and* its turn has ended: a slot that a restarted consumer
 * does again must not begin a turn that is over.
 */
#include "sink_inside.h"

static struct tokg_sink_lane *
lane_of(struct tokg_sink *s, uint32_t flags)
{
	return &s->lane[TOKG_FLAGS_LANE(flags)];
}

static bool
is_turn_of(const struct tokg_sink_lane *l, uint32_t flags)
{
	return l->state >= TOKG_LANE_POSTED && l->turn == TOKG_FLAGS_TURN(flags);
}

static void
set_due(struct tokg_sink *s, struct tokg_sink_lane *l, bool due)
{
	s->asks_due += due;
	s->asks_due -= l->due;
	l->due = due;
}

uint32_t
tokg_sink_lanes(const struct tokg_sink *s)
{
	return __atomic_load_n(&s->n_lanes, __ATOMIC_RELAXED);
}

uint32_t
tokg_sink_lanes_used(const struct tokg_sink *s)
{
	return __atomic_load_n(&s->lanes_used, __ATOMIC_RELAXED);
}

/* No token of it counts any more. */
static void
forgive(struct tokg_sink *s, struct tokg_sink_lane *l)
{
	s->owed -= l->granted - l->taken;
	l->granted = l->taken;
}

static void
set_free(struct tokg_sink *s, struct tokg_sink_lane *l)
{
	forgive(s, l);
	s->lanes_taken -= l->state == TOKG_LANE_TAKEN;
	s->lanes_used--;
	l->state = TOKG_LANE_FREE;
}

/* Raises what is granted: in steps of half a quota, so that not every token costs a WRITE. */
static void
raise_grant(struct tokg_sink *s, struct tokg_sink_lane *l)
{
	const uint32_t most = l->room < l->limit ? l->room : l->limit;
	const uint32_t reach = l->taken + s->quota;
	const uint32_t to = reach < most ? reach : most;

	if (!l->whole || l->told || to <= l->granted ||
		(to != most && l->granted - l->taken > s->quota / 2))
		return;
	s->owed += to - l->granted;
	l->granted = to;
	set_due(s, l, true);
}

static uint64_t
ask_of(const struct tokg_sink *s, const struct tokg_sink_lane *l)
{
	const uint32_t bits =
		(l->told ? TOKG_ASK_CANCEL : 0) | (l->granted == l->limit ? TOKG_ASK_FINAL : 0);

	return TOKG_ASK(l->granted, s->t->epoch, l->turn, bits);
}

uint32_t
tokg_sink_generate(struct tokg_sink *s, uint64_t serial, uint32_t limit)
{
	uint32_t i = 0;

	if (s->lanes_used >= s->n_lanes || serial < tokg_sink_shed_below(s))
		return TOKG_NO_LANE;
	while (i < s->n_lanes && s->lane[i].state != TOKG_LANE_FREE)
		i++;
	if (i == s->n_lanes)
		return TOKG_NO_LANE;
	s->lane[i] = (struct tokg_sink_lane){.serial = serial,
		.turn = s->lane[i].turn,
		.ended_turn = s->lane[i].ended_turn,
		.limit = limit,
		.state = TOKG_LANE_TAKEN,
		.due = s->lane[i].due};
	s->lanes_used++;
	s->lanes_taken++;
	return i;
}

void
tokg_sink_grant(struct tokg_sink *s, uint32_t lane, uint32_t tokens)
{
	struct tokg_sink_lane *l = &s->lane[lane];

	l->room += tokens < l->limit - l->room ? tokens : l->limit - l->room;
	raise_grant(s, l);
}

/* The engine is told; what still comes is dropped. */
static void
stop(struct tokg_sink *s, struct tokg_sink_lane *l)
{
	l->told = true;
	if (l->state == TOKG_LANE_TAKEN)
		set_free(s, l);
	else if (!l->ended)
		set_due(s, l, true);
}

void
tokg_sink_cancel(struct tokg_sink *s, uint32_t lane)
{
	stop(s, &s->lane[lane]);
}

void
tokg_sink_lane_failed(struct tokg_sink *s, uint64_t serial)
{
	for (uint32_t i = 0; s->lanes_used > 0 && i < TOKG_LANES_MAX; i++) {
		struct tokg_sink_lane *l = &s->lane[i];

		if (l->state != TOKG_LANE_FREE && l->serial == serial && !l->told)
			stop(s, l);
	}
}

uint32_t
tokg_sink_lane_for(const struct tokg_sink *s, const struct tokd_rec *rec)
{
	if (__builtin_expect(s->lanes_taken == 0, 1) || !(rec->flags & TOKD_REC_LAST))
		return 0;
	for (uint32_t i = 0; i < s->n_lanes; i++) {
		if (s->lane[i].state == TOKG_LANE_TAKEN && s->lane[i].serial == rec->serial)
			return i + 1;
	}
	return 0;
}

uint32_t
tokg_sink_lane_flags(const struct tokg_sink *s, uint32_t lane)
{
	const struct tokg_sink_lane *l = &s->lane[lane];
	uint32_t turn = tokg_turn_after(l->turn);

	/* Posts that fail use up turns, and nothing begins: none may come back as over. */
	if (turn == l->ended_turn)
		turn = tokg_turn_after(turn);
	return TOKG_GENERATE_FLAGS(lane, turn);
}

void
tokg_sink_lane_posted(struct tokg_sink *s, uint32_t flags, bool alone)
{
	struct tokg_sink_lane *l = lane_of(s, flags);

	l->turn = TOKG_FLAGS_TURN(flags);
	l->state = TOKG_LANE_POSTED;
	l->whole = alone;
	s->lanes_taken--;
	raise_grant(s, l);
	/* Also if nothing is granted: no ask is older than the turn before. */
	set_due(s, l, true);
}

static void
settle(struct tokg_sink *s, struct tokg_sink_lane *l)
{
	if (l->state == TOKG_LANE_SETTLED && l->ended)
		set_free(s, l);
}

void
tokg_sink_lane_settled(struct tokg_sink *s, uint32_t flags, enum tokg_status status)
{
	struct tokg_sink_lane *l = lane_of(s, flags);

	if (!is_turn_of(l, flags))
		return;
	if (status != TOKG_OK) { /* it never began */
		set_free(s, l);
		return;
	}
	l->state = TOKG_LANE_SETTLED;
	settle(s, l);
}

void
tokg_sink_lane_whole(struct tokg_sink *s, uint32_t flags)
{
	struct tokg_sink_lane *l = lane_of(s, flags);

	if (!is_turn_of(l, flags))
		return;
	l->whole = true;
	raise_grant(s, l);
}

int
tokg_sink_ask_all(struct tokg_sink *s)
{
	for (uint32_t i = 0; s->asks_due > 0 && i < s->n_lanes; i++) {
		struct tokg_sink_lane *l = &s->lane[i];
		int rc;

		if (!l->due)
			continue;
		rc = s->t->ops->ask(s->t, i, ask_of(s, l));
		if (rc != 1)
			return rc;
		s->poll_posts++; /* it is to be flushed */
		set_due(s, l, false);
	}
	return 1;
}

/* One word of the log. False: it cannot be. */
static bool
take_token(struct tokg_sink *s, uint64_t word)
{
	const uint32_t i = TOKG_TOKEN_LANE(word);
	struct tokg_sink_lane *l = &s->lane[i];

	if (i >= s->n_lanes || TOKG_TOKEN_ID(word) >= s->t->geometry.n_ids)
		return false;
	/* Behind the end of a turn that was cut. */
	if (l->state < TOKG_LANE_POSTED || l->turn != TOKG_TOKEN_TURN(word) || l->ended)
		return true;
	if (l->taken == l->granted)
		return false;
	l->taken++;
	s->owed--;
	raise_grant(s, l);
	if (!l->told)
		s->token(s->owner, i, l->serial, l->taken - 1, TOKG_TOKEN_ID(word));
	return true;
}

/* `ended` of a lane. False: it cannot be. */
static bool
take_end(struct tokg_sink *s, uint32_t i, uint64_t word)
{
	struct tokg_sink_lane *l = &s->lane[i];

	l->ended_turn = TOKG_LANE_TURN(word);
	if (l->state < TOKG_LANE_POSTED || l->ended || l->turn != l->ended_turn)
		return true;
	if (TOKG_LANE_N(word) > l->granted || TOKG_LANE_BITS(word) == 0 ||
		TOKG_LANE_BITS(word) >= TOKG_END_LOST)
		return false;
	/* With the log: what a turn that was cut left there is read before the next one's end. */
	if (!s->reading_log) {
		s->log_due = true;
		s->news = true;
		return true;
	}
	/* The READ was too early for the last tokens. A turn that was cut may have one more. */
	if (l->taken < TOKG_LANE_N(word))
		return true;
	l->ended = true;
	forgive(s, l);
	s->news = true;
	if (!l->told) {
		l->told = true;
		s->ended(s->owner, i, l->serial, (enum tokg_end)TOKG_LANE_BITS(word));
	}
	settle(s, l);
	return true;
}

static bool
take_log(struct tokg_sink *s, const uint64_t *log)
{
	const struct tokg_geometry *g = &s->t->geometry;

	for (;;) {
		const uint64_t word = log[s->log_at & (g->log - 1)];

		if (TOKG_TOKEN_LAP(word) != tokg_lap_of(g, s->log_at))
			return true;
		s->log_at++;
		s->news = true;
		if (!take_token(s, word))
			return tokg_sink_break(s, TOKG_BREACH);
	}
}

uint32_t
tokg_sink_read_bytes(struct tokg_sink *s)
{
	const struct tokg_geometry *g = &s->t->geometry;

	s->reading_lanes = s->lanes_used > 0;
	s->reading_log = s->reading_lanes && (s->owed > 0 || s->log_due);
	s->log_due = false;
	return tokg_back_bytes(g, s->reading_lanes) -
	       (s->reading_lanes && !s->reading_log ? 8 * g->log : 0);
}

bool
tokg_sink_take_tokens(struct tokg_sink *s)
{
	const struct tokg_geometry *g = &s->t->geometry;
	uint64_t *ended = s->t->done + g->slots;

	if (s->reading_log && !take_log(s, ended + g->lanes))
		return false;
	/* A lap of 0 is none: what is zero is not taken again. */
	if (s->reading_log && s->wipe)
		memset(ended + g->lanes, 0, 8 * (size_t)g->log);
	for (uint32_t i = 0; s->lanes_used > 0 && i < s->n_lanes; i++) {
		if (!take_end(s, i, ended[i]))
			return tokg_sink_break(s, TOKG_BREACH);
	}
	return true;
}

static void
lose(struct tokg_sink *s, uint32_t i)
{
	struct tokg_sink_lane *l = &s->lane[i];
	const bool told = l->told;

	l->told = true;
	set_free(s, l);
	if (!told)
		s->ended(s->owner, i, l->serial, TOKG_END_LOST);
}

void
tokg_sink_cut(struct tokg_sink *s)
{
	for (uint32_t i = 0; s->lanes_used > 0 && i < TOKG_LANES_MAX; i++) {
		if (s->lane[i].state != TOKG_LANE_FREE)
			lose(s, i);
	}
}

/* The record will be posted again, and nothing was made for it. */
static bool
begins_anew(const struct tokg_sink_lane *l)
{
	return l->state == TOKG_LANE_TAKEN ||
	       (l->state == TOKG_LANE_POSTED && l->taken == 0 && !l->told);
}

/* The end of the log while nobody writes it: after the words of its newest lap. */
static uint64_t
end_of_log(const uint64_t *log, uint32_t n)
{
	const uint32_t lap = TOKG_TOKEN_LAP(log[0]);
	uint64_t at = 1;

	if (lap == 0)
		return 0;
	while (at < n && TOKG_TOKEN_LAP(log[at]) == lap)
		at++;
	return (uint64_t)(lap - 1) * n + at;
}

void
tokg_sink_lanes_begin(struct tokg_sink *s)
{
	const struct tokg_geometry *g = &s->t->geometry;
	const uint64_t *ended = s->t->done + g->slots;

	for (uint32_t i = 0; s->lanes_used > 0 && i < TOKG_LANES_MAX; i++) {
		struct tokg_sink_lane *l = &s->lane[i];

		if (l->state == TOKG_LANE_FREE)
			continue;
		if (i >= g->lanes || !begins_anew(l)) {
			lose(s, i);
			continue;
		}
		s->lanes_taken += l->state != TOKG_LANE_TAKEN;
		l->state = TOKG_LANE_TAKEN;
		forgive(s, l);
		l->whole = l->ended = false;
	}
	for (uint32_t i = 0; i < TOKG_LANES_MAX; i++)
		set_due(s, &s->lane[i], false);
	s->n_lanes = g->lanes;
	if (g->lanes == 0)
		return;
	for (uint32_t i = 0; i < g->lanes; i++)
		s->lane[i].turn = s->lane[i].ended_turn = TOKG_LANE_TURN(ended[i]);
	/* A turn that was cut may leave a word. */
	s->quota = g->log / g->lanes - 1;
	s->log_due = false;
	s->log_at = end_of_log(ended + g->lanes, g->log);
}

void
tokg_sink_lanes_resume(struct tokg_sink *s)
{
	/* Of free ones, too: else the next turn may find an ask of two turns before. */
	for (uint32_t i = 0; i < s->n_lanes; i++)
		set_due(s, &s->lane[i], s->lane[i].turn != 0);
	s->resumed = false;
}
