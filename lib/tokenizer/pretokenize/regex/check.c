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

/* And of a pair. */
enum { SEEN = 1, ON_STACK, DONE };

struct table {
	const uint16_t *step;
	uint32_t n, width;
	uint8_t *what;	 /* by state */
	uint8_t *pair;	 /* [held * n + again] */
	uint8_t *any;	 /* [held * width + class]: seen beside all that the class leads to */
	uint32_t *stack; /* of pairs or states */
	uint16_t *class; /* of a pair on the stack: those before it are done */
	uint32_t depth;
	uint64_t work; /* entries looked at */
};

#define WORK_MAX (1ull << 28)

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
		*pair = SEEN;
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
	if (t->any[(size_t)held * t->width + c])
		return;
	t->any[(size_t)held * t->width + c] = 1;
	t->work += t->n;
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
	see_next(t, held, 0, c);
	for (uint32_t s = 0; s < t->n; s++) {
		if ((t->what[held] & AGAIN_FOLLOWS) && (t->what[s] & SKIPS))
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
	while (t->depth > 0 && t->work <= WORK_MAX) {
		const uint32_t pair = t->stack[--t->depth];

		t->work += t->width;
		for (uint32_t c = 0; c + 1 < t->width; c++) {
			if (holds_on(t, pair / t->n, c))
				see_next(t, entry(t, pair / t->n, c) >> TOK_STEP_BITS, pair % t->n,
					c);
		}
	}
}

/* The next pair that both lead to and hold on with a class from *c on; *c becomes the one after
 * it. 0: there is none; the first pair is none of them. */
static uint32_t
next_pair(struct table *t, uint32_t pair, uint16_t *c)
{
	const uint32_t held = pair / t->n, again = pair % t->n;

	while (*c + 1u < t->width) {
		const uint32_t class = (*c)++;

		if (holds_on(t, held, class) && holds_on(t, again, class))
			return (entry(t, held, class) >> TOK_STEP_BITS) * t->n +
			       (entry(t, again, class) >> TOK_STEP_BITS);
	}
	return 0;
}

/* Is there a circle of pairs that both hold on? Follow each pair as far as it leads. */
static bool
is_linear(struct table *t)
{
	uint16_t *class = t->class;

	mark_again(t);
	see_all(t);
	for (uint32_t first = 0; first < t->n * t->n; first++) {
		if (t->pair[first] != SEEN)
			continue;
		t->stack[0] = first;
		class[0] = 0;
		t->pair[first] = ON_STACK;
		for (t->depth = 1; t->depth > 0;) {
			const uint32_t top = t->depth - 1;
			const uint32_t next = next_pair(t, t->stack[top], &class[top]);

			t->work++;
			if (next == 0) {
				t->pair[t->stack[top]] = DONE;
				t->depth--;
			} else if (t->pair[next] == ON_STACK) {
				return false;
			} else if (t->pair[next] != DONE) {
				t->pair[next] = ON_STACK;
				t->stack[t->depth] = next;
				class[t->depth++] = 0;
			}
		}
	}
	return t->work <= WORK_MAX;
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
	t.any = calloc((size_t)n_states * width, 1);
	t.stack = malloc((size_t)n_states * n_states * sizeof(*t.stack));
	t.class = malloc((size_t)n_states * n_states * sizeof(*t.class));
	if (t.what == NULL || t.pair == NULL || t.any == NULL || t.stack == NULL || t.class == NULL)
		wrong = "memory is short for";
	else if (!steps_fit(&t))
		wrong = "make no progress";
	else if (!is_linear(&t))
		wrong = t.work > WORK_MAX
				? "are too complex: use fewer or shorter ones"
				: "look ahead without limit from one character after another "
				  "(like a*b|a)";
	free(t.what);
	free(t.pair);
	free(t.any);
	free(t.class);
	free(t.stack);
	return wrong;
}
