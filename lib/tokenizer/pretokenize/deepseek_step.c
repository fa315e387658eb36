/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DeepSeek-V3: three splits, applied in order; each splits what the ones before left over:
 *
 *   \p{N}{1,3}
 *   [\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+
 *   S[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * S stands for any ASCII symbol. To the third split, a number or an ideograph is the end of a text.
 * Characters that match no alternative (controls, unassigned ones) form a pretoken of their own,
 * up to the next match.
 */
#include "pretok.h"

static bool
is_word(enum tok_cat cat)
{
	return cat >= TOK_CAT_UPPER || cat == TOK_CAT_MARK;
}

static bool
is_ascii_letter(uint32_t cp)
{
	return (cp | 0x20) >= 'a' && (cp | 0x20) <= 'z';
}

static enum tok_pretok_step
held_close(uint32_t *state)
{
	*state = TOK_ST_NONE;
	return TOK_STEP_HELD_CLOSE;
}

static enum tok_pretok_step
begin(uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	if (tok_is_ideograph(cp))
		return tok_step_take(state, TOK_ST_IDEOGRAPHS);
	if (is_word(cat))
		return tok_step_take(state, TOK_ST_LETTERS);
	switch (cat) {
	case TOK_CAT_NUMBER:
		return tok_step_take(state, TOK_ST_NUMBER_1);
	case TOK_CAT_SYMBOL:
		return tok_step_take(state, cp < 0x80 ? TOK_ST_SYMBOL_1 : TOK_ST_OTHERS);
	case TOK_CAT_SPACE:
		if (tok_is_newline(cp))
			return tok_step_take(state, TOK_ST_NEWLINES);
		return tok_step_take(state, cp == ' ' ? TOK_ST_BLANK : TOK_ST_SPACE);
	default:
		return tok_step_take(state, TOK_ST_GAP_1);
	}
}

/* Step for a character of the third split while a pretoken is open. */
static enum tok_pretok_step
go_on(uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	switch ((enum tok_pretok_state) * state) {
	case TOK_ST_BLANK:
	case TOK_ST_SPACE:
		if (cat == TOK_CAT_SPACE)
			return tok_pretok_second_space(state, cp);
		if (is_word(cat))
			return tok_step_take(state, TOK_ST_LETTERS);
		if (cat == TOK_CAT_SYMBOL && *state == TOK_ST_BLANK)
			return tok_step_take(state, TOK_ST_OTHERS);
		return tok_step_close(state);
	case TOK_ST_SPACES:
		if (tok_is_newline(cp))
			return tok_step_take(state, TOK_ST_NEWLINES);
		return cat == TOK_CAT_SPACE ? TOK_STEP_TAKE_HOLD : tok_step_close(state);
	case TOK_ST_NEWLINES:
		if (tok_is_newline(cp))
			return TOK_STEP_TAKE;
		return cat == TOK_CAT_SPACE ? TOK_STEP_HOLD : tok_step_close(state);
	case TOK_ST_LETTERS:
		return is_word(cat) ? TOK_STEP_TAKE : tok_step_close(state);
	case TOK_ST_ASCII:
		return is_ascii_letter(cp) ? TOK_STEP_TAKE : tok_step_close(state);
	case TOK_ST_SYMBOL_1:
		if (is_ascii_letter(cp))
			return tok_step_take(state, TOK_ST_ASCII);
		/* fall through */
	case TOK_ST_OTHERS:
		if (cat == TOK_CAT_SYMBOL)
			return tok_step_take(state, TOK_ST_OTHERS);
		return tok_is_newline(cp) ? tok_step_take(state, TOK_ST_OTHERS_TAIL)
					  : tok_step_close(state);
	case TOK_ST_OTHERS_TAIL:
		return tok_is_newline(cp) ? TOK_STEP_TAKE : tok_step_close(state);
	case TOK_ST_GAP_1:
		if (is_word(cat))
			return tok_step_take(state, TOK_ST_LETTERS);
		if (cat != TOK_CAT_OTHER)
			return tok_step_close(state);
		return tok_step_hold(state, TOK_ST_GAP);
	case TOK_ST_GAP:
		if (cat == TOK_CAT_OTHER)
			return TOK_STEP_TAKE_HOLD;
		return is_word(cat) ? tok_step_close(state) : held_close(state);
	default:
		return tok_step_close(state);
	}
}

enum tok_pretok_step
tok_pretok_deepseek_step(uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	const bool number = cat == TOK_CAT_NUMBER, ideograph = tok_is_ideograph(cp);

	switch ((enum tok_pretok_state) * state) {
	case TOK_ST_NONE:
		return begin(state, cat, cp);
	case TOK_ST_NUMBER_1:
		return number ? tok_step_take(state, TOK_ST_NUMBER_2) : tok_step_close(state);
	case TOK_ST_NUMBER_2:
		if (!number)
			return tok_step_close(state);
		return tok_step_take_close(state);
	case TOK_ST_IDEOGRAPHS:
		return ideograph ? TOK_STEP_TAKE : tok_step_close(state);
	default:
		if (!number && !ideograph)
			return go_on(state, cat, cp);
		return tok_pretok_end_takes_held(TOK_PRETOK_DEEPSEEK, *state)
			       ? held_close(state)
			       : tok_step_close(state);
	}
}
