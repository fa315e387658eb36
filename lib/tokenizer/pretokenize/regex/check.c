/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a table of steps must fulfil. Every step either takes or holds its character, or something
 * held is taken for good: so no text makes a stream loop. And what is held is stepped again a
 * bounded number of times: so the time is linear.
 */
#include <stdlib.h>
#include <string.h>

#include "pretokenize/pretok.h"
#include "regex.h"

/* What is known of a state. */
#define REACHED 1
#define HOLDS 2 /* bytes are held */
#define TAKEN 4 /* some byte of the open pretoken is taken */
#define SKIPS 8 /* it takes every character */

#define AGAIN_FOLLOWS 16 /* what is held may be stepped again after its first character */

struct table {
	const uint16_t *step;
	uint32_t n, width;
	uint8_t *what;	 /* by state */
	uint8_t *pair;	 /* [held * n + again]: 1: seen, 2: both hold on and on */
	uint32_t *stack; /* of pairs or states */
	uint32_t depth;
};

static uint16_t
entry(const struct table *t, uint32_t state, uint32_t c)
{
	return t->step[(size_t)state * t->width + c];
}

/* The state is reached with this known of it: false if it was reached with something else. */
static bool
reach(struct table *t, uint32_t state, uint8_t what)
{
	if (t->what[state] == 0) {
		t->what[state] = what | REACHED;
		t->stack[t->depth++] = state;
	}
	return t->what[state] == (what | REACHED) && (state != 0 || what == 0);
}

static bool
step_fits(struct table *t, uint32_t state, uint32_t c)
{
	const uint32_t next = entry(t, state, c) >> TOK_STEP_BITS;
	const uint8_t what = t->what[state];
	const bool end = c == t->width - 1, holds = what & HOLDS, taken = what & TAKEN;

	if (next >= t->n)
		return false;
	if (end && (state == 0 || (what & SKIPS)))
		return true; /* not used */
	switch (entry(t, state, c) & TOK_STEP_MASK) {
	case TOK_STEP_TAKE:
		return !end && reach(t, next, TAKEN);
	case TOK_STEP_TAKE_CLOSE:
		return !end && next == 0;
	case TOK_STEP_HOLD:
		return !end && !(what & SKIPS) && reach(t, next, (what & TAKEN) | HOLDS);
	case TOK_STEP_TAKE_HOLD:
		return !end && holds && reach(t, next, TAKEN | HOLDS);
	case TOK_STEP_HELD_CLOSE:
		return holds && next == 0;
	case TOK_STEP_CLOSE:
		return taken && next == 0;
	case TOK_STEP_AGAIN:
		return holds && reach(t, next, SKIPS);
	default:
		return false;
	}
}

static bool
steps_fit(struct table *t)
{
	if (!reach(t, 0, 0))
		return false;
	while (t->depth > 0) {
		const uint32_t state = t->stack[--t->depth];

		for (uint32_t c = 0; c < t->width; c++) {
			if (!step_fits(t, state, c))
				return false;
		}
	}
	for (uint32_t state = 0; state < t->n; state++) {
		if (t->what[state] == 0)
			return false;
	}
	return true;
}

/* ---- what is held is not stepped over and over ---- */

static bool
holds_on(const struct table *t, uint32_t state, uint32_t c)
{
	return c + 1 < t->width && (entry(t, state, c) & TOK_STEP_MASK) == TOK_STEP_HOLD;
}

/* Mark the states that may end with TOK_STEP_AGAIN while they hold on. */
static void
mark_again(struct table *t)
{
	for (bool more = true; more;) {
		more = false;
		for (uint32_t s = 0; s < t->n; s++) {
			bool again = false;

			for (uint32_t c = 0; c < t->width && !(t->what[s] & AGAIN_FOLLOWS); c++) {
				const uint16_t e = entry(t, s, c);

				again = again || ((t->what[s] & HOLDS) &&
							 (e & TOK_STEP_MASK) == TOK_STEP_AGAIN);
				again = again ||
					(holds_on(t, s, c) &&
						(t->what[e >> TOK_STEP_BITS] & AGAIN_FOLLOWS));
			}
			if (again)
				t->what[s] |= AGAIN_FOLLOWS;
			more = more || again;
		}
	}
}

static void
see_pair(struct table *t, uint32_t held, uint32_t again)
{
	uint8_t *pair = &t->pair[(size_t)held * t->n + again];

	if (*pair == 0) {
		*pair = 1;
		t->stack[t->depth++] = held * t->n + again;
	}
}

/*
 * While `held` holds a character of class c, the held bytes are stepped again: from state `again`
 * the character leads to which states? Where that run steps something again itself, any state that
 * the class leads to is taken.
 */
static void
see_next(struct table *t, uint32_t held, uint32_t again, uint32_t c)
{
	uint16_t e = entry(t, again, c);
	uint32_t step = e & TOK_STEP_MASK;

	if (step == TOK_STEP_HELD_CLOSE || (step == TOK_STEP_CLOSE && !(t->what[again] & HOLDS))) {
		e = entry(t, 0, c);
		step = e & TOK_STEP_MASK;
	}
	if (step != TOK_STEP_CLOSE && step != TOK_STEP_AGAIN) {
		see_pair(t, held, e >> TOK_STEP_BITS);
		return;
	}
	for (uint32_t s = 0; s < t->n; s++) {
		const uint32_t other = entry(t, s, c) & TOK_STEP_MASK;

		if (other <= TOK_STEP_TAKE_HOLD)
			see_pair(t, held, entry(t, s, c) >> TOK_STEP_BITS);
	}
}

/* Bytes begin to be held with a character of class c, which leads to `held`. */
static void
see_begin(struct table *t, uint32_t held, uint32_t c)
{
	if (!(t->what[held] & AGAIN_FOLLOWS)) {
		see_next(t, held, 0, c);
		return;
	}
	for (uint32_t s = 0; s < t->n; s++) {
		if (t->what[s] & SKIPS)
			see_pair(t, held, entry(t, s, c) >> TOK_STEP_BITS);
	}
}

static void
see_all(struct table *t)
{
	for (uint32_t s = 0; s < t->n; s++) {
		for (uint32_t c = 0; c + 1 < t->width; c++) {
			const uint32_t step = entry(t, s, c) & TOK_STEP_MASK;

			if (step == TOK_STEP_TAKE_HOLD ||
				(step == TOK_STEP_HOLD && !(t->what[s] & HOLDS)))
				see_begin(t, entry(t, s, c) >> TOK_STEP_BITS, c);
		}
	}
	while (t->depth > 0) {
		const uint32_t pair = t->stack[--t->depth];

		for (uint32_t c = 0; c + 1 < t->width; c++) {
			if (holds_on(t, pair / t->n, c))
				see_next(t, entry(t, pair / t->n, c) >> TOK_STEP_BITS, pair % t->n,
					c);
		}
	}
}

/* Does the pair lead to one that is left, both holding on? */
static bool
leads_on(const struct table *t, uint32_t held, uint32_t again)
{
	for (uint32_t c = 0; c + 1 < t->width; c++) {
		if (holds_on(t, held, c) && holds_on(t, again, c) &&
			t->pair[(size_t)(entry(t, held, c) >> TOK_STEP_BITS) * t->n +
				(entry(t, again, c) >> TOK_STEP_BITS)] != 0)
			return true;
	}
	return false;
}

/* Is there a circle of pairs that both hold on? Take away those that lead to none. */
static bool
is_linear(struct table *t)
{
	bool more = true, left = false;

	mark_again(t);
	see_all(t);
	while (more) {
		more = left = false;
		for (uint32_t h = 0; h < t->n; h++) {
			for (uint32_t a = 0; a < t->n; a++) {
				uint8_t *pair = &t->pair[(size_t)h * t->n + a];

				if (*pair == 0)
					continue;
				if (!leads_on(t, h, a)) {
					*pair = 0;
					more = true;
				} else {
					left = true;
				}
			}
		}
	}
	return !left;
}

const char *
tok_machine_check(const uint16_t *step, uint32_t n_states, uint32_t width)
{
	struct table t = {.step = step, .n = n_states, .width = width};
	const char *wrong = NULL;

	if (n_states == 0 || n_states > TOK_REGEX_STATES_MAX || width < 2 ||
		width > TOK_REGEX_CLASSES_MAX + 9)
		return "need too many states or classes";
	t.what = calloc(n_states, 1);
	t.pair = calloc((size_t)n_states * n_states, 1);
	t.stack = malloc((size_t)n_states * n_states * sizeof(*t.stack));
	if (t.what == NULL || t.pair == NULL || t.stack == NULL)
		wrong = "memory is short for";
	else if (!steps_fit(&t))
		wrong = "make no progress";
	else if (!is_linear(&t))
		wrong = "look ahead without limit from one character after another (like a*b|a)";
	free(t.what);
	free(t.pair);
	free(t.stack);
	return wrong;
}
