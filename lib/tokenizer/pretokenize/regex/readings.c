/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readings of a text: what each split guesses about the characters so far. A character begins a
 * match or is in a gap; a match goes on or ends. What is guessed is checked by the characters that
 * follow: a match must reach an end; after the end that was guessed, and from a character that is
 * guessed to begin no match, the matcher must not reach one (`dies`). So exactly one reading of
 * every text is left at its end. A split's text ends where a split before it has a border.
 */
#include <string.h>

#include "inside.h"

#define KEY_MAX 256	     /* of a reading */
#define EDGES_MAX (1u << 14) /* of a reading */

/* A reading as a key: of each split where it is, how many states must die, and these. */
#define AT_START 0
#define IN_GAP 1
#define IN_MATCH 2 /* and the matcher's state */

struct reader {
	struct rx *rx;
	const struct rx_splitter *split;
	uint32_t n_splits, end_of_text; /* a class */
	struct rx_keys *keys;
	uint32_t class;
	uint16_t next[KEY_MAX];
	uint32_t n_edges;
	struct rx_edge edge[EDGES_MAX];
};

/* One split of a reading. */
struct part {
	uint16_t main, n;
	uint16_t dies[KEY_MAX]; /* ascending */
};

static bool
ends(const struct rx_matcher *m, uint32_t state, uint32_t class)
{
	return m->ends[state * m->n_moves + class];
}

static uint16_t
go(const struct rx_matcher *m, uint32_t state, uint32_t class)
{
	return m->go[state * m->n_moves + class];
}

/* From this state no match may be reached. False: one is sure to be. */
static bool
must_die(const struct rx_matcher *m, struct part *p, uint16_t state)
{
	uint16_t i = p->n;

	if (state == RX_DEAD)
		return true;
	if (m->firm[state])
		return false;
	for (uint16_t k = 0; k < p->n; k++) {
		if (p->dies[k] == state)
			return true;
	}
	for (; i > 0 && p->dies[i - 1] > state; i--)
		p->dies[i] = p->dies[i - 1];
	p->dies[i] = state;
	p->n++;
	return true;
}

/* May the text of the split end here? */
static bool
may_end(const struct rx_matcher *m, const struct part *p)
{
	const uint32_t end = m->n_moves - 1;

	if (p->main >= IN_MATCH && !ends(m, p->main - IN_MATCH, end))
		return false;
	for (uint16_t i = 0; i < p->n; i++) {
		if (ends(m, p->dies[i], end))
			return false;
	}
	return true;
}

static const uint16_t *
unpack(const uint16_t *key, struct part *p)
{
	p->main = key[0];
	p->n = key[1];
	memcpy(p->dies, key + 2, p->n * sizeof(*key));
	return key + 2 + p->n;
}

static bool read_split(
	struct reader *r, uint32_t i, const uint16_t *key, uint32_t len, bool border);

/* Split i reads the character in this way; *key are the splits after it. */
static bool
read_on(struct reader *r, uint32_t i, const uint16_t *key, uint32_t len, const struct part *p,
	bool border)
{
	if (len + 2u + p->n > KEY_MAX)
		return rx_too_much(r->rx);
	r->next[len] = p->main;
	r->next[len + 1] = p->n;
	memcpy(r->next + len + 2, p->dies, p->n * sizeof(*key));
	return read_split(r, i + 1, key, len + 2 + p->n, border);
}

/* No match is open: the character begins one, or is in a gap. */
static bool
read_first(struct reader *r, uint32_t i, const uint16_t *key, uint32_t len, const struct part *p,
	bool border)
{
	const struct rx_matcher *m = &r->split[i].matcher;
	const enum tok_behavior behavior = r->split[i].behavior;
	const uint16_t first = go(m, 0, r->class);
	struct part way = *p;
	bool here = border;

	if (first != RX_DEAD) {
		if (p->main == IN_GAP)
			here = border || behavior != TOK_SPLIT_WITH_PREVIOUS;
		if (p->main >= IN_MATCH)
			here = border || behavior != TOK_SPLIT_CONTIGUOUS;
		way.main = (uint16_t)(IN_MATCH + first);
		if (!read_on(r, i, key, len, &way, here))
			return false;
	}
	way.main = IN_GAP;
	here = border || (p->main >= IN_MATCH && behavior != TOK_SPLIT_WITH_NEXT);
	return !must_die(m, &way, first) || read_on(r, i, key, len, &way, here);
}

/* All ways in which split i and those after it read the character. `border`: a split before it has
 * a border before the character. */
static bool
read_split(struct reader *r, uint32_t i, const uint16_t *key, uint32_t len, bool border)
{
	const struct rx_matcher *m = &r->split[i].matcher;
	struct part was, p;
	uint16_t state, next;

	if (!rx_work(r->rx, 1))
		return false;
	if (i == r->n_splits) {
		const uint32_t to = rx_number(r->rx, r->keys, r->next, len);

		if (to == RX_NO_NUMBER)
			return false;
		if (r->n_edges == EDGES_MAX)
			return rx_too_much(r->rx);
		r->edge[r->n_edges++] = (struct rx_edge){(uint16_t)to, border};
		return true;
	}
	key = unpack(key, &was);
	if (border) {
		if (!may_end(m, &was))
			return true;
		was = (struct part){.main = AT_START};
	}
	p.main = was.main;
	p.n = 0;
	for (uint16_t k = 0; k < was.n; k++) {
		if (ends(m, was.dies[k], r->class) ||
			!must_die(m, &p, go(m, was.dies[k], r->class)))
			return true;
	}
	if (p.main < IN_MATCH)
		return read_first(r, i, key, len, &p, border);
	state = p.main - IN_MATCH;
	next = go(m, state, r->class);
	if (next != RX_DEAD) {
		p.main = (uint16_t)(IN_MATCH + next);
		if (!read_on(r, i, key, len, &p, border))
			return false;
	}
	if (!ends(m, state, r->class) || !must_die(m, &p, next))
		return true;
	p.main = (uint16_t)(IN_MATCH + state);
	return read_first(r, i, key, len, &p, border);
}

static bool
accepts(const struct reader *r, const uint16_t *key)
{
	struct part p;

	for (uint32_t i = 0; i < r->n_splits; i++) {
		key = unpack(key, &p);
		if (!may_end(&r->split[i].matcher, &p))
			return false;
	}
	return true;
}

/* The edges of one reading. */
static bool
read_all(struct reader *r, uint32_t number, struct rx_reading *out)
{
	uint32_t *end = rx_alloc(r->rx, r->end_of_text, sizeof(*end));
	struct rx_edge *edge;

	r->n_edges = 0;
	for (r->class = 0; end != NULL && r->class < r->end_of_text; r->class ++) {
		if (!read_split(r, 0, r->keys->entry[number].key, 0, false))
			return false;
		end[r->class] = r->n_edges;
	}
	edge = rx_alloc(r->rx, r->n_edges + 1, sizeof(*edge));
	if (end == NULL || edge == NULL)
		return false;
	memcpy(edge, r->edge, r->n_edges * sizeof(*edge));
	*out = (struct rx_reading){
		.edge = edge, .end = end, .accepts = accepts(r, r->keys->entry[number].key)};
	return true;
}

/* Those from which some text leads to its end, and of them those after which a piece ends. */
static bool
find_alive(struct rx *rx, struct rx_readings *all)
{
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = all->n; i-- > 0;) {
			struct rx_reading *r = &all->at[i];
			bool alive = r->accepts;

			if (r->alive)
				continue;
			for (uint32_t k = 0; !alive && k < r->end[all->n_classes - 1]; k++)
				alive = all->at[r->edge[k].to].alive;
			if (!rx_work(rx, r->end[all->n_classes - 1]))
				return false;
			r->alive = alive;
			more = more || alive;
		}
	}
	for (uint32_t i = 0; i < all->n; i++) {
		struct rx_reading *r = &all->at[i];

		r->closes = true;
		for (uint32_t k = 0; k < r->end[all->n_classes - 1]; k++)
			r->closes =
				r->closes && (r->edge[k].border || !all->at[r->edge[k].to].alive);
	}
	return true;
}

/* What is removed must be nothing: then to remove it is to isolate what is left. */
static bool
removes_nothing(const struct reader *r, const struct rx_readings *all)
{
	struct part p;

	for (uint32_t number = 0; number < all->n; number++) {
		const uint16_t *key = r->keys->entry[number].key;

		for (uint32_t i = 0; all->at[number].alive && i < r->n_splits; i++) {
			const enum tok_behavior behavior = r->split[i].behavior;

			key = unpack(key, &p);
			if ((behavior == TOK_SPLIT_REMOVED && p.main >= IN_MATCH) ||
				(behavior == TOK_SPLIT_REMOVED_GAPS && p.main == IN_GAP))
				return tok_fail(r->rx->err,
					"%s: regular expression %u of %u removes text (behavior "
					"\"Removed\"), which is not implemented",
					r->rx->where, i + 1, r->n_splits);
		}
	}
	return true;
}

bool
rx_readings(struct rx *rx, const struct rx_splitter *split, uint32_t n, uint32_t n_classes,
	struct rx_readings *out)
{
	struct reader *r = rx_alloc(rx, 1, sizeof(*r));
	uint16_t start[2 * TOK_SPLITS_MAX] = {0};

	*out = (struct rx_readings){.n_classes = n_classes};
	out->at = rx_alloc(rx, RX_STATES_MAX, sizeof(*out->at));
	if (r == NULL || out->at == NULL)
		return false;
	r->rx = rx;
	r->split = split;
	r->n_splits = n;
	r->end_of_text = n_classes;
	r->keys = rx_alloc(rx, 1, sizeof(*r->keys));
	if (r->keys == NULL || rx_number(rx, r->keys, start, 2 * n) == RX_NO_NUMBER)
		return false;
	for (; out->n < r->keys->n; out->n++) {
		if (!read_all(r, out->n, &out->at[out->n]))
			return false;
	}
	return find_alive(rx, out) && removes_nothing(r, out);
}
