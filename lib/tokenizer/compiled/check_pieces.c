/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate what SentencePiece BPE models have in addition: the bytes of a character are merged
 * before all other merges, so part of a character is never emitted. Set-up only.
 */
#include <stdlib.h>

#include "compiled.h"
#include "unicode/pages.h"
#include "build/pieces.h"
#include "unicode/utf8.h"
#include "build/vocab_table.h"

enum text {
	TEXT_BAD,
	TEXT_PART, /* an incomplete character */
	TEXT_CHARACTER,
	TEXT_CHARACTERS, /* more than one */
};

/* n is at least 1. */
static enum text
text_of(const uint8_t *p, uint32_t n)
{
	const struct tok_utf8_span span = tok_utf8_scan(p, n);

	if (span.end == TOK_UTF8_SHORT && span.valid == 0)
		return TEXT_PART;
	if (span.end != TOK_UTF8_WHOLE)
		return TEXT_BAD;
	return tok_utf8_length(*p) == n ? TEXT_CHARACTER : TEXT_CHARACTERS;
}

static enum text
text_of_rank(const struct tok_vocab *v, uint32_t r)
{
	const struct tok_span span = v->span[v->ext[r]];

	return text_of(v->bytes + span.off, span.len);
}

/* Parts of characters have no real ids, and all characters precede the tokens made of them. */
static bool
characters_fit(const struct tok_vocab *v)
{
	bool characters = true;

	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++) {
		const enum text text = text_of_rank(v, r);
		const struct tok_split part = v->split[r];

		if (text == TEXT_BAD || (text == TEXT_PART) != (v->ext[r] >= v->info.n_ids))
			return false;
		characters = characters && text != TEXT_CHARACTERS;
		if (text == TEXT_CHARACTERS) {
			if (text_of_rank(v, part.left) < TEXT_CHARACTER ||
				text_of_rank(v, part.right) < TEXT_CHARACTER)
				return false;
		} else if (!characters || part.right >= TOK_BYTES) {
			return false;
		}
	}
	/* Tokens that match only whole texts: their characters need not be tokens. */
	if (v->n_unmerged > 0 && v->longest.node == NULL)
		return false;
	for (uint32_t i = 0; i < v->n_unmerged; i++) {
		const struct tok_span span = v->span[v->unmerged[i]];

		if (text_of(v->bytes + span.off, span.len) < TEXT_CHARACTER)
			return false;
	}
	return true;
}

/* Between all characters that are cut apart there must be a border, also around one that is in no
 * token. */
static bool
cuts_fit(const struct tok_vocab *v, const uint8_t *known)
{
	for (uint32_t left = 0; left < 128; left++) {
		for (uint32_t right = 0; right < 128; right++) {
			const bool cut = v->cuts->left[left] & v->cuts->right[right];

			if (cut ? tok_pieces_join(v, left, right) : !known[left] || !known[right])
				return false;
		}
	}
	return true;
}

/* The other tables must equal those that pieces_build.c makes. */
static bool
tables_fit(const struct tok_vocab *v)
{
	const uint32_t pages = tok_vocab_table_n(v, TOK_TABLE_CAT) / TOK_PAGE;
	const size_t n_joins = tok_vocab_table_n(v, TOK_TABLE_JOINS);
	uint64_t *joins = calloc(n_joins, sizeof(*joins));
	uint8_t *known = calloc(TOK_CODE_POINTS, 1);
	bool ok = joins != NULL && known != NULL;

	if (ok) {
		tok_pieces_mark(v, v->join_shift, known, joins);
		ok = memcmp(joins, v->joins, n_joins * sizeof(*joins)) == 0 && cuts_fit(v, known);
	}
	for (uint32_t i = 0; ok && i < TOK_PAGES; i++)
		ok = v->cat_page[i] < pages && memcmp(v->cat + v->cat_page[i] * TOK_PAGE,
						       known + (size_t)i * TOK_PAGE, TOK_PAGE) == 0;
	free(joins);
	free(known);
	return ok;
}

const char *
tok_compiled_check_pieces(const struct tok_vocab *v)
{
	if (!characters_fit(v))
		return "characters";
	return tables_fit(v) ? NULL : "joins";
}
