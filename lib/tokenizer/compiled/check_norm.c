/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate the steps of a compiled vocabulary's normalizer: each has its table, and all texts are
 * whole characters. Whether a character maps to the right one is not checked. Set-up only.
 */
#include "compiled.h"
#include "unicode/pages.h"
#include "unicode/utf8.h"

static bool
is_text(const uint8_t *p, uint32_t n)
{
	return tok_utf8_scan(p, n).valid == n;
}

/* Maps and literals are numbered in order; of other kinds there is one step, and one form. */
static bool
steps_fit(const struct tok_vocab *v)
{
	const uint32_t n = tok_vocab_table_n(v, TOK_TABLE_NORM_STEP);
	uint32_t seen[TOK_NORM_KINDS] = {0};

	if (n > TOK_NORMS_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct tok_norm_step step = v->norm.step[i];
		const bool counted = step.kind == TOK_NORM_MAP || step.kind == TOK_NORM_LITERAL;

		if (step.kind >= TOK_NORM_KINDS || (counted && step.arg != seen[step.kind]) ||
			(step.kind == TOK_NORM_SQUEEZE && step.arg > TOK_SQUEEZE_SEVERAL))
			return false;
		seen[step.kind]++;
	}
	return seen[TOK_NORM_MAP] <= TOK_MAPS_MAX && seen[TOK_NORM_LITERAL] <= TOK_LITERALS_MAX &&
	       seen[TOK_NORM_FORM_C] + seen[TOK_NORM_FORM_D] <= 1 && seen[TOK_NORM_SQUEEZE] <= 1 &&
	       seen[TOK_NORM_STRIP] <= 1 &&
	       seen[TOK_NORM_MAP] * TOK_PAGES == tok_vocab_table_n(v, TOK_TABLE_MAP_PAGE) &&
	       seen[TOK_NORM_LITERAL] == tok_vocab_table_n(v, TOK_TABLE_LITERAL);
}

static bool
maps_fit(const struct tok_vocab *v)
{
	const struct tok_norm *t = &v->norm;
	const uint32_t n = tok_vocab_table_n(v, TOK_TABLE_MAP_ELEMENT);
	const uint32_t n_text = tok_vocab_table_n(v, TOK_TABLE_MAP_TEXT);

	if (n % TOK_PAGE != 0)
		return false;
	for (uint32_t i = 0; i < tok_vocab_table_n(v, TOK_TABLE_MAP_PAGE); i++) {
		if (t->page[i] >= n / TOK_PAGE)
			return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t e = t->element[i], len = e & TOK_MAP_BYTES;
		const uint32_t at = (e & ~TOK_MAP_TEXT) >> TOK_MAP_BITS;

		if (e == 0 || e == TOK_MAP_AROUND)
			continue;
		if (!(e & TOK_MAP_TEXT) || at > n_text || len > n_text - at ||
			!is_text(t->text + at, len))
			return false;
	}
	return true;
}

/* The texts that are replaced are ASCII: characters are never cut. */
static bool
literals_fit(const struct tok_vocab *v)
{
	for (uint32_t i = 0; i < tok_vocab_table_n(v, TOK_TABLE_LITERAL); i++) {
		const struct tok_literal *l = &v->norm.literal[i];

		if (l->n < 2 || l->n > TOK_LITERAL_BYTES || l->n_to > TOK_LITERAL_BYTES ||
			!is_text(l->to, l->n_to))
			return false;
		for (uint32_t k = 0; k < l->n; k++) {
			if (l->text[k] >= 0x80 || (k > 0 && l->back[k] >= k))
				return false;
		}
	}
	return true;
}

const char *
tok_compiled_check_norm(const struct tok_vocab *v)
{
	return steps_fit(v) && maps_fit(v) && literals_fit(v) ? NULL : "norm";
}
