/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compute tok_node.stem and tok_node.limit for every node.
 *
 * A token's left edge is this list: the token, its left part, the left part of that, and so on down
 * to its first byte. The tokens below a node all begin with the same byte, so the ends of their
 * left edges are equal. The node's *stem* is the first entry of this common end. Its *limit* is the
 * first merge that joins the stem with something on its right to make one of these tokens.
 *
 * BPE reaches none of these tokens if an earlier merge joins the stem with the token before it.
 * So bpe_stream.c makes one test per node instead of one per token. Set-up only.
 */
#include "parts.h"

struct edge {
	uint32_t stem;	/* TOK_NO_TOKEN: the set of tokens is empty */
	uint32_t limit; /* lowest rank id of a token whose left part is the stem, or TOK_NO_TOKEN */
};

/* The common edge of two sets of tokens. All their tokens begin with the same byte. */
static struct edge
common(const struct tok_vocab *v, struct edge a, struct edge b)
{
	if (a.stem == TOK_NO_TOKEN || b.stem == TOK_NO_TOKEN)
		return a.stem == TOK_NO_TOKEN ? b : a;
	while (a.stem != b.stem) { /* a part has a lower rank than its token */
		struct edge *later = a.stem > b.stem ? &a : &b;

		later->limit = later->stem;
		later->stem = v->split[later->stem].left;
	}
	return (struct edge){a.stem, a.limit < b.limit ? a.limit : b.limit};
}

/* The common edge of the tokens below a node. The edges of its children must be computed. */
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

/*
 * The value of tok_node.extends for a child that `byte` leads to. The child spells a run of `byte`
 * if its parent does, or if its parent is the root. The parent's value must be computed.
 */
static uint16_t
extends_of(const struct tok_vocab *v, uint32_t parent, uint32_t child, uint8_t byte)
{
	const uint16_t run =
		(uint16_t)(TOK_EXTENDS | TOK_EXTENDS_RUN | (uint32_t)byte << TOK_EXTENDS_RUN_SHIFT);

	if (!v->node[child].extends)
		return 0;
	return parent == 0 || v->node[parent].extends == run ? run : TOK_EXTENDS;
}

/* Compute `extends` for the children of a node. */
static void
fill_runs(struct tok_vocab *v, uint32_t at)
{
	uint32_t child = v->node[at].first;

	for (uint32_t w = 0; w < 4; w++) {
		for (uint64_t left = v->node[at].child[w]; left != 0; left &= left - 1, child++) {
			const uint8_t byte = (uint8_t)(w << 6 | (uint32_t)__builtin_ctzll(left));

			v->node[child].extends = extends_of(v, at, child, byte);
		}
	}
}

void
tok_stems_fill(struct tok_vocab *v)
{
	for (uint32_t at = 0; at < v->n_nodes; at++)
		fill_runs(v, at);
	v->node[0].stem = v->node[0].limit = TOK_NO_TOKEN;
	for (uint32_t at = v->n_nodes; --at > 0;) {
		const struct edge all = edge_of(v, &v->node[at]);

		v->node[at].stem = all.stem;
		v->node[at].limit = all.limit;
	}
}
