/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate the longest-match tries of a compiled vocabulary: no node emits more bytes than it
 * spells, so there is room for the ids of every text; every chain of failure links ends. Whether a
 * node emits the right tokens is not checked. Set-up only.
 */
#include <stdlib.h>

#include "compiled.h"
#include "build/vocab_table.h"

static uint32_t
n_children(const struct tok_longest_node *node)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < 4; w++)
		n += (uint32_t)__builtin_popcountll(node->child[w]);
	return n;
}

/* Bytes missing from the last character after `byte`, where `cut` were missing before. */
static uint8_t
cut_behind(uint8_t cut, uint32_t byte)
{
	if ((byte & 0xc0) == 0x80)
		return cut > 0 ? cut - 1 : 0;
	return (uint8_t)((byte >= 0xc0) + (byte >= 0xe0) + (byte >= 0xf0));
}

/*
 * Compute what the children of a node spell; they are numbered from *used. False: invalid numbers.
 */
static bool
spell_children(const struct tok_longest_node *node, const struct tok_spelled *at, uint32_t used,
	uint32_t n, struct tok_spelled *s)
{
	uint32_t below = 0;

	if (node->first != used || n_children(node) > n - used || at->bytes > TOK_MAX_TOKEN_BYTES)
		return false;
	for (uint32_t w = 0; w < 4; w++) {
		if (node->below[w] != (uint8_t)below)
			return false;
		for (uint64_t left = node->child[w]; left != 0; left &= left - 1) {
			const uint32_t byte = w << 6 | (uint32_t)__builtin_ctzll(left);

			/* Count characters by their bytes that are not continuations. */
			s[used + below] = (struct tok_spelled){
				.bytes = (uint16_t)(at->bytes + 1),
				.chars = (uint16_t)(at->chars + ((byte & 0xc0) != 0x80)),
				.cut = cut_behind(at->cut, byte),
				.goes_on = at->goes_on,
			};
			below++;
		}
	}
	return true;
}

bool
tok_compiled_spell(const struct tok_longest_node *node, uint32_t n, struct tok_spelled *s)
{
	uint32_t used = TOK_LONGEST_GO_ON + 1;

	s[TOK_LONGEST_GO_ON].goes_on = true;
	for (uint32_t at = 0; at < n; at++) {
		const struct tok_spelled here = s[at];

		if (at >= used || !spell_children(&node[at], &here, used, n, s))
			return false;
		used += n_children(&node[at]);
	}
	return used == n;
}

/* Length of the bytes that a token matches; 0: it matches nothing. `first`: where a word begins. */
static uint32_t
matched(const struct tok_vocab *v, uint32_t id, bool first)
{
	const struct tok_span span = v->span[id];
	const uint8_t *p = v->bytes + span.off;

	if (v->kind == TOK_KIND_WORDPIECE && !v->wordpiece.whole && !first && span.len >= 2 &&
		p[0] == '#' && p[1] == '#')
		return span.len - 2;
	return span.len;
}

/*
 * The tokens that a node emits, followed by the string of its failure link, must have as many bytes
 * as the node spells. WordPiece has room for one token per character, BPE for one per byte.
 */
static bool
link_fits(const struct tok_vocab *v, const struct tok_spelled *s, uint32_t at)
{
	const struct tok_longest_node *node = &v->longest.node[at];
	const uint32_t n_pops = tok_vocab_table_n(v, TOK_TABLE_LONGEST_POP);
	uint32_t bytes;

	if (node->fail == TOK_NO_TOKEN) /* WordPiece: not a word. In BPE all bytes are tokens. */
		return v->kind == TOK_KIND_WORDPIECE || at <= TOK_LONGEST_GO_ON;
	if (at <= TOK_LONGEST_GO_ON || node->fail >= tok_vocab_table_n(v, TOK_TABLE_LONGEST_NODE) ||
		!s[node->fail].goes_on)
		return false;
	if (node->n_pop == 0 || node->pop > n_pops || node->n_pop > n_pops - node->pop ||
		node->n_pop + s[node->fail].chars >
			(v->kind == TOK_KIND_WORDPIECE ? s[at].chars : s[at].bytes))
		return false;
	bytes = s[node->fail].bytes;
	for (uint32_t i = 0; i < node->n_pop; i++) {
		const uint32_t id = v->longest.pop[node->pop + i];
		const bool first = i == 0 && !s[at].goes_on;

		if (id >= v->info.n_ids || matched(v, id, first) == 0)
			return false;
		bytes += matched(v, id, first);
	}
	return bytes == s[at].bytes;
}

const char *
tok_compiled_check_longest(const struct tok_vocab *v)
{
	const uint32_t n = tok_vocab_table_n(v, TOK_TABLE_LONGEST_NODE);
	struct tok_spelled *s = calloc(n, sizeof(*s));
	bool ok = s != NULL && tok_compiled_spell(v->longest.node, n, s);

	for (uint32_t at = 0; ok && at < n; at++)
		ok = link_fits(v, s, at);
	free(s);
	/* Every byte has a child here, so following failure links always ends. */
	if (ok && v->kind == TOK_KIND_BPE)
		ok = n_children(&v->longest.node[TOK_LONGEST_GO_ON]) == TOK_BYTES;
	return ok ? NULL : "longest.node";
}
