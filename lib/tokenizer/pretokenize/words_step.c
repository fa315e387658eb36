/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cl100k and its descendants. W stands for a word, D for the most digits in one pretoken:
 *
 *   W|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * cl100k, llama3, qwen2: W is (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+
 *
 * o200k, tekken: with A = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], B = [\p{Ll}\p{Lm}\p{Lo}\p{M}], and C for
 * a contraction or nothing, W is
 *
 *   [^\r\n\p{L}\p{N}]?A*B+C|[^\r\n\p{L}\p{N}]?A+B*C
 *
 * and line ends after symbols may include slashes. Caseless letters and marks are in both A and B.
 * So A*B+ takes a run of A. If small letters follow, it takes all of B from there. If none follow,
 * it backtracks over capitals until a caseless letter can be B: so the capitals after the last
 * caseless letter are held until the next character is known. A mark may match the prefix, A or B:
 * the result is the same.
 */
#include "pretok.h"

/* The lower-case letter that cp is in a contraction; U+017F counts as s. */
static uint32_t
folded(uint32_t cp)
{
	if (cp == 0x17f)
		return 's';
	return cp < 0x80 ? cp | 0x20 : 0;
}

static bool
is_letter(enum tok_cat cat)
{
	return cat >= TOK_CAT_UPPER;
}

/* [^\s\p{L}\p{N}] */
static bool
is_other(enum tok_cat cat)
{
	return cat <= TOK_CAT_SYMBOL;
}

static bool
is_cased(enum tok_pretok kind)
{
	return kind == TOK_PRETOK_O200K || kind == TOK_PRETOK_TEKKEN;
}

/* Can this character be the first of a word, or follow its prefix? */
static bool
begins_word(enum tok_pretok kind, enum tok_cat cat)
{
	return is_letter(cat) || (cat == TOK_CAT_MARK && is_cased(kind));
}

static enum tok_pretok_step
word(enum tok_pretok kind, uint32_t *state, enum tok_cat cat)
{
	if (!is_cased(kind))
		return tok_step_take(state, TOK_ST_LETTERS);
	return tok_step_take(state, cat == TOK_CAT_UPPER   ? TOK_ST_UPPERS
				    : cat == TOK_CAT_LOWER ? TOK_ST_LOWERS
							   : TOK_ST_MIXED);
}

static enum tok_pretok_step
begin(enum tok_pretok kind, uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	if (begins_word(kind, cat))
		return word(kind, state, cat);
	if (cat == TOK_CAT_NUMBER) {
		if (kind == TOK_PRETOK_QWEN2 || kind == TOK_PRETOK_TEKKEN)
			return tok_step_take_close(state);
		return tok_step_take(state, TOK_ST_NUMBER_1);
	}
	if (cat != TOK_CAT_SPACE)
		return tok_step_take(
			state, cp == '\'' && !is_cased(kind) ? TOK_ST_QUOTE : TOK_ST_OTHER_1);
	if (tok_is_newline(cp))
		return tok_step_take(state, TOK_ST_NEWLINES);
	return tok_step_take(state, cp == ' ' ? TOK_ST_BLANK : TOK_ST_SPACE);
}

/* Step after one character that may be a word's prefix. `more`: symbols may also join it. */
static enum tok_pretok_step
after_prefix(enum tok_pretok kind, uint32_t *state, enum tok_cat cat, bool more)
{
	if (begins_word(kind, cat))
		return word(kind, state, cat);
	return more && is_other(cat) ? tok_step_take(state, TOK_ST_OTHERS) : tok_step_close(state);
}

static enum tok_pretok_step
after_others(enum tok_pretok kind, uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	if (is_other(cat) && *state != TOK_ST_OTHERS_TAIL)
		return tok_step_take(state, TOK_ST_OTHERS);
	if (tok_is_newline(cp) || (cp == '/' && is_cased(kind)))
		return tok_step_take(state, TOK_ST_OTHERS_TAIL);
	return tok_step_close(state);
}

/* cl100k: a contraction is a pretoken. It takes precedence over a word with the quote as prefix. */
static enum tok_pretok_step
after_quote(enum tok_pretok kind, uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	switch (folded(cp)) {
	case 's':
	case 't':
	case 'm':
	case 'd':
		return tok_step_take_close(state);
	case 'r':
	case 'v':
		return tok_step_take(state, TOK_ST_QUOTE_RV);
	case 'l':
		return tok_step_take(state, TOK_ST_QUOTE_L);
	default:
		if (is_letter(cat))
			return word(kind, state, cat);
		return after_others(kind, state, cat, cp);
	}
}

/* o200k: a contraction belongs to the word before it. */
static enum tok_pretok_step
after_word_quote(uint32_t *state, uint32_t cp)
{
	switch (folded(cp)) {
	case 's':
	case 't':
	case 'm':
	case 'd':
		return tok_step_take_close(state);
	case 'r':
	case 'v':
		return tok_step_hold(state, TOK_ST_WORD_QUOTE_RV);
	case 'l':
		return tok_step_hold(state, TOK_ST_WORD_QUOTE_L);
	default:
		return tok_step_close(state);
	}
}

/* The word ends, unless this is the quote of a contraction. */
static enum tok_pretok_step
after_word(enum tok_pretok kind, uint32_t *state, uint32_t cp)
{
	return cp == '\'' && kind == TOK_PRETOK_O200K ? tok_step_hold(state, TOK_ST_WORD_QUOTE)
						      : tok_step_close(state);
}

/* Step inside a word of o200k. */
static enum tok_pretok_step
in_word(enum tok_pretok kind, uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	const bool caseless = cat == TOK_CAT_LETTER || cat == TOK_CAT_MARK;

	if (*state == TOK_ST_LOWERS)
		return caseless || cat == TOK_CAT_LOWER ? TOK_STEP_TAKE
							: after_word(kind, state, cp);
	if (cat == TOK_CAT_LOWER)
		return tok_step_take(state, TOK_ST_LOWERS);
	if (caseless)
		return tok_step_take(state, TOK_ST_MIXED);
	if (cat == TOK_CAT_UPPER)
		return *state == TOK_ST_UPPERS ? TOK_STEP_TAKE
					       : tok_step_hold(state, TOK_ST_MIXED_UPPER);
	return *state == TOK_ST_MIXED_UPPER ? tok_step_close(state) : after_word(kind, state, cp);
}

enum tok_pretok_step
tok_pretok_words_step(enum tok_pretok kind, uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	const bool space = cat == TOK_CAT_SPACE;

	switch ((enum tok_pretok_state) * state) {
	case TOK_ST_NONE:
		return begin(kind, state, cat, cp);
	case TOK_ST_BLANK:
	case TOK_ST_SPACE:
		if (space)
			return tok_pretok_second_space(state, cp);
		return after_prefix(kind, state, cat, *state == TOK_ST_BLANK);
	case TOK_ST_SPACES:
		if (tok_is_newline(cp))
			return tok_step_take(state, TOK_ST_NEWLINES);
		return space ? TOK_STEP_TAKE_HOLD : tok_step_close(state);
	case TOK_ST_NEWLINES:
		if (tok_is_newline(cp))
			return TOK_STEP_TAKE;
		return space ? TOK_STEP_HOLD : tok_step_close(state);
	case TOK_ST_LETTERS:
		return is_letter(cat) ? TOK_STEP_TAKE : tok_step_close(state);
	case TOK_ST_UPPERS:
	case TOK_ST_MIXED:
	case TOK_ST_MIXED_UPPER:
	case TOK_ST_LOWERS:
		return in_word(kind, state, cat, cp);
	case TOK_ST_NUMBER_1:
		return cat == TOK_CAT_NUMBER ? tok_step_take(state, TOK_ST_NUMBER_2)
					     : tok_step_close(state);
	case TOK_ST_NUMBER_2:
		return cat == TOK_CAT_NUMBER ? tok_step_take_close(state) : tok_step_close(state);
	case TOK_ST_OTHER_1:
		if (begins_word(kind, cat))
			return word(kind, state, cat);
		return after_others(kind, state, cat, cp);
	case TOK_ST_OTHERS:
	case TOK_ST_OTHERS_TAIL:
		return after_others(kind, state, cat, cp);
	case TOK_ST_QUOTE:
		return after_quote(kind, state, cat, cp);
	case TOK_ST_QUOTE_RV:
	case TOK_ST_QUOTE_L:
		if (folded(cp) == (*state == TOK_ST_QUOTE_L ? 'l' : 'e'))
			return tok_step_take_close(state);
		return is_letter(cat) ? tok_step_take(state, TOK_ST_LETTERS)
				      : tok_step_close(state);
	case TOK_ST_WORD_QUOTE:
		return after_word_quote(state, cp);
	case TOK_ST_WORD_QUOTE_RV:
	case TOK_ST_WORD_QUOTE_L:
		if (folded(cp) == (*state == TOK_ST_WORD_QUOTE_L ? 'l' : 'e'))
			return tok_step_take_close(state);
		return tok_step_close(state);
	default:
		return tok_step_close(state);
	}
}
