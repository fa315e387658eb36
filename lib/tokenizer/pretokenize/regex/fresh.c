/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine forgets the text before a border. So what follows a border must be split as if the
 * text began there. Every reading that has a border is followed side by side with the one that
 * begins there: where some text leads both to its end, they must have the same borders.
 */
#include "inside.h"

#define PAIRS_MAX (1u << 16)

enum {
	SEEN = 1,
	ALIVE = 2, /* some text leads both to its end */
};

struct pairs {
	struct rx *rx;
	const struct rx_readings *readings;
	uint8_t *what; /* [a * n + b] */
	struct {
		uint16_t a, b;
	} * pair;
	uint32_t n;
};

/* Equal readings are followed by equal borders. */
static bool
is_alive(const struct pairs *p, uint32_t a, uint32_t b)
{
	return a == b ? p->readings->at[a].alive
		      : p->what[(size_t)a * p->readings->n + b] & ALIVE;
}

static bool
see(struct pairs *p, uint16_t a, uint16_t b)
{
	uint8_t *what = &p->what[(size_t)a * p->readings->n + b];
	const struct rx_reading *at = p->readings->at;

	if (a == b || !at[a].alive || !at[b].alive || *what != 0)
		return true;
	if (p->n == PAIRS_MAX)
		return rx_too_much(p->rx);
	*what = SEEN | (at[a].accepts && at[b].accepts ? ALIVE : 0);
	p->pair[p->n].a = a;
	p->pair[p->n++].b = b;
	return true;
}

static bool
see_begins(struct pairs *p)
{
	const struct rx_readings *all = p->readings;

	for (uint32_t i = 0; i < all->n; i++) {
		for (uint32_t c = 0; all->at[i].alive && c < all->n_classes; c++) {
			RX_EACH_EDGE (a, &all->at[i], c) {
				RX_EACH_EDGE (b, &all->at[0], c) {
					if (a->border && !see(p, a->to, b->to))
						return false;
				}
			}
		}
	}
	return true;
}

/* What is done with two edges of a character, one of each of a pair. Returns true to go on. */
typedef bool visit(struct pairs *p, const struct rx_edge *a, const struct rx_edge *b);

static bool
each_edge(struct pairs *p, uint32_t i, visit *f)
{
	const struct rx_readings *all = p->readings;
	const struct rx_reading *x = &all->at[p->pair[i].a], *y = &all->at[p->pair[i].b];

	for (uint32_t c = 0; c < all->n_classes; c++) {
		RX_EACH_EDGE (a, x, c) {
			RX_EACH_EDGE (b, y, c) {
				if (!rx_work(p->rx, 1) || !f(p, a, b))
					return false;
			}
		}
	}
	return true;
}

static bool
see_next(struct pairs *p, const struct rx_edge *a, const struct rx_edge *b)
{
	return see(p, a->to, b->to);
}

static bool
is_dead_end(struct pairs *p, const struct rx_edge *a, const struct rx_edge *b)
{
	return !is_alive(p, a->to, b->to);
}

static bool
agrees(struct pairs *p, const struct rx_edge *a, const struct rx_edge *b)
{
	return a->border == b->border || !is_alive(p, a->to, b->to);
}

static bool
find_alive(struct pairs *p)
{
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = p->n; i-- > 0;) {
			uint8_t *what = &p->what[(size_t)p->pair[i].a * p->readings->n +
						 p->pair[i].b];

			if (*what & ALIVE || each_edge(p, i, is_dead_end))
				continue;
			if (!rx_work(p->rx, 0))
				return false;
			*what |= ALIVE;
			more = true;
		}
	}
	return true;
}

bool
rx_begins_fresh(struct rx *rx, const struct rx_readings *readings)
{
	struct pairs p = {.rx = rx, .readings = readings};

	p.what = rx_alloc(rx, (size_t)readings->n * readings->n, 1);
	p.pair = rx_alloc(rx, PAIRS_MAX, sizeof(*p.pair));
	if (p.what == NULL || p.pair == NULL || !see_begins(&p))
		return false;
	for (uint32_t i = 0; i < p.n; i++) {
		if (!each_edge(&p, i, see_next))
			return false;
	}
	if (!find_alive(&p))
		return false;
	for (uint32_t i = 0; i < p.n; i++) {
		if (!each_edge(&p, i, agrees))
			return rx_work(rx, 0) &&
			       tok_fail(rx->err,
				       "%s: where the regular expressions split depends on text "
				       "before the last border, which is not implemented",
				       rx->where);
	}
	return true;
}
