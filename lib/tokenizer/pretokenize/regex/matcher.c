/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A matcher's state is the list of its program's threads that wait for the next character, the one
 * to try first in front. A thread that matches ends the list: those after it would be tried later
 * by a backtracking matcher, that is never. So the last match of the text is the leftmost-first one
 * (R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009).
 */
#include <string.h>

#include "inside.h"

struct list {
	uint32_t n;
	uint16_t at[TOK_REGEX_PROGRAM_MAX];
};

struct walk {
	const struct rx_program *program;
	uint64_t sets; /* that have the next character */
	bool end;      /* there is none */
	bool match;
	struct list next;
	uint32_t seen[TOK_REGEX_PROGRAM_MAX], listed[TOK_REGEX_PROGRAM_MAX]; /* in which round */
	uint32_t round;
	uint16_t stack[2 * TOK_REGEX_PROGRAM_MAX];
};

/* Follow one thread up to the next character. False: it matched, and those after it do not count.
 */
static bool
follow(struct walk *w, uint16_t from)
{
	uint32_t depth = 0;

	w->stack[depth++] = from;
	while (depth > 0) {
		const uint16_t at = w->stack[--depth];
		const struct rx_step *s = &w->program->step[at];

		if (w->seen[at] == w->round)
			continue;
		w->seen[at] = w->round;
		switch (s->op) {
		case RX_OP_MATCH:
			w->match = true;
			return false;
		case RX_OP_SPLIT:
			w->stack[depth++] = (uint16_t)s->y;
			w->stack[depth++] = (uint16_t)s->x;
			break;
		case RX_OP_LOOK:
			if (w->end ? s->y != 0 : w->sets >> s->x & 1)
				w->stack[depth++] = (uint16_t)(at + 1);
			break;
		case RX_OP_SET:
			if (!w->end && w->sets >> s->x & 1 && w->listed[at] != w->round) {
				w->listed[at] = w->round;
				w->next.at[w->next.n++] = (uint16_t)(at + 1);
			}
			break;
		}
	}
	return true;
}

/* What the next character does to the list of a state. */
static void
move(struct walk *w, const uint16_t *key, uint32_t len)
{
	w->round++;
	w->next.n = 0;
	w->match = false;
	for (uint32_t i = 0; i < len && follow(w, key[i]); i++)
		;
}

/* The states that are firm: the greatest set for which it holds. */
static void
find_firm(struct rx_matcher *m)
{
	bool again = true;

	for (uint32_t s = 0; s < m->n; s++)
		m->firm[s] = s != 0;
	while (again) {
		again = false;
		for (uint32_t s = 0; s < m->n; s++) {
			bool firm = m->firm[s], closed = true;

			for (uint32_t c = 0; c < m->n_moves; c++) {
				const uint32_t at = s * m->n_moves + c;
				const bool alive = m->go[at] != RX_DEAD;

				firm = firm && (m->ends[at] || (alive && m->firm[m->go[at]]));
				closed = closed && m->ends[at] && !alive;
			}
			again = again || firm != m->firm[s];
			m->firm[s] = firm;
			m->closed[s] = closed;
		}
	}
}

bool
rx_matcher(struct rx *rx, const struct rx_program *program, const struct rx_classes *classes,
	struct rx_matcher *out)
{
	struct rx_keys *keys = rx_alloc(rx, 1, sizeof(*keys));
	struct walk *w = rx_alloc(rx, 1, sizeof(*w));
	const size_t room = (size_t)RX_STATES_MAX * (classes->n + 1);
	const uint16_t start = 0;

	*out = (struct rx_matcher){.n_moves = classes->n + 1};
	out->go = rx_alloc(rx, room, sizeof(*out->go));
	out->ends = rx_alloc(rx, room, sizeof(*out->ends));
	out->firm = rx_alloc(rx, RX_STATES_MAX, sizeof(*out->firm));
	out->closed = rx_alloc(rx, RX_STATES_MAX, sizeof(*out->closed));
	if (keys == NULL || w == NULL || out->go == NULL || out->ends == NULL ||
		out->firm == NULL || out->closed == NULL ||
		rx_number(rx, keys, &start, 1) == RX_NO_NUMBER)
		return false;
	w->program = program;
	for (uint32_t s = 0; s < keys->n; s++) {
		for (uint32_t c = 0; c < out->n_moves; c++) {
			const uint32_t at = s * out->n_moves + c;
			uint32_t next = RX_DEAD;

			w->end = c == classes->n;
			w->sets = w->end ? 0 : classes->sets[c];
			move(w, keys->entry[s].key, keys->entry[s].len);
			if (w->next.n > 0)
				next = rx_number(rx, keys, w->next.at, w->next.n);
			if (next == RX_NO_NUMBER)
				return false;
			out->go[at] = (uint16_t)next;
			out->ends[at] = w->match;
		}
	}
	out->n = keys->n;
	find_firm(out);
	return true;
}
