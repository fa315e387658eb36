/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Longest match: of a string the longest token that begins it is taken, then the longest that goes
 * on, to its end. One pass over the bytes finds it (Song et al., "Fast WordPiece Tokenization",
 * EMNLP 2021): a trie with failure links. Where no child goes on, the node's `pop` are the tokens
 * that longest match surely takes of what the node spells, and `fail` spells what is left of it.
 */
#ifndef TOK_LONGEST_H
#define TOK_LONGEST_H

#include <assert.h>

#include "model.h"

/* Two tries in one array: below node 0 tokens that begin a string, below node 1 those that go on.
 */
#define TOK_LONGEST_BEGIN 0u
#define TOK_LONGEST_GO_ON 1u

/* Numbered breadth first, as struct tok_node. */
struct tok_longest_node {
	uint64_t child[4]; /* bit b: there is a child for byte b */
	uint8_t below[4];  /* number of children in child[0 .. i) */
	uint32_t first;	   /* node of the first child */
	uint32_t fail;	   /* or TOK_NO_TOKEN: no token goes on from here, nor a shorter one */
	uint32_t pop;	   /* place in pop[] */
	uint32_t n_pop;
	uint32_t reserved[3];
};
static_assert(sizeof(struct tok_longest_node) == 64, "one cache line");

struct tok_longest {
	struct tok_longest_node *node;
	uint32_t *pop; /* outside ids */
};

/* The tokens of a node that no byte goes on from, to *to, and what is left of it. False: none. */
static inline bool
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
 * Go on by a byte. Each turn goes down by it or leaves at least one byte behind: linear in the
 * string. False: no token fits, whatever follows.
 */
static inline bool
tok_longest_take(const struct tok_longest *l, uint32_t *node, uint32_t **to, uint8_t byte)
{
	const uint32_t word = byte >> 6;
	const uint64_t bit = 1ull << (byte & 63);

	for (;;) {
		const struct tok_longest_node *at = &l->node[*node];

		if (at->child[word] & bit) {
			uint64_t lower = at->child[word] & (bit - 1);

			*node = at->first + at->below[word] + (uint32_t)__builtin_popcountll(lower);
			return true;
		}
		if (!tok_longest_fall_back(l, node, to))
			return false;
	}
}

/* Set-up. A token, and in which of the tries. */
struct tok_longest_piece {
	const uint8_t *p;
	uint32_t len, id; /* outside id */
	uint32_t root;	  /* TOK_LONGEST_BEGIN or TOK_LONGEST_GO_ON */
};

/* Build v->longest of n pieces, which are sorted on the way; no two are equal. */
bool tok_longest_build(
	struct tok_vocab *v, struct tok_longest_piece *piece, uint32_t n, struct tok_error *err);

#endif
