/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Longest match: take the longest token that is a prefix of the string, and repeat with the rest. A
 * trie with failure links does this in one pass over the bytes (Song et al., "Fast WordPiece
 * Tokenization", EMNLP 2021). If a node has no child for the next byte, `pop` lists the tokens that
 * longest match takes from the string of the node, and `fail` is the node of the remaining bytes.
 */
#pragma once

#include <assert.h>

#include "kinds.h"
#include "unicode/inline.h"

/* Two tries in one array. Node 0 is the root of tokens that begin a string, node 1 of tokens that
 * continue one. */
#define TOK_LONGEST_BEGIN 0u
#define TOK_LONGEST_GO_ON 1u

/* Numbered breadth first, as struct tok_node. */
struct tok_longest_node {
	uint64_t child[4]; /* bit b: there is a child for byte b */
	uint8_t below[4];  /* number of children in child[0 .. i) */
	uint32_t first;	   /* node of the first child */
	uint32_t fail;	   /* or TOK_NO_TOKEN: no token matches a prefix of this string */
	uint32_t pop;	   /* index in pop[] */
	uint32_t n_pop;
	uint32_t reserved[3];
};
static_assert(sizeof(struct tok_longest_node) == 64, "one cache line");

struct tok_longest {
	struct tok_longest_node *node;
	uint32_t *pop; /* outside ids */
};

/* Is the string of a node a proper prefix of a token? */
TOK_INLINE bool
tok_longest_goes_on(const struct tok_longest_node *node)
{
	return (node->child[0] | node->child[1] | node->child[2] | node->child[3]) != 0;
}

/* Child of a node for a byte, or TOK_NO_TOKEN. */
TOK_INLINE uint32_t
tok_longest_child(const struct tok_longest_node *node, uint8_t byte)
{
	const uint64_t bit = 1ull << (byte & 63), children = node->child[byte >> 6];

	if (!(children & bit))
		return TOK_NO_TOKEN;
	return node->first + node->below[byte >> 6] + tok_popcount(children & (bit - 1));
}

/* The token that a node spells, or TOK_NO_TOKEN. Only such nodes have no remaining bytes. */
TOK_INLINE uint32_t
tok_longest_token(const struct tok_longest *l, uint32_t node)
{
	const struct tok_longest_node *at = &l->node[node];

	return at->fail == TOK_LONGEST_GO_ON ? l->pop[at->pop] : TOK_NO_TOKEN;
}

/* Append the tokens in `pop` of a node to *to, and go to its `fail`. False: there is none. */
TOK_INLINE bool
tok_longest_fall_back(const struct tok_longest *l, uint32_t *node, uint32_t **to)
{
	const struct tok_longest_node *from = &l->node[*node];

	if (from->fail == TOK_NO_TOKEN)
		return false;
	for (uint32_t i = 0; i < from->n_pop; i++)
		(*to)[i] = l->pop[from->pop + i];
	*to += from->n_pop;
	*node = from->fail;
	return true;
}

/*
 * Advance by one byte. Each iteration goes to a child or drops at least one byte, so the time is
 * linear in the string. False: no token matches, whatever follows.
 */
TOK_INLINE bool
tok_longest_take(const struct tok_longest *l, uint32_t *node, uint32_t **to, uint8_t byte)
{
	for (;;) {
		const uint32_t child = tok_longest_child(&l->node[*node], byte);

		if (child != TOK_NO_TOKEN) {
			*node = child;
			return true;
		}
		if (!tok_longest_fall_back(l, node, to))
			return false;
	}
}
