/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees to programs (Thompson's construction; of two ways, the one to try first comes first). */
#include "inside.h"

struct compiler {
	struct rx *rx;
	struct rx_sets *sets;
	struct rx_program *out;
};

static bool emit_node(struct compiler *c, const struct rx_node *n);

static bool
emit(struct compiler *c, enum rx_op op, uint32_t x, uint32_t y)
{
	if (c->out->n == TOK_REGEX_PROGRAM_MAX)
		return tok_fail(c->rx->err,
			"%s: the regular expression needs more than %u steps, with its repeats "
			"written out: repeat fewer times",
			c->rx->where, TOK_REGEX_PROGRAM_MAX);
	c->out->step[c->out->n++] = (struct rx_step){op, x, y};
	return true;
}

static bool
emit_set(struct compiler *c, enum rx_op op, const struct rx_set *set, bool end)
{
	struct rx_sets *s = c->sets;
	uint32_t i = 0;

	while (i < s->n && !rx_set_equal(s->set[i], set))
		i++;
	if (i == RX_SETS_MAX)
		return tok_fail(c->rx->err,
			"%s: the regular expressions have more than %u different sets of "
			"characters",
			c->rx->where, RX_SETS_MAX);
	s->set[i] = set;
	s->n += i == s->n;
	return emit(c, op, i, end);
}

/* The set's repeats end here, and its characters too. */
static bool
emit_no_more(struct compiler *c, const struct rx_node *n)
{
	const struct rx_set *other = n->mode == RX_POSSESSIVE ? rx_set_not(c->rx, n->a->set) : NULL;

	if (n->mode != RX_POSSESSIVE)
		return true;
	return other != NULL && emit_set(c, RX_OP_LOOK, other, true);
}

/* A split whose ways are filled in by aim(): on into the body, or past it. */
static bool
emit_split(struct compiler *c, uint32_t *at)
{
	*at = c->out->n;
	return emit(c, RX_OP_SPLIT, 0, 0);
}

static void
aim(struct compiler *c, uint32_t at, uint32_t body, uint32_t past, enum rx_mode mode)
{
	struct rx_step *s = &c->out->step[at];

	s->x = mode == RX_LAZY ? past : body;
	s->y = mode == RX_LAZY ? body : past;
}

static bool
emit_repeat(struct compiler *c, const struct rx_node *n)
{
	uint32_t split, end, jump;

	for (uint32_t i = 0; i < n->min; i++) {
		if (!emit_node(c, n->a))
			return false;
	}
	if (n->max == RX_NO_MAX) {
		if (!emit_split(c, &split) || !emit_node(c, n->a) ||
			!emit(c, RX_OP_SPLIT, split, split))
			return false;
		aim(c, split, split + 1, c->out->n, n->mode);
		return emit_no_more(c, n);
	}
	if (n->min == n->max)
		return true;
	/* Possessive is only ?+: one or none. */
	end = RX_NO_MAX;
	for (uint32_t i = n->min; i < n->max; i++) {
		if (!emit_split(c, &split) || !emit_node(c, n->a))
			return false;
		c->out->step[split].x = end; /* a list of them, up to the end of all */
		end = split;
	}
	if (n->mode == RX_POSSESSIVE) {
		if (!emit_split(c, &jump))
			return false;
		aim(c, end, end + 1, c->out->n, n->mode);
		if (!emit_no_more(c, n))
			return false;
		aim(c, jump, c->out->n, c->out->n, n->mode);
		return true;
	}
	while (end != RX_NO_MAX) {
		const uint32_t next = c->out->step[end].x;

		aim(c, end, end + 1, c->out->n, n->mode);
		end = next;
	}
	return true;
}

static bool
emit_either(struct compiler *c, const struct rx_node *n)
{
	uint32_t split, jump;

	if (!emit_split(c, &split) || !emit_node(c, n->a) || !emit_split(c, &jump))
		return false;
	aim(c, split, split + 1, c->out->n, RX_GREEDY);
	if (!emit_node(c, n->b))
		return false;
	aim(c, jump, c->out->n, c->out->n, RX_GREEDY);
	return true;
}

static bool
emit_node(struct compiler *c, const struct rx_node *n)
{
	switch (n->kind) {
	case RX_EMPTY:
		return true;
	case RX_SET:
		return emit_set(c, RX_OP_SET, n->set, false);
	case RX_LOOK:
		return emit_set(c, RX_OP_LOOK, n->set, n->end);
	case RX_CONCAT:
		return emit_node(c, n->a) && emit_node(c, n->b);
	case RX_EITHER:
		return emit_either(c, n);
	case RX_REPEAT:
		return emit_repeat(c, n);
	}
	return false;
}

bool
rx_program(struct rx *rx, const struct rx_node *tree, struct rx_sets *sets, struct rx_program *out)
{
	struct compiler c = {rx, sets, out};

	out->n = 0;
	out->step = rx_alloc(rx, TOK_REGEX_PROGRAM_MAX, sizeof(*out->step));
	return out->step != NULL && emit_node(&c, tree) && emit(&c, RX_OP_MATCH, 0, 0);
}
