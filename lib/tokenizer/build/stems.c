/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tokens that go on from a node share. A token's left edge is the token, its left part,
 * the left part of that, and so on down to its first byte. The tokens below a node have the end of
 * that list in common, from the node's *stem* on. Whether the stem is joined with what stands
 * before it, by a merge that comes before any that makes more of it, is then one question for all
 * of them (bpe_stream.c asks it). Set-up only.
 */
#include "parts.h"

struct edge {
	uint32_t stem;	/* TOK_NO_TOKEN: of no tokens */
	uint32_t limit; /* rank id of the least token made of it, or TOK_NO_TOKEN */
};

/* Of two lists of tokens that begin with the same byte. */
static struct edge
common(const struct tok_vocab *v, struct edge a, struct edge b)
{
	if (a.stem == TOK_NO_TOKEN || b.stem == TOK_NO_TOKEN)
		return a.stem == TOK_NO_TOKEN ? b : a;
	while (a.stem != b.stem) { /* a part has the lesser rank */
		struct edge *later = a.stem > b.stem ? &a : &b;

		later->limit = later->stem;
		later->stem = v->split[later->stem].left;
	}
	return (struct edge){a.stem, a.limit < b.limit ? a.limit : b.limit};
}

/* Of the tokens that go on from a node, once its children have theirs. */
static struct edge
edge_of(const struct tok_vocab *v, const struct tok_node *node)
{
	const uint32_t n = tok_children(node);
	struct edge all = {TOK_NO_TOKEN, TOK_NO_TOKEN};

	for (uint32_t i = 0; i < n; i++) {
		const struct tok_node *child = &v->node[node->first + i];

		all = common(v, all, (struct edge){child->token, TOK_NO_TOKEN});
		all = common(v, all, (struct edge){child->stem, child->limit});
	}
	return all;
}

/* What a child says of how it goes on. Its parent says it of itself; the root is every run's. */
static uint16_t
extends_of(const struct tok_vocab *v, uint32_t parent, uint32_t child, uint8_t byte)
{
	const uint16_t run =
		(uint16_t)(TOK_EXTENDS | TOK_EXTENDS_RUN | (uint32_t)byte << TOK_EXTENDS_RUN_SHIFT);

	if (!v->node[child].extends)
		return 0;
	return parent == 0 || v->node[parent].extends == run ? run : TOK_EXTENDS;
}

/* Which bytes lead to the children of a node, and what these say; `fill` it in, or compare. */
static bool
runs(const struct tok_vocab *v, uint32_t at, struct tok_node *fill)
{
	uint32_t child = v->node[at].first;

	for (uint32_t w = 0; w < 4; w++) {
		for (uint64_t left = v->node[at].child[w]; left != 0; left &= left - 1, child++) {
			const uint8_t byte = (uint8_t)(w << 6 | (uint32_t)__builtin_ctzll(left));
			const uint16_t extends = extends_of(v, at, child, byte);

			if (fill != NULL)
				fill[child].extends = extends;
			else if (v->node[child].extends != extends)
				return false;
		}
	}
	return true;
}

void
tok_stems_fill(struct tok_vocab *v)
{
	for (uint32_t at = 0; at < v->n_nodes; at++)
		runs(v, at, v->node);
	v->node[0].stem = v->node[0].limit = TOK_NO_TOKEN;
	for (uint32_t at = v->n_nodes; --at > 0;) {
		const struct edge all = edge_of(v, &v->node[at]);

		v->node[at].stem = all.stem;
		v->node[at].limit = all.limit;
	}
}

bool
tok_stem_fits(const struct tok_vocab *v, uint32_t at)
{
	const struct tok_node *node = &v->node[at];
	struct edge all;

	if (!runs(v, at, NULL))
		return false;
	if (at == 0)
		return node->extends == TOK_EXTENDS;
	all = edge_of(v, node);
	return node->stem == all.stem && node->limit == all.limit;
}
