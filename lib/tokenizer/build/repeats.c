/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of one repeated token (tables/repeats.h), and of one byte. Set-up only. */
#include <string.h>

#include "encode/bpe.h"
#include "parts.h"

/* order[i][j]: place in the family's order of the merge of tokens of i and j units, or 0xff. */
struct merges {
	uint8_t order[TOK_REPEAT_UNITS][TOK_REPEAT_UNITS];
};

static bool
read_family(const struct tok_vocab *v, const struct tok_repeat *f, struct merges *g,
	struct tok_repeat_runs *r)
{
	if (f->low >= v->n_ranks || f->high > v->n_ranks || f->high < f->low + 2 ||
		f->high - f->low > TOK_REPEAT_UNITS - 2 || f->unit >= f->low)
		return false;
	memset(g, 0xff, sizeof(*g));
	memset(r->rank, 0xff, sizeof(r->rank));
	r->rank[1] = f->unit;
	for (uint32_t i = f->low; i < f->high; i++) {
		const uint32_t left = tok_repeat_units(f, v->split[i].left);
		const uint32_t right = tok_repeat_units(f, v->split[i].right);
		const uint32_t power = f->power[i - f->low], order = f->order[i - f->low];

		/* Parts have lower ranks, so their powers are known already. */
		if (v->split[i].left >= i || v->split[i].right >= i || left == 0 || right == 0 ||
			left + right != power || power >= TOK_REPEAT_UNITS ||
			r->rank[power] != TOK_NO_TOKEN || order >= TOK_REPEAT_UNITS)
			return false;
		r->rank[power] = i;
		g->order[left][right] = (uint8_t)order;
	}
	return f->power[0] == 2; /* two units */
}

/* Apply the merges to a run of n units. part[]: the units of each token. Returns their number. */
static uint32_t
encode_run(const struct merges *g, uint32_t n, uint8_t *part)
{
	uint8_t order[2 * TOK_REPEAT_UNITS]; /* of each token's merge with the next */

	memset(part, 1, n);
	memset(order, g->order[1][1], n);
	for (; n > 1; n--) {
		uint8_t best = 0xff;
		uint32_t at;

		for (uint32_t i = 0; i + 1 < n; i++)
			best = order[i] < best ? order[i] : best;
		if (best == 0xff)
			break;
		at = (uint32_t)((uint8_t *)memchr(order, best, n) - order);
		part[at] = (uint8_t)(part[at] + part[at + 1]);
		memmove(part + at + 1, part + at + 2, n - at - 2);
		memmove(order + at, order + at + 1, n - at - 1);
		if (at > 0)
			order[at - 1] = g->order[part[at - 1]][part[at]];
		if (at + 2 < n)
			order[at] = g->order[part[at]][part[at + 1]];
	}
	return n;
}

static bool
fill(const struct tok_vocab *v, const struct tok_repeat *f, struct tok_repeat_runs *r)
{
	uint8_t part[2 * TOK_REPEAT_UNITS];
	struct merges g;

	if (!read_family(v, f, &g, r))
		return false;
	for (uint32_t n = 1; n < 2 * TOK_REPEAT_UNITS; n++) {
		const uint32_t parts = encode_run(&g, n, part);

		r->last[n] = part[parts - 1];
		if (parts == 2)
			r->stands[part[0]] |= 1ull << part[1];
		/* Encoding a token's own bytes must give the token. */
		if (n < TOK_REPEAT_UNITS && r->rank[n] != TOK_NO_TOKEN && parts != 1)
			return false;
	}
	return true;
}

bool
tok_repeats_fill(struct tok_vocab *v)
{
	uint32_t before = 0;

	memset(v->repeat_runs, 0, sizeof(v->repeat_runs));
	for (uint32_t i = 0; i < v->n_repeats; i++) {
		if (v->repeat[i].low < before || !fill(v, &v->repeat[i], &v->repeat_runs[i]))
			return false;
		before = v->repeat[i].high;
	}
	v->repeats_end = before;
	return true;
}

/* ---- runs of one byte ---- */

/*
 * The last token of a run of n bytes is the one that stands after the last token of the rest of the
 * run; there is exactly one (doc/internals/streaming.md).
 */
#define WORTH_IT 4 /* bytes of the longest token: shorter ones are checked in few steps */

/* Tokens that are a run of `byte`, by length; TOK_NO_TOKEN: none. Returns the longest length, or 0:
 * it is above TOK_BYTE_RUN_MAX. */
static uint32_t
find_tokens(const struct tok_vocab *v, uint8_t byte, uint32_t *token)
{
	const struct tok_node *node = &v->node[0];
	uint32_t longest = 0;

	for (uint32_t n = 1; tok_has_child(node, byte); n++) {
		if (n > TOK_BYTE_RUN_MAX)
			return 0;
		node = &v->node[tok_child(node, byte)];
		token[n] = node->token;
		longest = token[n] != TOK_NO_TOKEN ? n : longest;
	}
	return longest;
}

static bool
is_last(const struct tok_vocab *v, const uint32_t *token, const uint8_t *last, uint32_t n,
	uint32_t len)
{
	return len <= n && token[len] != TOK_NO_TOKEN &&
	       (len == n || tok_bpe_pair_stands(v, token[last[n - len]], token[len], TOK_NO_TOKEN));
}

/* False: some run has no last token, as only tables that contradict each other say. */
static bool
fill_byte(const struct tok_vocab *v, const uint32_t *token, uint32_t longest, uint8_t *last)
{
	last[0] = 0;
	for (uint32_t n = 1; n <= 2 * longest; n++) {
		uint32_t len = last[n - 1] + 1u; /* most of the time one more byte */

		if (len > longest || !is_last(v, token, last, n, len))
			for (len = longest; len > 0 && !is_last(v, token, last, n, len);)
				len--;
		if (len == 0)
			return false;
		last[n] = (uint8_t)len;
	}
	return true;
}

void
tok_byte_runs_fill(struct tok_vocab *v)
{
	struct tok_byte_runs *runs = &v->byte_runs;
	uint32_t token[TOK_BYTE_RUN_MAX + 1], used = 0;

	for (uint32_t byte = 0; byte < TOK_BYTES; byte++) {
		const uint32_t longest = find_tokens(v, (uint8_t)byte, token);

		runs->from[byte] = TOK_BYTE_RUN_NONE;
		if (longest < WORTH_IT ||
			used + 2 * longest + 2 * TOK_BYTE_RUN_MAX >= sizeof(runs->last) ||
			!fill_byte(v, token, longest, runs->last + used))
			continue;
		runs->from[byte] = (uint16_t)used;
		used += 2 * longest + 1;
	}
}
