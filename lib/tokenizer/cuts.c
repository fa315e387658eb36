/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Can a text be cut before a blank between two ASCII letters, so that the ids of the pieces
 * together are those of the text? Yes, if the normalizer changes at most the case of the three
 * characters, and a pretoken ends before the blank whatever came before. What follows a border
 * never depends on what is before it (pretokenize/regex/fresh.c). Set-up only.
 */
#include "pretokenize/pretok.h"
#include "unicode/word.h"

/* ASCII text changes at most the case of its letters. */
static bool
map_keeps_ascii(const struct tok_norm *norm, uint32_t map)
{
	for (uint32_t c = ' '; c < 0x7f; c++) {
		const uint32_t e = tok_map_element(norm, map, c);
		const uint32_t at = (e & ~TOK_MAP_TEXT) >> TOK_MAP_BITS;

		if (e != 0 &&
			!(tok_is_ascii_letter(c) && e & TOK_MAP_TEXT && (e & TOK_MAP_BYTES) == 1 &&
				tok_is_ascii_letter(norm->text[at])))
			return false;
	}
	return true;
}

static bool
has_blank_or_letter(const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (p[i] <= ' ' || tok_is_ascii_letter(p[i]))
			return true;
	}
	return false;
}

static bool
step_keeps_place(const struct tok_norm *norm, struct tok_norm_step step)
{
	const struct tok_literal *l;

	switch ((enum tok_norm_kind)step.kind) {
	case TOK_NORM_MAP:
		return map_keeps_ascii(norm, step.arg);
	case TOK_NORM_FORM_C:
	case TOK_NORM_FORM_D:
	case TOK_NORM_SQUEEZE:
		return true;
	case TOK_NORM_LITERAL:
		l = &norm->literal[step.arg];
		return !has_blank_or_letter(l->text, l->n) && !has_blank_or_letter(l->to, l->n_to);
	case TOK_NORM_STRIP:
		return false;
	}
	return false;
}

static bool
normalizer_keeps_place(const struct tok_vocab *v)
{
	for (uint32_t i = 0; i < v->norm.n; i++) {
		if (!step_keeps_place(&v->norm, v->norm.step[i]))
			return false;
	}
	if (v->unigram.norm.on || v->metaspace.stage == TOK_METASPACE_NORMALIZER ||
		v->metaspace.stage == TOK_METASPACE_PRETOKENIZER)
		return false;
	/* These put no blank before one. */
	return v->metaspace.prefix == TOK_PREFIX_NONE || v->metaspace.prefix == TOK_PREFIX_FIRST ||
	       v->metaspace.prefix == TOK_PREFIX_EACH;
}

/*
 * In a state after a letter: do a blank and the end of the text do the same, and end the pretoken?
 * held: the letter is held, as after "'r", which may become GPT-2's "'re". A blank and the end both
 * close the pretoken "'", and the r is stepped again, to another state after a letter.
 */
static bool
ends_before_blank(const struct tok_vocab *v, uint32_t state, bool held)
{
	uint32_t at_blank = state, at_end = state;
	const enum tok_pretok_step blank = tok_pretok_step(v, &at_blank, ' ');
	const enum tok_pretok_step end = tok_pretok_step_end(v, &at_end);

	if (at_blank != at_end)
		return false;
	if (blank == TOK_STEP_AGAIN)
		return held && end == blank;
	if (at_blank != TOK_ST_NONE || (held && end != blank))
		return false;
	return (blank == TOK_STEP_CLOSE || blank == TOK_STEP_HELD_CLOSE) &&
	       (end == TOK_STEP_CLOSE || end == TOK_STEP_HELD_CLOSE);
}

static bool
letters_end_before_blank(const struct tok_vocab *v)
{
	const size_t states = v->table_bytes[TOK_TABLE_STEP] / sizeof(*v->step) / v->step_width;

	for (uint32_t from = 0; from < states; from++) {
		for (uint32_t c = 'A'; c <= 'z'; c++) {
			uint32_t state = from;
			enum tok_pretok_step step;

			if (!tok_is_ascii_letter(c))
				continue;
			step = tok_pretok_step(v, &state, c);
			if ((step == TOK_STEP_TAKE && !ends_before_blank(v, state, false)) ||
				((step == TOK_STEP_HOLD || step == TOK_STEP_TAKE_HOLD) &&
					!ends_before_blank(v, state, true)))
				return false;
		}
	}
	return true;
}

bool
tok_cuts_before_blanks(const struct tok_vocab *v)
{
	if (!normalizer_keeps_place(v))
		return false;
	if (v->kind == TOK_KIND_WORDPIECE)
		return true; /* white space separates words */
	return v->kind == TOK_KIND_BPE && v->step_width > 0 && letters_end_before_blank(v);
}
