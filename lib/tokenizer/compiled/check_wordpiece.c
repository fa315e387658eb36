/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate the tables of a compiled WordPiece vocabulary except its tries: the normalizer's
 * elements and the texts of ids. Whether a character maps to the right one is not checked. Set-up
 * only.
 */
#include <stdlib.h>

#include "compiled.h"
#include "unicode/pages.h"
#include "build/vocab_table.h"

#define HANGUL_FIRST 0xac00u
#define HANGUL_LAST 0xd7a3u

static bool
is_kind(uint32_t element, enum tok_bert_kind kind)
{
	return TOK_BERT_KIND(element) == kind;
}

/* Check an element of a sequence, or of a page. Hangul elements of pages are checked below. */
static bool
element_fits(const struct tok_vocab *v, uint32_t e)
{
	const uint32_t target = e & TOK_BERT_TARGET, n = tok_vocab_table_n(v, TOK_TABLE_NORM_SEQ);

	if (is_kind(e, TOK_BERT_SEQ))
		return (target >> 2) + (target & 3) <= n;
	return TOK_BERT_KIND(e) <= TOK_BERT_ALONE && target < TOK_CODE_POINTS;
}

static bool
elements_fit(const struct tok_vocab *v)
{
	const struct tok_bert_norm *t = &v->wordpiece.norm;
	const uint32_t n = tok_vocab_table_n(v, TOK_TABLE_NORM_ELEMENT);

	for (uint32_t i = 0; i < tok_vocab_table_n(v, TOK_TABLE_NORM_SEQ); i++) {
		if (is_kind(t->seq[i], TOK_BERT_SEQ) || !element_fits(v, t->seq[i]))
			return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!is_kind(t->element[i], TOK_BERT_HANGUL) && !element_fits(v, t->element[i]))
			return false;
	}
	for (uint32_t i = 0; i < TOK_PAGES; i++) {
		if (t->page[i] >= n / TOK_PAGE)
			return false;
	}
	return true;
}

/* Only Hangul syllables have Hangul elements; ASCII characters map to ASCII. */
static bool
characters_fit(const struct tok_vocab *v)
{
	const struct tok_bert_norm *t = &v->wordpiece.norm;

	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		const uint32_t e = tok_bert_element(t, cp);

		if (is_kind(e, TOK_BERT_HANGUL) &&
			(cp < HANGUL_FIRST || cp > HANGUL_LAST || (e & TOK_BERT_TARGET) != 0))
			return false;
		if (is_kind(e, TOK_BERT_CHAR) && cp < 0x80 && (e & TOK_BERT_TARGET) >= 0x80)
			return false;
	}
	return true;
}

/* They follow from the elements. */
static bool
categories_fit(const struct tok_vocab *v)
{
	const struct tok_bert_norm *t = &v->wordpiece.norm;

	for (uint32_t i = 0; i < tok_vocab_table_n(v, TOK_TABLE_CAT); i++) {
		if (v->cat[i] != tok_bert_cat(t->element[i]))
			return false;
	}
	return memcmp(v->cat_page, t->page, TOK_PAGES * sizeof(*t->page)) == 0;
}

static bool
texts_fit(const struct tok_vocab *v, const struct tok_span *text)
{
	const uint32_t room = tok_vocab_table_n(v, TOK_TABLE_TEXT);

	for (uint32_t id = 0; id < v->info.n_ids; id++) {
		if (text[id].len > v->span[id].len + 1 || text[id].off > room ||
			text[id].len > room - text[id].off)
			return false;
	}
	return true;
}

const char *
tok_compiled_check_wordpiece(const struct tok_vocab *v)
{
	if (!elements_fit(v) || !characters_fit(v))
		return "wordpiece.norm";
	if (!categories_fit(v))
		return "cat";
	return texts_fit(v, v->wordpiece.at_start) && texts_fit(v, v->wordpiece.behind)
		       ? NULL
		       : "wordpiece.text";
}
