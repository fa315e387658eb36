/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate the tables of byte pair encoding of a compiled vocabulary. doc/internals/streaming.md
 * proves, for a valid list of merges, that the hot path stays in bounds and ends. So the list
 * (split) is checked first, then that the other tables are those that vocab_build.c makes of it.
 * Set-up only.
 */
#include <stdlib.h>

#include "encode/bpe.h"
#include "build/parts.h"
#include "compiled.h"
#include "unicode/pages.h"
#include "pretokenize/regex/regex.h"
#include "build/vocab_table.h"

#define AHEAD 16u /* nodes or words, to fetch from memory before they are needed */

static const uint8_t *
bytes_of(const struct tok_vocab *v, uint32_t id)
{
	return v->bytes + v->span[id].off;
}

/* ---- the list of merges ---- */

/* A rank id must have the bytes of its parts, which must have lower rank ids. */
static bool
ranks_fit(const struct tok_vocab *v)
{
	const uint32_t all = tok_vocab_table_n(v, TOK_TABLE_SPAN);

	for (uint32_t r = 0; r < v->n_ranks; r++) {
		const uint32_t n_ids = r < TOK_BYTES && !tok_has_unknown(v) ? v->info.n_ids : all;
		const struct tok_split part = v->split[r];
		const uint32_t id = v->ext[r], len = v->len[r];

		if (id >= n_ids || v->span[id].len != len || len > v->info.max_token_bytes)
			return false;
		if (r < TOK_BYTES) {
			if (len != 1 || *bytes_of(v, id) != r || part.left != r || part.right != r)
				return false;
			continue;
		}
		if (part.left >= r || part.right >= r ||
			len != (uint32_t)v->len[part.left] + v->len[part.right] ||
			memcmp(bytes_of(v, id), bytes_of(v, v->ext[part.left]),
				v->len[part.left]) != 0 ||
			memcmp(bytes_of(v, id) + v->len[part.left], bytes_of(v, v->ext[part.right]),
				v->len[part.right]) != 0)
			return false;
	}
	return true;
}

/* The table of pairs must have each merge and nothing else. */
static bool
pairs_fit(const struct tok_vocab *v)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < tok_vocab_table_n(v, TOK_TABLE_PAIR); i++)
		used += v->pair[i] != ~0ull;
	if (used != v->n_ranks - TOK_BYTES)
		return false;
	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++) {
		if (tok_pair(v, v->split[r].left, v->split[r].right) != r ||
			!tok_pair_may_be(v, v->split[r].left, v->split[r].right))
			return false;
	}
	return true;
}

static bool
byte_pairs_fit(const struct tok_vocab *v)
{
	const size_t bytes = TOK_BYTES * TOK_BYTES * sizeof(*v->byte_pair);
	struct tok_byte_pair *built = malloc(bytes);
	const bool ok = built != NULL && tok_byte_pairs_build(v, built) &&
			memcmp(built, v->byte_pair, bytes) == 0;

	free(built);
	return ok;
}

/*
 * Does a family of repeats make this merge? tok_repeats_fill() has checked families, but counts in
 * units: it assumes that two units next to each other are the bytes of the pair. So the first merge
 * of a family, which joins two units, is checked like any other merge.
 */
static bool
is_repeat(const struct tok_vocab *v, uint32_t r)
{
	for (uint32_t i = 0; i < v->n_repeats; i++) {
		if (r > v->repeat[i].low && r < v->repeat[i].high)
			return true;
	}
	return false;
}

/*
 * Each merge can be applied: encoding its bytes with only the earlier merges leaves its two parts.
 */
static bool
merges_live(const struct tok_vocab *v)
{
	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++) {
		if (!is_repeat(v, r) &&
			!tok_bpe_pair_stands(v, v->split[r].left, v->split[r].right, r))
			return false;
	}
	return true;
}

/* ---- words ---- */

/* No id may occur twice among ranks and whole pretokens. */
static bool
ids_differ(const struct tok_vocab *v)
{
	uint8_t *seen = calloc(tok_vocab_table_n(v, TOK_TABLE_SPAN), 1);
	bool ok = seen != NULL;

	for (uint32_t i = 0; ok && i < v->n_ranks + v->n_unmerged; i++) {
		const uint32_t id = i < v->n_ranks ? v->ext[i] : v->unmerged[i - v->n_ranks];

		ok = !seen[id];
		seen[id] = 1;
	}
	free(seen);
	return ok;
}

static bool
words_fit(const struct tok_vocab *v)
{
	uint32_t n_short = 0, n_long = 0;

	for (uint32_t i = 0; i <= v->word_mask; i++)
		n_short += v->word[i].len != 0;
	for (uint32_t i = 0; i <= v->long_mask; i++) {
		if (v->long_word[i].len == 0)
			continue;
		if (!tok_compiled_long_word_fits(v, &v->long_word[i]))
			return false;
		n_long++;
	}
	if (n_short > v->word_mask || n_long > v->long_mask || n_short + n_long != v->n_unmerged)
		return false;
	/* The ids differ, and there are as many as entries. So every entry has been checked. */
	for (uint32_t i = 0; i < v->n_unmerged; i++) {
		if (tok_compiled_find_word(v, v->unmerged[i]) != v->unmerged[i])
			return false;
	}
	return true;
}

/* Sorted, without repetition, each at least two bytes long. */
static bool
whole_fits(const struct tok_vocab *v)
{
	for (uint32_t i = 0; i < v->n_unmerged; i++) {
		const uint32_t id = v->unmerged[i], before = i > 0 ? v->unmerged[i - 1] : id;
		uint32_t len, common;
		int c;

		if (id >= v->info.n_ids || v->span[id].len < 2 ||
			v->span[id].len > v->info.max_token_bytes)
			return false;
		if (i == 0)
			continue;
		len = v->span[before].len;
		common = len < v->span[id].len ? len : v->span[id].len;
		c = memcmp(bytes_of(v, before), bytes_of(v, id), common);
		if (c > 0 || (c == 0 && len >= v->span[id].len))
			return false;
	}
	return true;
}

/* ---- automaton ---- */

static bool
has_child(const struct tok_node *node, uint8_t byte)
{
	return node->child[byte >> 6] >> (byte & 63) & 1;
}

/* The nodes are a tree, numbered breadth first. Leaves are tokens. */
static bool
nodes_fit(const struct tok_vocab *v)
{
	uint32_t used = 1;

	if (v->node[0].depth != 0 || v->node[0].token != TOK_NO_TOKEN)
		return false;
	for (uint32_t at = 0; at < v->n_nodes; at++) {
		const struct tok_node *node = &v->node[at];
		uint32_t below = 0, token = node->token;

		if (at >= used || node->first != used)
			return false;
		for (uint32_t w = 0; w < 4; w++) {
			if (node->below[w] != (uint8_t)below)
				return false;
			below += (uint32_t)__builtin_popcountll(node->child[w]);
		}
		if (below > v->n_nodes - used || (node->extends != 0) != (below > 0) ||
			(token != TOK_NO_TOKEN && token >= v->n_ranks) ||
			(token == TOK_NO_TOKEN && below == 0))
			return false;
		for (uint32_t i = 0; i < below; i++) {
			if (v->node[used + i].depth != node->depth + 1)
				return false;
		}
		used += below;
	}
	return used == v->n_nodes;
}

/* Do the witnesses of a node's children continue the node's own? See tokens_fit(). */
static bool
children_fit(const struct tok_vocab *v, const uint32_t *witness, uint32_t at)
{
	const struct tok_node *node = &v->node[at];
	const uint8_t *bytes = v->bytes + witness[at];
	uint32_t child = node->first;

	for (uint32_t w = 0; w < 4; w++) {
		for (uint64_t left = node->child[w]; left != 0; left &= left - 1) {
			const uint8_t *p = v->bytes + witness[child];

			/* Nodes, and so their children, come in falling order. */
			if (child > at + AHEAD)
				__builtin_prefetch(v->bytes + witness[child - AHEAD]);
			if (p[node->depth] != (w << 6 | (uint32_t)__builtin_ctzll(left)) ||
				(witness[child] != witness[at] &&
					memcmp(p, bytes, node->depth) != 0))
				return false;
			child++;
		}
	}
	return true;
}

/*
 * Each rank id has a node that spells its bytes, and no other node has a token. A node's witness is
 * the place in `bytes` of a token that starts with what the node spells: its own token if it has
 * one, else its first child's witness. So the nodes can be checked in order, which is much faster
 * than walking down for each token.
 */
static bool
tokens_fit(const struct tok_vocab *v)
{
	uint32_t *witness = malloc(v->n_nodes * sizeof(*witness)), n = 0;
	uint32_t *off = malloc(v->n_ranks * sizeof(*off)); /* by rank id: in the order of memory */
	bool ok = witness != NULL && off != NULL;

	for (uint32_t r = 0; ok && r < v->n_ranks; r++)
		off[r] = v->span[v->ext[r]].off;
	for (uint32_t at = v->n_nodes; ok && at-- > 0;) {
		const struct tok_node *node = &v->node[at];

		if (node->token != TOK_NO_TOKEN) {
			n++;
			ok = v->len[node->token] == node->depth;
			witness[at] = off[node->token];
		} else {
			witness[at] = witness[node->first]; /* leaves are tokens */
		}
		ok = ok && children_fit(v, witness, at) && tok_stem_fits(v, at);
	}
	free(off);
	free(witness);
	return ok && n == v->n_ranks;
}

/*
 * The failure link of a child by `byte`: its longest proper suffix in the tree. The root has all
 * bytes as children.
 */
static uint32_t
failure(const struct tok_vocab *v, uint32_t parent, uint8_t byte)
{
	uint32_t at = parent;

	if (parent == 0)
		return 0;
	do
		at = v->node[at].fail;
	while (!has_child(&v->node[at], byte));
	return tok_child(&v->node[at], byte);
}

/*
 * Links equal those that link_node() in vocab_build.c makes. Parents are checked before children.
 */
static bool
links_fit(const struct tok_vocab *v)
{
	if (v->node[0].fail != 0 || v->node[0].dict != 0)
		return false;
	for (uint32_t at = 0; at < v->n_nodes; at++) {
		uint32_t child = v->node[at].first;

		/* Prefetch the link's node: it is far away. */
		if (at + AHEAD < v->n_nodes)
			__builtin_prefetch(&v->node[v->node[at + AHEAD].fail]);
		for (uint32_t w = 0; w < 4; w++) {
			for (uint64_t left = v->node[at].child[w]; left != 0; left &= left - 1) {
				uint8_t byte = (uint8_t)(w << 6 | (uint32_t)__builtin_ctzll(left));
				const struct tok_node *node = &v->node[child++], *f;

				if (node->fail != failure(v, at, byte))
					return false;
				f = &v->node[node->fail];
				if (node->dict != (f->token != TOK_NO_TOKEN ? node->fail : f->dict))
					return false;
			}
		}
	}
	return true;
}

/* ---- characters ---- */

/* Each character has a class of its category that the steps know. */
static bool
classes_fit(const struct tok_vocab *v)
{
	const uint32_t pages = tok_vocab_table_n(v, TOK_TABLE_CAT) / TOK_PAGE;
	uint32_t run = 0;

	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		if (cp % TOK_PAGE == 0 && v->cat_page[cp / TOK_PAGE] >= pages)
			return false;
		run += run + 1 < tok_unicode_n_runs &&
		       tok_unicode_runs[run + 1] >> TOK_GC_BITS == cp;
		if (tok_cat_of(v, cp) != tok_gc_cat[tok_unicode_runs[run] & 31] ||
			tok_class_of(v, cp) + 1 >= v->step_width)
			return false;
	}
	return true;
}

static const char *
steps_fit(const struct tok_vocab *v)
{
	const uint32_t n = tok_vocab_table_n(v, TOK_TABLE_STEP);

	if (v->step_width == 0 || n % v->step_width != 0)
		return "step";
	return tok_machine_check(v->step, n / v->step_width, v->step_width);
}

const char *
tok_compiled_check_bpe(struct tok_vocab *v)
{
	if (v->n_unmerged > 0 && !tok_compiled_runs_fit(v))
		return "runs";
	if (!ranks_fit(v))
		return "split";
	if (!tok_repeats_fill(v))
		return "repeat";
	if (!pairs_fit(v) || !byte_pairs_fit(v))
		return "pair";
	if (!merges_live(v))
		return "merges";
	if (!whole_fits(v))
		return "whole";
	if (!ids_differ(v) || (v->n_unmerged > 0 && !words_fit(v)))
		return "word";
	if (!nodes_fit(v) || !tokens_fit(v))
		return "node";
	if (!links_fit(v))
		return "fail";
	if (v->pretok == TOK_PRETOK_SENTENCEPIECE)
		return tok_compiled_check_pieces(v);
	return classes_fit(v) ? steps_fit(v) : "cat";
}
