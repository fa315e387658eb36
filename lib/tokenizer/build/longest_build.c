/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tries with failure links of longest.h. Set-up only. */
#include <stdlib.h>

#include "longest_build.h"
#include "vocab_table.h"

#define POPS_MAX (1u << 24) /* 64 MiB; BERT's vocabulary needs a thousandth */

/* Used while building: the pieces below a node are piece[low .. high). */
struct range {
	uint32_t low, high;
	uint32_t token; /* outside id of the token spelled, or TOK_NO_TOKEN */
	uint32_t depth; /* bytes spelled */
};

struct making {
	struct tok_longest *l;
	struct tok_trie_word *piece;
	uint32_t n_pieces;
	struct range *range; /* by node */
	uint32_t n_nodes;
	uint32_t *pop;
	uint32_t n_pop, room_pop;
};

/* ---- sorting ---- */

/* The first eight bytes, the first of them highest, and zeros after a shorter word. */
static uint64_t
first_bytes(const uint8_t *p, uint32_t len)
{
	uint64_t first = 0;

	memcpy(&first, p, len < sizeof(first) ? len : sizeof(first));
	return __builtin_bswap64(first);
}

static int
compare_words(const void *a, const void *b)
{
	const struct tok_trie_word *x = a, *y = b;
	int c = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

/* From one array to the other, by a number from 0 to 255, which is taken from `first`, or is `root`
 * where `shift` is 64; else in the same order. */
static void
sort_by(const struct tok_trie_word *from, struct tok_trie_word *to, uint32_t n, uint32_t shift)
{
	uint32_t place[257] = {0};

#define NUMBER(x) (shift == 64 ? (x)->root : (x)->first >> shift & 0xff)
	for (uint32_t i = 0; i < n; i++)
		place[NUMBER(&from[i]) + 1]++;
	for (uint32_t k = 1; k < 256; k++)
		place[k] += place[k - 1];
	for (uint32_t i = 0; i < n; i++)
		to[place[NUMBER(&from[i])]++] = from[i];
#undef NUMBER
}

/* First by root and the first bytes, then those that have these in common. */
bool
tok_trie_sort(struct tok_trie_word *word, uint32_t n, struct tok_error *err)
{
	struct tok_trie_word *other = malloc((n + (size_t)1) * sizeof(*other));

	if (other == NULL)
		return tok_fail(err, "out of memory for %u tokens", n);
	for (uint32_t i = 0; i < n; i++)
		word[i].first = first_bytes(word[i].p, word[i].len);
	for (uint32_t shift = 0; shift < 64; shift += 16) {
		sort_by(word, other, n, shift);
		sort_by(other, word, n, shift + 8);
	}
	sort_by(word, other, n, 64);
	memcpy(word, other, n * sizeof(*word));
	free(other);
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && word[end].first == word[i].first &&
				  word[end].root == word[i].root;
			end++)
			;
		if (end > i + 1)
			qsort(word + i, end - i, sizeof(*word), compare_words);
		for (uint32_t k = i + 1; k < end; k++) {
			if (compare_words(&word[k - 1], &word[k]) == 0)
				return tok_fail(err,
					"two tokens have the same text \"%.*s\": remove one",
					word[k].len < 60 ? (int)word[k].len : 60,
					(const char *)word[k].p);
		}
	}
	return true;
}

/* ---- nodes ---- */

static uint32_t
count_nodes(const struct making *g)
{
	uint32_t nodes = 2;

	for (uint32_t i = 0; i < g->n_pieces; i++) {
		const struct tok_trie_word *x = &g->piece[i], *before = x - 1;
		uint32_t common = 0;

		while (i > 0 && before->root == x->root && common < x->len &&
			common < before->len && before->p[common] == x->p[common])
			common++;
		nodes += x->len - common;
	}
	return nodes;
}

/* Append the children of a node after all existing nodes. */
static void
add_children(struct making *g, uint32_t at)
{
	struct tok_longest_node *node = &g->l->node[at];
	uint32_t low = g->range[at].low, high = g->range[at].high, depth = g->range[at].depth;

	node->first = g->n_nodes;
	g->range[at].token = TOK_NO_TOKEN;
	if (low < high && g->piece[low].len == depth)
		g->range[at].token = g->piece[low++].id;
	while (low < high) {
		uint8_t byte = g->piece[low].p[depth];
		struct range *child = &g->range[g->n_nodes++];

		child->low = low;
		child->depth = depth + 1;
		while (low < high && g->piece[low].p[depth] == byte)
			low++;
		child->high = low;
		node->child[byte >> 6] |= 1ull << (byte & 63);
	}
	for (uint32_t i = 1; i < 4; i++)
		node->below[i] =
			(uint8_t)(node->below[i - 1] + __builtin_popcountll(node->child[i - 1]));
}

/* ---- failure links ---- */

static bool
put_pops(struct making *g, const uint32_t *id, uint32_t n)
{
	if (n > POPS_MAX - g->n_pop)
		return false;
	if (g->n_pop + n > g->room_pop) {
		uint32_t room = 2 * (g->n_pop + n), *grown = realloc(g->pop, room * sizeof(*grown));

		if (grown == NULL)
			return false;
		g->pop = grown;
		g->room_pop = room;
	}
	memcpy(g->pop + g->n_pop, id, n * sizeof(*id));
	g->n_pop += n;
	return true;
}

/* Append an entry of pop[] to pop[]. pop[] may move while it grows, so entries are passed by index.
 */
static bool
copy_pops(struct making *g, const struct tok_longest_node *from)
{
	for (uint32_t i = 0; i < from->n_pop; i++) {
		uint32_t id = g->pop[from->pop + i];

		if (!put_pops(g, &id, 1))
			return false;
	}
	return true;
}

/*
 * Set pop and fail of a node (algorithm 2 of the paper). A node that spells a token pops this
 * token, and no bytes remain. Any other node pops what its parent pops. The remaining bytes are
 * those of the parent's fail, plus the node's last byte. If the node of these has no child for the
 * byte, pop and fail of that node are followed, as often as needed. It spells fewer bytes, so it is
 * complete.
 */
static bool
link_node(struct making *g, uint32_t parent, uint32_t at, uint8_t byte)
{
	const struct tok_longest *l = g->l;
	struct tok_longest_node *node = &l->node[at], *up = &l->node[parent];
	uint32_t z = up->fail, to;

	node->fail = TOK_NO_TOKEN;
	node->pop = g->n_pop;
	if (g->range[at].token != TOK_NO_TOKEN) {
		node->fail = TOK_LONGEST_GO_ON;
		node->n_pop = 1;
		return put_pops(g, &g->range[at].token, 1);
	}
	if (z == TOK_NO_TOKEN)
		return true;
	to = tok_longest_child(&l->node[z], byte);
	if (to != TOK_NO_TOKEN) {
		node->pop = up->pop;
		node->n_pop = up->n_pop;
		node->fail = to;
		return true;
	}
	if (!copy_pops(g, up))
		return false;
	while (to == TOK_NO_TOKEN) {
		if (!copy_pops(g, &l->node[z]))
			return false;
		z = l->node[z].fail;
		if (z == TOK_NO_TOKEN) {
			g->n_pop = node->pop;
			return true;
		}
		to = tok_longest_child(&l->node[z], byte);
	}
	node->n_pop = g->n_pop - node->pop;
	node->fail = to;
	return true;
}

static bool
link_children(struct making *g, uint32_t at)
{
	const struct tok_longest_node *node = &g->l->node[at];
	uint32_t child = node->first;

	for (uint32_t w = 0; w < 4; w++) {
		for (uint64_t bits = node->child[w]; bits != 0; bits &= bits - 1) {
			if (!link_node(g, at, child++,
				    (uint8_t)(64 * w + (uint32_t)__builtin_ctzll(bits))))
				return false;
		}
	}
	return true;
}

static uint32_t
first_below(const struct making *g, uint32_t root)
{
	uint32_t i = 0;

	while (i < g->n_pieces && g->piece[i].root < root)
		i++;
	return i;
}

static bool
build_trie(struct making *g, struct tok_vocab *v, enum tok_table node_table,
	enum tok_table pop_table, struct tok_error *err)
{
	struct tok_longest *l = g->l;
	uint32_t nodes, middle;

	if (!tok_trie_sort(g->piece, g->n_pieces, err))
		return false;
	nodes = count_nodes(g);
	g->range = calloc(nodes, sizeof(*g->range));
	if (g->range == NULL || !tok_vocab_table_make(v, node_table, nodes))
		return tok_fail(err, "out of memory for a trie of %u nodes", nodes);
	middle = first_below(g, TOK_LONGEST_GO_ON);
	g->range[TOK_LONGEST_BEGIN].high = middle;
	g->range[TOK_LONGEST_GO_ON].low = middle;
	g->range[TOK_LONGEST_GO_ON].high = g->n_pieces;
	g->n_nodes = 2;
	for (uint32_t at = 0; at < g->n_nodes; at++)
		add_children(g, at);
	l->node[TOK_LONGEST_BEGIN].fail = TOK_NO_TOKEN;
	l->node[TOK_LONGEST_GO_ON].fail = TOK_NO_TOKEN;
	for (uint32_t at = 0; at < g->n_nodes; at++) {
		if (!link_children(g, at))
			return tok_fail(err,
				"the tokens fall apart into more than %u parts, or memory is short",
				POPS_MAX);
	}
	if (!tok_vocab_table_make(v, pop_table, g->n_pop + (size_t)1))
		return tok_fail(err, "out of memory for %u parts of tokens", g->n_pop);
	if (g->n_pop > 0)
		memcpy(l->pop, g->pop, g->n_pop * sizeof(*g->pop));
	return true;
}

bool
tok_longest_build(struct tok_vocab *v, struct tok_longest *l, enum tok_table nodes,
	enum tok_table pops, struct tok_trie_word *piece, uint32_t n, struct tok_error *err)
{
	struct making g = {.l = l, .piece = piece, .n_pieces = n};
	bool ok = build_trie(&g, v, nodes, pops, err);

	free(g.range);
	free(g.pop);
	return ok;
}
