/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matchers to one table of steps (enum tok_pretok_step).
 *
 * Matcher n - 1, the last, tries to match where a piece begins. What it does not match is a gap: a
 * character that begins no match joins the gap, and the next one is tried. Bytes are held while a
 * later character decides whether they are in the match.
 *
 * The matchers before it split first: where one of their pieces ends, the text ends for the later
 * ones. They must know that from the next character alone, so they hold nothing.
 *
 *   regexes     \p{N}, then [ab]+c           held      state
 *   text        a  b  7  ...
 *   step        HOLD                         a         HOLD_NEW
 *                  HOLD                      ab        HOLD_NEW
 *                     AGAIN                            SKIP_NEW: the end of the text, to the last
 *               TAKE                                   GAP
 *                  HOLD                      b         HOLD_GAP
 *                     AGAIN, TAKE                      GAP
 *                     CLOSE                            FRESH
 *                     TAKE_CLOSE                       FRESH
 */
#include <stdlib.h>
#include <string.h>

#include "inside.h"
#include "pretokenize/pretok.h"

#define BEFORE_MAX (TOK_SPLITS_MAX - 1) /* matchers before the last */

/* What the last matcher does. */
enum phase {
	FRESH,	   /* no pretoken is open */
	HOLD_NEW,  /* no match so far; what it has read is held */
	GAP,	   /* a gap is open */
	HOLD_GAP,  /* the same, and what the matcher has read since is held */
	OPEN,	   /* a match is open */
	OPEN_HOLD, /* the same; what was read since its last end is held */
	SKIP_NEW,  /* the next character is in a gap */
	SKIP_GAP,
};

/* A matcher before the last: 0: no piece is open. */
#define AT_START 0
#define IN_GAP 1
#define IN_MATCH 2 /* and its state */

struct at {
	uint16_t phase, state;
	uint16_t before[BEFORE_MAX]; /* states of the matchers before the last */
	uint16_t held[BEFORE_MAX];   /* the same, where held bytes begin; 0 if none are held */
};

struct maker {
	struct rx *rx;
	const struct rx_matcher *matcher, *last;
	uint32_t n_before;
};

static enum tok_pretok_step
to(struct at *at, enum phase phase, uint32_t state, enum tok_pretok_step step)
{
	at->phase = (uint16_t)phase;
	at->state = (uint16_t)state;
	return step;
}

/* Go back to where the held bytes begin. */
static void
back(struct at *at)
{
	memcpy(at->before, at->held, sizeof(at->before));
	memset(at->held, 0, sizeof(at->held));
}

/* ---- the matchers before the last ---- */

/* A match begins with a character of class c, or a gap does. False: it is not known. */
static bool
begin_before(const struct rx_matcher *m, uint32_t c, uint16_t *state)
{
	const uint16_t next = m->go[c];

	if (next == RX_DEAD)
		*state = IN_GAP;
	else
		*state = m->closed[next] ? AT_START : (uint16_t)(IN_MATCH + next);
	return next == RX_DEAD || m->firm[next];
}

/* *border: a piece ends before the character. */
static bool
step_before(const struct rx_matcher *m, uint32_t c, uint16_t *state, bool *border)
{
	uint16_t next;

	*border = *state == AT_START || (*state == IN_GAP && m->go[c] != RX_DEAD);
	if (*state <= IN_GAP)
		return begin_before(m, c, state);
	next = m->go[(uint32_t)(*state - IN_MATCH) * m->n_moves + c];
	if (next == RX_DEAD) {
		*border = true;
		return begin_before(m, c, state);
	}
	*state = m->closed[next] ? AT_START : (uint16_t)(IN_MATCH + next);
	return m->firm[next];
}

/*
 * All of them. *border: the first of which a piece ends before the character, which ends a piece of
 * those after it too; or n_before. *ends: a piece is sure to end behind the character.
 */
static bool
step_all_before(const struct maker *mk, uint32_t c, uint16_t *state, uint32_t *border, bool *ends)
{
	*border = mk->n_before;
	*ends = false;
	for (uint32_t i = 0; i < mk->n_before; i++) {
		bool here;

		if (*border < i)
			state[i] = AT_START;
		if (!step_before(&mk->matcher[i], c, &state[i], &here))
			return tok_fail(mk->rx->err,
				"%s: regular expression %u of %u looks beyond the next character, "
				"which only the last one may",
				mk->rx->where, i + 1, mk->n_before + 1);
		if (here && i < *border)
			*border = i;
		*ends = *ends || state[i] == AT_START;
	}
	return true;
}

/* ---- the last ---- */

static bool
holds(const struct at *at)
{
	return at->phase == HOLD_NEW || at->phase == HOLD_GAP || at->phase == OPEN_HOLD;
}

/* No thread goes on. ends: what is held is in the match. */
static enum tok_pretok_step
stop(struct at *at, bool ends)
{
	const enum phase phase = (enum phase)at->phase;
	const bool held = holds(at);

	if (held && (phase == HOLD_GAP || !ends))
		back(at);
	memset(at->held, 0, sizeof(at->held));
	if (phase == HOLD_NEW && !ends)
		return to(at, SKIP_NEW, 0, TOK_STEP_AGAIN);
	if (phase == HOLD_GAP && !ends)
		return to(at, SKIP_GAP, 0, TOK_STEP_AGAIN);
	return to(at, FRESH, 0,
		held && phase != HOLD_GAP && ends ? TOK_STEP_HELD_CLOSE : TOK_STEP_CLOSE);
}

/*
 * The text of the last matcher ends, because a piece of matcher `border` does. If no held bytes
 * come first, that matcher and those after it begin with the next character.
 */
static enum tok_pretok_step
step_end(const struct maker *mk, struct at *at, uint32_t border)
{
	const struct rx_matcher *m = mk->last;
	const bool held = holds(at);
	const enum tok_pretok_step result =
		stop(at, m->ends[(uint32_t)at->state * m->n_moves + m->n_moves - 1]);

	for (uint32_t i = border; (!held || result == TOK_STEP_HELD_CLOSE) && i < BEFORE_MAX; i++)
		at->before[i] = AT_START;
	return result;
}

/* A character goes on or begins a match, which may end before it. */
static enum tok_pretok_step
step_match(
	const struct rx_matcher *m, struct at *at, uint16_t next, bool ends, const uint16_t *before)
{
	const bool held = at->phase == HOLD_NEW || at->phase == OPEN_HOLD;

	if (m->firm[next]) {
		memset(at->held, 0, sizeof(at->held));
		memcpy(at->before, before, sizeof(at->before));
		if (m->closed[next])
			return to(at, FRESH, 0, TOK_STEP_TAKE_CLOSE);
		return to(at, OPEN, next, TOK_STEP_TAKE);
	}
	if (!held || ends)
		memcpy(at->held, at->before, sizeof(at->held));
	memcpy(at->before, before, sizeof(at->before));
	if (held && ends)
		return to(at, OPEN_HOLD, next, TOK_STEP_TAKE_HOLD);
	return to(at, at->phase == FRESH || at->phase == HOLD_NEW ? HOLD_NEW : OPEN_HOLD, next,
		TOK_STEP_HOLD);
}

/* Inside one piece of the matchers before, whose states become before[]. */
static enum tok_pretok_step
step_last(const struct maker *mk, struct at *at, uint32_t c, const uint16_t *before)
{
	const struct rx_matcher *m = mk->last;
	const uint32_t move = (uint32_t)at->state * m->n_moves + c;
	const uint16_t next = m->go[move];
	const bool ends = m->ends[move];

	switch ((enum phase)at->phase) {
	case FRESH:
	case GAP:
		if (next != RX_DEAD && at->phase == FRESH)
			return step_match(m, at, next, ends, before);
		if (next != RX_DEAD && m->firm[next])
			return to(at, FRESH, 0, TOK_STEP_CLOSE);
		if (next != RX_DEAD)
			memcpy(at->held, at->before, sizeof(at->held));
		memcpy(at->before, before, sizeof(at->before));
		return next == RX_DEAD ? to(at, GAP, 0, TOK_STEP_TAKE)
				       : to(at, HOLD_GAP, next, TOK_STEP_HOLD);
	case HOLD_GAP:
		if (next != RX_DEAD && !m->firm[next] && !ends) {
			memcpy(at->before, before, sizeof(at->before));
			return to(at, HOLD_GAP, next, TOK_STEP_HOLD);
		}
		return stop(at, ends || next != RX_DEAD);
	case HOLD_NEW:
	case OPEN:
	case OPEN_HOLD:
		return next == RX_DEAD ? stop(at, ends) : step_match(m, at, next, ends, before);
	case SKIP_NEW:
	case SKIP_GAP:
		memcpy(at->before, before, sizeof(at->before));
		return to(at, GAP, 0, TOK_STEP_TAKE);
	}
	return TOK_STEP_CLOSE;
}

/* ---- all ---- */

/* The step for a character of class c; *at becomes the state after it. False: refused. */
static bool
step(const struct maker *mk, struct at *at, uint32_t c, enum tok_pretok_step *result)
{
	const enum phase phase = (enum phase)at->phase;
	uint16_t before[BEFORE_MAX];
	uint32_t border;
	bool ends;

	memcpy(before, at->before, sizeof(before));
	if (!step_all_before(mk, c, before, &border, &ends))
		return false;
	if (border < mk->n_before && (holds(at) || phase == GAP || phase == OPEN)) {
		*result = step_end(mk, at, border);
		return true;
	}
	*result = step_last(mk, at, c, before);
	if (ends && *result == TOK_STEP_TAKE && (at->phase == GAP || at->phase == OPEN))
		*result = to(at, FRESH, 0, TOK_STEP_TAKE_CLOSE);
	return true;
}

/* Groups of states that a minimal machine never joins: what is open and what is held differ. */
static uint16_t
group_of(const uint16_t *key)
{
	switch ((enum phase)key[0]) {
	case FRESH:
		return 0;
	case GAP:
	case OPEN:
		return 1;
	case HOLD_NEW:
		return 2;
	case HOLD_GAP:
	case OPEN_HOLD:
		return 3;
	case SKIP_NEW:
	case SKIP_GAP:
		break;
	}
	return 4;
}

/* A step and the state after it, as in the table. */
static uint16_t
entry(enum tok_pretok_step result, uint32_t next)
{
	return (uint16_t)(next << TOK_STEP_BITS | (uint32_t)result);
}

/* Steps of all states that can be reached: to[state * width + class]. */
static bool
reach(const struct maker *mk, struct rx_keys *keys, uint16_t *to, uint32_t width)
{
	struct at at = {0};

	if (rx_number(mk->rx, keys, (const uint16_t *)&at, sizeof(at) / 2) == RX_NO_NUMBER)
		return false;
	for (uint32_t s = 0; s < keys->n; s++) {
		for (uint32_t c = 0; c < width; c++) {
			enum tok_pretok_step result;
			uint32_t next;

			memcpy(&at, keys->entry[s].key, sizeof(at));
			if (c == width - 1)
				result = step_end(mk, &at, 0);
			else if (!step(mk, &at, c, &result))
				return false;
			next = rx_number(mk->rx, keys, (const uint16_t *)&at, sizeof(at) / 2);
			if (next == RX_NO_NUMBER)
				return false;
			to[s * width + c] = entry(result, next);
		}
	}
	return true;
}

/*
 * Join states that no text tells apart: split groups while some have members with different steps
 * (Moore). group[] becomes the numbers of the minimal machine's states. Returns how many, or 0.
 */
static uint32_t
minimize(const struct rx *rx, const uint16_t *to, uint32_t n, uint32_t width, uint16_t *group)
{
	uint32_t before = 0, now = 0;

	do {
		struct rx round = {.where = rx->where, .err = rx->err};
		struct rx_keys *keys = rx_alloc(&round, 1, sizeof(*keys));
		uint16_t *key = rx_alloc(&round, width + 1, sizeof(*key));
		uint16_t *next = rx_alloc(&round, n, sizeof(*next));

		before = now;
		now = 0;
		for (uint32_t s = 0; keys != NULL && key != NULL && next != NULL && s < n; s++) {
			key[0] = group[s];
			for (uint32_t c = 0; c < width; c++) {
				const uint16_t e = to[s * width + c];

				key[1 + c] = entry((enum tok_pretok_step)(e & TOK_STEP_MASK),
					group[e >> TOK_STEP_BITS]);
			}
			next[s] = (uint16_t)rx_number(&round, keys, key, width + 1);
			now = keys->n; /* there are not more of them than states */
		}
		if (now > 0)
			memcpy(group, next, n * sizeof(*next));
		rx_free(&round);
	} while (now != before);
	return now;
}

/* The table, its columns in the order of the classes' numbers. */
static bool
write_table(const struct rx_classes *classes, const uint16_t *to, uint32_t n, uint32_t width,
	const uint16_t *group, struct tok_machine *out)
{
	out->step = calloc((size_t)out->n_states * out->width, sizeof(*out->step));
	out->run = calloc(classes->n_runs, sizeof(*out->run));
	if (out->step == NULL || out->run == NULL)
		return false;
	out->n_runs = classes->n_runs;
	memcpy(out->run, classes->run, classes->n_runs * sizeof(*out->run));
	for (uint32_t s = 0; s < n; s++) {
		uint16_t *row = out->step + (size_t)group[s] * out->width;

		for (uint32_t number = 0; number < out->width; number++) {
			uint32_t c = 0; /* numbers that no class has are as the first */

			while (c < classes->n && classes->number[c] != number)
				c++;
			c = number == out->width - 1 ? classes->n : c == classes->n ? 0 : c;
			row[number] =
				entry((enum tok_pretok_step)(to[s * width + c] & TOK_STEP_MASK),
					group[to[s * width + c] >> TOK_STEP_BITS]);
		}
	}
	return true;
}

bool
rx_machine(struct rx *rx, const struct rx_matcher *matcher, uint32_t n,
	const struct rx_classes *classes, struct tok_machine *out)
{
	const struct maker mk = {rx, matcher, &matcher[n - 1], n - 1};
	const uint32_t width = classes->n + 1;
	struct rx_keys *keys = rx_alloc(rx, 1, sizeof(*keys));
	uint16_t *to = rx_alloc(rx, (size_t)TOK_REGEX_STATES_MAX * width, sizeof(*to));
	uint16_t *group = rx_alloc(rx, TOK_REGEX_STATES_MAX, sizeof(*group));

	*out = (struct tok_machine){.width = classes->width};
	if (n - 1 > BEFORE_MAX)
		return tok_fail(rx->err, "%s: %u regular expressions in a row, the limit is %u",
			rx->where, n, BEFORE_MAX + 1);
	if (keys == NULL || to == NULL || group == NULL || !reach(&mk, keys, to, width))
		return false;
	for (uint32_t s = 0; s < keys->n; s++)
		group[s] = group_of(keys->entry[s].key);
	out->n_states = minimize(rx, to, keys->n, width, group);
	if (out->n_states == 0)
		return false;
	for (uint32_t s = 0; s < keys->n; s++) {
		if (keys->entry[s].key[0] == FRESH && group[s] != 0)
			return tok_fail(rx->err,
				"%s: how the last of %u regular expressions begins depends on more "
				"than where a piece begins, which is not implemented",
				rx->where, n);
	}
	return write_table(classes, to, keys->n, width, group, out) ||
	       tok_fail(rx->err, "%s: out of memory for a regular expression", rx->where);
}
