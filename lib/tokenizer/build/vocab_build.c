/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables of a vocabulary from a model. Set-up only. */
#include <stdio.h>
#include <stdlib.h>

#include "normalize/added.h"
#include "encode/bpe.h"
#include "isa/kernels.h"
#include "parts.h"
#include "tables/mem.h"
#include "unicode/pages.h"
#include "pieces.h"
#include "pretokenize/names.h"
#include "pretokenize/regex/regex.h"
#include "longest_build.h"
#include "model_make.h"
#include "unicode/utf8.h"
#include "vocab_table.h"

/* ---- rank ids, merges ---- */

/*
 * Fills rank_of[outside id] with the rank id, or TOK_NO_TOKEN. Parts come before the merged token.
 */
static bool
build_ranks(
	struct tok_vocab *v, const struct tok_model *m, uint32_t *rank_of, struct tok_error *err)
{
	uint32_t i;

	for (i = 0; i < m->n_tokens; i++)
		rank_of[i] = TOK_NO_TOKEN;
	for (i = 0; i < TOK_BYTES; i++)
		v->ext[i] = TOK_NO_TOKEN;
	for (i = 0; i < m->n_tokens; i++) {
		const struct tok_model_token *t = &m->token[i];

		if (t->special || t->outside || t->len != 1)
			continue;
		if (v->ext[m->bytes[t->off]] != TOK_NO_TOKEN)
			return tok_fail(err, "ids %u and %u are both the byte 0x%02x",
				v->ext[m->bytes[t->off]], i, m->bytes[t->off]);
		v->ext[m->bytes[t->off]] = i;
		rank_of[i] = m->bytes[t->off];
	}
	for (i = 0; i < TOK_BYTES; i++) {
		if (v->ext[i] == TOK_NO_TOKEN)
			return tok_fail(err,
				"no token for the byte 0x%02x: a byte-level "
				"vocabulary needs all 256",
				i);
		v->len[i] = 1;
		v->split[i] = (struct tok_split){i, i};
	}
	for (i = 0; i < m->n_merges; i++) {
		const struct tok_model_merge *g = &m->merge[i];
		uint32_t left = rank_of[g->left], right = rank_of[g->right];

		rank_of[g->result] = TOK_BYTES + i;
		v->ext[TOK_BYTES + i] = g->result;
		v->len[TOK_BYTES + i] = (uint16_t)m->token[g->result].len;
		v->split[TOK_BYTES + i] = (struct tok_split){left, right};
	}
	return true;
}

/* ---- words ---- */

static const uint8_t *
bytes_of(const struct tok_vocab *v, uint32_t rank_id)
{
	return v->bytes + v->span[v->ext[rank_id]].off;
}

/* ---- tokens that no merge makes: only a whole pretoken can be one ---- */

struct whole {
	const uint8_t *p;
	uint32_t len, id;
};

static int
compare_whole(const void *a, const void *b)
{
	const struct whole *x = a, *y = b;
	int c = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

/* Sort these tokens by their bytes. rank_of[outside id]: as filled in by build_ranks. */
static bool
build_whole(struct tok_vocab *v, const struct tok_model *m, const uint32_t *rank_of,
	struct tok_error *err)
{
	struct whole *found;

	if (!m->ignore_merges || m->n_unmerged == 0)
		return true;
	found = calloc(m->n_unmerged, sizeof(*found));
	if (found == NULL || !tok_vocab_table_make(v, TOK_TABLE_UNMERGED, m->n_unmerged)) {
		free(found);
		return tok_fail(err, "out of memory for %u tokens", m->n_unmerged);
	}
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];

		if (!t->special && !t->outside && t->len > 1 && rank_of[id] == TOK_NO_TOKEN)
			found[v->n_unmerged++] = (struct whole){v->bytes + t->off, t->len, id};
	}
	assert(v->n_unmerged == m->n_unmerged);
	qsort(found, v->n_unmerged, sizeof(*found), compare_whole);
	for (uint32_t i = 0; i < v->n_unmerged; i++)
		v->unmerged[i] = found[i].id;
	free(found);
	return true;
}

/* ---- longest match ---- */

static bool
build_longest(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	struct tok_trie_word *piece;
	uint32_t n = 0;
	bool ok;

	if (!m->greedy)
		return true;
	piece = malloc((m->n_tokens + (size_t)1) * sizeof(*piece));
	ok = piece != NULL || tok_fail(err, "out of memory for %u tokens", m->n_tokens);
	for (uint32_t id = 0; ok && id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];

		if (!t->special && !t->outside && t->len > 0)
			piece[n++] = (struct tok_trie_word){
				v->bytes + t->off, t->len, id, TOK_LONGEST_GO_ON, 0};
	}
	ok = ok && tok_longest_build(v, &v->longest, TOK_TABLE_LONGEST_NODE, TOK_TABLE_LONGEST_POP,
			   piece, n, err);
	free(piece);
	return ok;
}

/* ---- automaton ---- */

/* Work space of the trie: the words below a node are sorted[low .. high). */
struct range {
	uint32_t low, high;
};

static void
link_node(struct tok_vocab *v, uint32_t parent, uint32_t child, uint8_t byte)
{
	struct tok_node *node = &v->node[child];

	/* Parents come before children, so the links of all shorter strings exist. */
	node->fail = parent == 0 ? 0 : tok_next_node(v, v->node[parent].fail, byte, false);
	node->dict =
		v->node[node->fail].token != TOK_NO_TOKEN ? node->fail : v->node[node->fail].dict;
}

static void
link_children(struct tok_vocab *v, uint32_t at)
{
	const struct tok_node *node = &v->node[at];
	uint32_t child = node->first;

	for (uint32_t w = 0; w < 4; w++) {
		for (uint64_t bits = node->child[w]; bits != 0; bits &= bits - 1)
			link_node(v, at, child++,
				(uint8_t)(64 * w + (uint32_t)__builtin_ctzll(bits)));
	}
}

/*
 * Build the trie breadth first from the sorted words. range[] has room for one node per byte, plus
 * one.
 */
static void
build_trie(struct tok_vocab *v, const struct tok_trie_word *sorted, uint32_t n, struct range *range)
{
	uint32_t at, used = 1;

	range[0] = (struct range){0, n};
	v->node[0].token = TOK_NO_TOKEN;
	for (at = 0; at < used; at++) {
		struct tok_node *node = &v->node[at];
		uint32_t depth = node->depth, low = range[at].low, high = range[at].high, w;

		if (low < high && sorted[low].len == depth && depth > 0)
			node->token = sorted[low++].id;
		node->first = used;
		node->extends = low < high ? TOK_EXTENDS : 0;
		while (low < high) {
			uint8_t byte = sorted[low].p[depth];
			struct tok_node *child = &v->node[used];

			range[used].low = low;
			while (low < high && sorted[low].p[depth] == byte)
				low++;
			range[used].high = low;
			child->depth = (uint16_t)(depth + 1);
			child->token = TOK_NO_TOKEN;
			node->child[byte >> 6] |= 1ull << (byte & 63);
			used++;
		}
		for (w = 1; w < 4; w++)
			node->below[w] = (uint8_t)(node->below[w - 1] +
						   __builtin_popcountll(node->child[w - 1]));
	}
	assert(used == v->n_nodes);
}

static uint32_t
count_nodes(const struct tok_trie_word *sorted, uint32_t n)
{
	uint32_t nodes = 1, i, k;

	for (i = 0; i < n; i++) {
		uint32_t common = 0, most = 0;

		if (i > 0)
			most = sorted[i].len < sorted[i - 1].len ? sorted[i].len
								 : sorted[i - 1].len;
		for (k = 0; k < most && sorted[i].p[k] == sorted[i - 1].p[k]; k++)
			common++;
		nodes += sorted[i].len - common;
	}
	return nodes;
}

bool
tok_automaton_build(
	struct tok_vocab *v, struct tok_trie_word *word, uint32_t n, struct tok_error *err)
{
	struct range *range;
	uint32_t nodes, at;
	bool ok;

	if (!tok_trie_sort(word, n, err))
		return false;
	nodes = count_nodes(word, n);
	range = calloc(nodes, sizeof(*range));
	v->n_nodes = nodes;
	ok = range != NULL && tok_vocab_table_make(v, TOK_TABLE_NODE, nodes);
	if (ok) {
		build_trie(v, word, n, range);
		for (at = 0; at < v->n_nodes; at++)
			link_children(v, at);
	}
	free(range);
	return ok || tok_fail(err, "out of memory for an automaton of %u nodes", nodes);
}

static bool
build_automaton(struct tok_vocab *v, struct tok_error *err)
{
	struct tok_trie_word *word = calloc(v->n_ranks, sizeof(*word));
	bool ok = word != NULL || tok_fail(err, "out of memory for %u tokens", v->n_ranks);

	for (uint32_t r = 0; ok && r < v->n_ranks; r++)
		word[r] = (struct tok_trie_word){bytes_of(v, r), v->len[r], r, 0, 0};
	ok = ok && tok_automaton_build(v, word, v->n_ranks, err);
	if (ok)
		tok_stems_fill(v);
	free(word);
	return ok;
}

/* ---- the rest ---- */

static bool
build_repeats(struct tok_vocab *v, const struct tok_model *m, const uint32_t *rank_of,
	struct tok_error *err)
{
	if (m->n_repeats == 0)
		return true;
	if (!tok_vocab_table_make(v, TOK_TABLE_REPEAT, m->n_repeats))
		return tok_fail(err, "out of memory for %u families of repeats", m->n_repeats);
	for (uint32_t i = 0; i < m->n_repeats; i++) {
		const struct tok_model_repeat *from = &m->repeat[i];
		struct tok_repeat *f = &v->repeat[i];

		f->unit = rank_of[from->unit];
		f->low = rank_of[from->id[0]];
		f->high = f->low + from->n;
		memcpy(f->power, from->power, from->n);
		memcpy(f->order, from->order, from->n);
	}
	v->n_repeats = m->n_repeats;
	return tok_repeats_fill(v) ||
	       tok_fail(err, "tokens of repeats that their merges do not make");
}

bool
tok_vocab_classes(struct tok_vocab *v, struct tok_runs runs, struct tok_error *err)
{
	struct tok_page_set set = {.bytes = TOK_PAGE};
	struct tok_spread s = {0};

	if (!tok_spread_runs(&s, runs) || !tok_vocab_table_make(v, TOK_TABLE_CAT_PAGE, TOK_PAGES))
		goto out;
	set.page = s.value; /* in place: a page only moves down, over one already read */
	for (uint32_t i = 0, seen = 0; i < TOK_PAGES; i++) {
		if (s.page[i] == seen)
			v->cat_page[i] = tok_page_put(&set, s.value + seen++ * TOK_PAGE);
		else
			v->cat_page[i] = v->cat_page[i - 1];
	}
	if (tok_vocab_table_make(v, TOK_TABLE_CAT, set.n * TOK_PAGE))
		memcpy(v->cat, set.page, set.n * TOK_PAGE);
out:
	free(s.value);
	return v->cat != NULL || tok_fail(err, "out of memory for character classes");
}

/* For all kinds: the bytes of ids. */
static bool
build_spans(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	if (!tok_vocab_table_make(v, TOK_TABLE_SPAN, m->n_tokens) ||
		!tok_vocab_table_make(v, TOK_TABLE_BYTES, m->n_bytes + 8))
		return tok_fail(err, "out of memory for %u tokens", m->n_tokens);
	memcpy(v->bytes, m->bytes, m->n_bytes);
	for (uint32_t i = 0; i < m->n_tokens; i++) {
		v->span[i] = (struct tok_span){m->token[i].off, m->token[i].len};
		if (!m->token[i].special && m->token[i].len > v->info.max_token_bytes &&
			(m->kind == TOK_KIND_WORDPIECE || !m->token[i].outside))
			v->info.max_token_bytes = m->token[i].len;
	}
	return true;
}

static bool
build_tokens(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	return (tok_vocab_table_make(v, TOK_TABLE_EXT, v->n_ranks) &&
		       tok_vocab_table_make(v, TOK_TABLE_LEN, v->n_ranks) &&
		       tok_vocab_table_make(v, TOK_TABLE_SPLIT, v->n_ranks)) ||
	       tok_fail(err, "out of memory for %u tokens", m->n_tokens);
}

/* The pretokenizer: classes of characters, and its steps. */
static bool
build_steps(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	struct tok_pretok_split split[TOK_SPLITS_MAX] = {{0}};
	const char *where = tok_shown_path(v->info.path);
	struct tok_machine machine;
	size_t n = 0;
	bool ok;

	while (n < TOK_SPLITS_MAX &&
		(split[n].regex = m->pretok == TOK_PRETOK_REGEX
					  ? m->regex[n]
					  : tok_pretok_regex(m->pretok, n)) != NULL) {
		split[n].behavior = m->behavior[n];
		n++;
	}
	if (!tok_regex_compile(where, split, n, &machine, err))
		return false;
	v->step_width = machine.width;
	ok = tok_vocab_classes(v, (struct tok_runs){machine.run, machine.n_runs, 8}, err);
	if (ok) {
		ok = tok_vocab_table_make(
			     v, TOK_TABLE_STEP, (size_t)machine.n_states * machine.width) ||
		     tok_fail(err, "out of memory for the steps of a pretokenizer");
	}
	if (ok)
		memcpy(v->step, machine.step, v->table_bytes[TOK_TABLE_STEP]);
	tok_machine_free(&machine);
	return ok;
}

/* Texts of ids, with </w> for the blank at the end of a word. */
static bool
build_word_ends(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	static const char end[] = "</w>";
	struct tok_wordpiece *w = &v->wordpiece;
	uint32_t at = 0;

	v->word_end = m->word_end;
	if (!tok_vocab_table_make(v, TOK_TABLE_AT_START, m->n_tokens) ||
		!tok_vocab_table_make(v, TOK_TABLE_BEHIND, m->n_tokens) ||
		!tok_vocab_table_make(v, TOK_TABLE_TEXT, m->n_bytes + 4 * (size_t)m->n_tokens))
		return tok_fail(err, "out of memory for %u texts", m->n_tokens);
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];
		const bool ends = !t->special && t->len > 1 && m->bytes[t->off + t->len - 1] == ' ';
		const uint32_t len = t->len - ends;

		memcpy(w->text + at, m->bytes + t->off, len);
		memcpy(w->text + at + len, end, ends ? sizeof(end) - 1 : 0);
		w->at_start[id] = w->behind[id] =
			(struct tok_span){at, len + (ends ? (uint32_t)sizeof(end) - 1 : 0)};
		at += w->behind[id].len;
		if (!t->special && w->behind[id].len > v->info.max_token_bytes)
			v->info.max_token_bytes = w->behind[id].len;
	}
	return true;
}

static bool
build_bpe(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	uint32_t *rank_of = calloc(m->n_tokens, sizeof(*rank_of));
	bool ok = rank_of != NULL || tok_fail(err, "out of memory for %u tokens", m->n_tokens);

	ok = ok && build_tokens(v, m, err) && build_ranks(v, m, rank_of, err) &&
	     tok_pairs_build(v, err) && build_whole(v, m, rank_of, err) &&
	     (v->n_unmerged == 0 || tok_words_build(v, v->unmerged, v->n_unmerged, err)) &&
	     build_automaton(v, err) && build_longest(v, m, err) &&
	     build_repeats(v, m, rank_of, err) &&
	     (m->pretok == TOK_PRETOK_SENTENCEPIECE ? tok_pieces_build(v, err)
						    : build_steps(v, m, err)) &&
	     (!m->word_end || build_word_ends(v, m, err));
	v->digits_apart = m->digits_apart;
	free(rank_of);
	return ok;
}

static bool
build_wordpiece(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	v->info.max_token_bytes++; /* a blank may be put before the text */
	return tok_wordpiece_build(v, m, err);
}

static bool
build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	const char *wrong;
	bool ok = build_spans(v, m, err) && tok_norm_build(v, &m->norm, err);

	switch (m->kind) {
	case TOK_KIND_BPE:
		ok = ok && build_bpe(v, m, err) &&
		     (!m->unigram.sentencepiece || tok_unigram_build_normalizer(v, m, err));
		break;
	case TOK_KIND_WORDPIECE:
		ok = ok && build_wordpiece(v, m, err) && tok_words_choose(v, m, err);
		break;
	case TOK_KIND_UNIGRAM:
		ok = ok && tok_unigram_build(v, m, err) && tok_words_choose(v, m, err);
		break;
	}
	/* Some tokens are searched in normalized text, so the normalizer must exist by now. */
	ok = ok && tok_added_build(v, m, err);
	if (ok && (m->kind == TOK_KIND_UNIGRAM || m->unigram.sentencepiece))
		tok_unigram_sum(v); /* uses the added tokens */
	wrong = ok ? tok_norm_bound(v) : NULL;
	return wrong == NULL ? ok : tok_fail(err, "%s", wrong);
}

struct tok_vocab *
tok_vocab_build(struct tok_model *m, const char *name, const char *path, const struct tok_mem *mem,
	struct tok_error *err)
{
	struct tok_vocab *v;
	size_t strings = strlen(name) + strlen(path) + 2;
	char *text;

	if (mem == NULL)
		mem = &tok_mem_default;
	assert(m->kind != TOK_KIND_BPE || m->pretok != TOK_PRETOK_NONE);
	if (m->greedy && m->unigram.sentencepiece && !m->unigram.byte_fallback) {
		tok_fail(err, "%s: algo \"greedy\" is not implemented without byte_fallback", path);
		return NULL;
	}
	if (m->greedy && (m->word_end || m->digits_apart)) {
		tok_fail(err, "%s: algo \"greedy\" is not implemented with %s", path,
			m->word_end ? "end_of_word_suffix" : "Digits after ByteLevel");
		return NULL;
	}
	if (m->greedy) { /* every token is a word, nothing is merged */
		m->n_merges = 0;
		m->n_tokens -= m->n_parts;
		m->n_parts = 0;
		m->ignore_merges = true;
	}
	if (m->kind == TOK_KIND_BPE &&
		(!tok_model_live_merges(m, err) || !tok_model_order_merges(m, err)))
		return NULL;
	v = calloc(1, sizeof(*v) + strings);
	if (v == NULL) {
		tok_fail(err, "out of memory");
		return NULL;
	}
	v->kernels = tok_kernels_choose(err);
	if (v->kernels == NULL) {
		free(v);
		return NULL;
	}
	text = (char *)(v + 1);
	v->mem = *mem;
	v->kind = m->kind;
	v->ids_per_byte = TOK_UTF8_REPLACEMENT_BYTES; /* other kinds set their own */
	v->pretok = m->pretok;
	v->metaspace = m->metaspace;
	v->shape = m->shape;
	v->n_ranks = TOK_BYTES + m->n_merges;
	v->info.name = strcpy(text, name);
	v->info.path = strcpy(text + strlen(name) + 1, path);
	v->info.format = m->format;
	v->info.pretokenizer = tok_words_name(m->kind, m->pretok);
	v->info.checksum = tok_model_checksum(m);
	v->info.algo = m->greedy ? "greedy" : "exact";
	v->info.n_ids = m->n_tokens - m->n_parts;
	v->info.n_merges = m->n_merges;
	if (!build(v, m, err)) {
		tok_vocab_free(v);
		return NULL;
	}
	tok_stages_set(v);
	if (v->kind == TOK_KIND_BPE && !m->greedy)
		tok_byte_runs_fill(v);
	return v;
}
