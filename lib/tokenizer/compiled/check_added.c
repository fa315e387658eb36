/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate the sets of added tokens of a compiled vocabulary: each token has a trie node of its own
 * length, and starts and ends between characters. Set-up only.
 */
#include <stdlib.h>

#include "normalize/added.h"
#include "compiled.h"
#include "build/vocab_table.h"

#define ALL_FLAGS                                                                                  \
	(TOK_ADDED_SPECIAL | TOK_ADDED_LSTRIP | TOK_ADDED_RSTRIP | TOK_ADDED_SINGLE_WORD |         \
		TOK_ADDED_NORMALIZED)

/* Does this node spell its token? A node without a token only leads to others. */
static bool
token_fits(const struct tok_vocab *v, const struct tok_added *set, uint32_t n_tokens,
	uint32_t n_pops, const struct tok_longest_node *node, const struct tok_spelled *s)
{
	const struct tok_added_token *t;

	if (node->fail != TOK_LONGEST_GO_ON)
		return true;
	if (node->pop >= n_pops || set->trie.pop[node->pop] >= n_tokens)
		return false;
	t = &set->token[set->trie.pop[node->pop]];
	return s->goes_on && s->bytes > 0 && s->cut == 0 && s->bytes == t->len &&
	       t->len <= TOK_ADDED_BYTES_MAX && t->id < v->info.n_ids && v->span[t->id].len > 0 &&
	       (t->what & ~(uint32_t)ALL_FLAGS) == 0;
}

/* No token starts inside a character. */
static bool
first_fits(const struct tok_longest_node *root)
{
	return root->child[2] == 0; /* children 0x80 to 0xbf */
}

static bool
set_fits(const struct tok_vocab *v, const struct tok_added *set, enum tok_table tokens)
{
	const uint32_t n = tok_vocab_table_n(v, tokens + 1);
	struct tok_spelled *s;
	bool ok;

	if (v->table_bytes[tokens] == 0)
		return true;
	if (n <= TOK_LONGEST_GO_ON)
		return false;
	s = calloc(n, sizeof(*s));
	ok = s != NULL && tok_compiled_spell(set->trie.node, n, s) &&
	     first_fits(&set->trie.node[TOK_LONGEST_GO_ON]);
	for (uint32_t at = 0; ok && at < n; at++)
		ok = token_fits(v, set, tok_vocab_table_n(v, tokens),
			tok_vocab_table_n(v, tokens + 2), &set->trie.node[at], &s[at]);
	free(s);
	return ok;
}

const char *
tok_compiled_check_added(const struct tok_vocab *v)
{
	return set_fits(v, &v->added[TOK_ADDED_TEXT_SET], TOK_TABLE_ADDED_TEXT) &&
			       set_fits(v, &v->added[TOK_ADDED_NORMAL_SET], TOK_TABLE_ADDED_NORMAL)
		       ? NULL
		       : "added";
}
