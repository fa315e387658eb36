/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate the tables of byte pair encoding of a compiled vocabulary: every index is in range, the
 * lengths of tokens add up, every search and every chain of links ends. Which ids a text gets is
 * trusted. Each table is read once, from its beginning to its end: that is most of the time it
 * takes to load a file. Set-up only.
 */
#include <stdlib.h>

#include "build/parts.h"
#include "compiled.h"
#include "unicode/pages.h"
#include "pretokenize/regex/regex.h"
#include "build/vocab_table.h"

/* What an element refers to is fetched from memory so many elements before it is looked at. */
#define AHEAD 32u

/* ---- tokens and merges ---- */

/* A rank id's parts have lower rank ids, and its length is the sum of theirs. */
static bool
ranks_fit(const struct tok_vocab *v)
{
	const uint32_t n_ids = tok_compiled_n_ids(v);

	for (uint32_t r = 0; r < v->n_ranks; r++) {
		const struct tok_split part = v->split[r];

		if (v->ext[r] >= n_ids || v->len[r] > v->info.max_token_bytes)
			return false;
		if (r < TOK_BYTES ? v->len[r] != 1 || part.left != r || part.right != r
				  : part.left >= r || part.right >= r ||
					    v->len[r] != (uint32_t)v->len[part.left] +
								 v->len[part.right])
			return false;
	}
	return true;
}

/* A pair merges to the rank id that has these parts. */
static bool
pairs_fit(const struct tok_vocab *v)
{
	const uint32_t n = tok_vocab_table_n(v, TOK_TABLE_PAIR);

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t pair = v->pair[i];
		const uint32_t r = (uint32_t)pair & 0x1fffff;

		__builtin_prefetch(&v->split[v->pair[(i + AHEAD) & (n - 1)] & 0x1fffff]);
		if (pair != ~0ull &&
			(r - TOK_BYTES >= v->n_ranks - TOK_BYTES ||
				pair >> 21 != tok_pair_key(v->split[r].left, v->split[r].right)))
			return false;
	}
	return true;
}

static bool
byte_pairs_fit(const struct tok_vocab *v)
{
	bool ok = true;

	for (uint32_t i = 0; i < TOK_BYTES * TOK_BYTES; i++)
		ok &= v->byte_pair[i].merge + 1 <= v->n_ranks; /* TOK_NO_TOKEN + 1 is 0 */
	return ok;
}

/* ---- words ---- */

static bool
unmerged_fit(const struct tok_vocab *v)
{
	bool ok = true;

	for (uint32_t i = 0; i < v->n_unmerged; i++)
		ok &= v->unmerged[i] < v->info.n_ids;
	return ok;
}

/* ---- automaton ---- */

/* How far the nodes have been checked. They are numbered breadth first. */
struct reached {
	uint32_t used;	      /* nodes that the nodes so far have as children, and the root */
	uint32_t depth;	      /* of the current node */
	uint32_t first, next; /* nodes of the current depth: first .. next - 1 */
	uint8_t *has_token;   /* by node */
};

/* The children of the node `at` follow those of the nodes before it. */
static bool
children_fit(const struct tok_vocab *v, struct reached *x, uint32_t at)
{
	const struct tok_node *node = &v->node[at];
	uint32_t below = 0;
	bool ok = at < x->used && node->first == x->used;

	for (uint32_t w = 0; w < 4; w++) {
		ok &= node->below[w] == (uint8_t)below;
		below += (uint32_t)__builtin_popcountll(node->child[w]);
	}
	ok &= below <= v->n_nodes - x->used && (at > 0 || below == TOK_BYTES);
	x->used += below;
	return ok;
}

/*
 * A node has a token of its own length, or leads to a shorter suffix that has one. Single bytes are
 * tokens, so every search for a token ends there. A link leads to a shorter suffix.
 */
static bool
links_fit(const struct tok_vocab *v, struct reached *x, uint32_t at)
{
	const struct tok_node *node = &v->node[at];
	const bool has_token = node->token != TOK_NO_TOKEN;
	bool ok = node->depth == x->depth && node->fail < x->first && node->dict < x->first;

	if (!ok || (has_token && (node->token >= v->n_ranks || v->len[node->token] != x->depth)))
		return false;
	x->has_token[at] = has_token;
	ok = x->depth == 1 ? has_token && node->dict == 0 : x->has_token[node->dict];
	return ok && (node->extends == 0 || node->stem < v->n_ranks);
}

static bool
nodes_fit(const struct tok_vocab *v)
{
	struct reached x = {.used = 1, .next = 1, .has_token = calloc(v->n_nodes, 1)};
	bool ok = x.has_token != NULL && v->node[0].depth == 0 && children_fit(v, &x, 0);

	for (uint32_t at = 1; ok && at < v->n_nodes; at++) {
		const uint32_t ahead = at + AHEAD < v->n_nodes ? at + AHEAD : at;

		__builtin_prefetch(&v->len[v->node[ahead].token]);
		if (at == x.next) {
			x.first = at;
			x.next = x.used;
			x.depth++;
		}
		ok = x.depth <= TOK_MAX_TOKEN_BYTES && links_fit(v, &x, at) &&
		     children_fit(v, &x, at);
	}
	free(x.has_token);
	return ok && x.used == v->n_nodes;
}

/* ---- characters ---- */

/*
 * Each character of a page has a class of its category that the steps know. *run: of the page's
 * first character; moves to that of the last.
 */
static bool
page_fits(const struct tok_vocab *v, uint32_t page, uint32_t *run)
{
	for (uint32_t cp = page * TOK_PAGE; cp < (page + 1) * TOK_PAGE; cp++) {
		*run += *run + 1 < tok_unicode_n_runs &&
			tok_unicode_runs[*run + 1] >> TOK_GC_BITS == cp;
		if (tok_cat_of(v, cp) != tok_gc_cat[tok_unicode_runs[*run] & 31] ||
			tok_class_of(v, cp) + 1 >= v->step_width)
			return false;
	}
	return true;
}

/* Most pages are the same, and all of one category: each of these is looked at once. */
static bool
classes_fit(const struct tok_vocab *v)
{
	const uint32_t pages = tok_vocab_table_n(v, TOK_TABLE_CAT) / TOK_PAGE;
	uint32_t *known = calloc(pages, sizeof(*known)), run = 0; /* by page of `cat`: a run + 1 */
	bool ok = known != NULL;

	for (uint32_t i = 0; ok && i < TOK_PAGES; i++) {
		const uint32_t page = v->cat_page[i], before = run;

		ok = page < pages;
		if (ok && run + 1 < tok_unicode_n_runs &&
			tok_unicode_runs[run + 1] >> TOK_GC_BITS >= (i + 1) * TOK_PAGE &&
			known[page] != 0 &&
			((tok_unicode_runs[known[page] - 1] ^ tok_unicode_runs[run]) & 31) == 0)
			continue;
		ok = ok && page_fits(v, i, &run);
		if (ok && run == before)
			known[page] = run + 1;
	}
	free(known);
	return ok;
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
	if (!ranks_fit(v))
		return "split";
	if (!tok_repeats_fill(v))
		return "repeat";
	if (!pairs_fit(v) || !byte_pairs_fit(v))
		return "pair";
	if (!unmerged_fit(v))
		return "word";
	if (!nodes_fit(v))
		return "node";
	if (v->pretok == TOK_PRETOK_SENTENCEPIECE)
		return tok_compiled_check_pages(v) ? NULL : "cat";
	return classes_fit(v) ? steps_fit(v) : "cat";
}
