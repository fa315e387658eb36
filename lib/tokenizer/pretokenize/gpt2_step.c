/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPT-2:
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 */
#include "pretok.h"

/* The state after a character that begins a run without a blank before it. */
static enum tok_pretok_state
run_of(enum tok_cat cat)
{
	if (cat >= TOK_CAT_UPPER)
		return TOK_ST_LETTERS;
	return cat == TOK_CAT_NUMBER ? TOK_ST_NUMBERS : TOK_ST_OTHERS;
}

static enum tok_pretok_step
begin(uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	if (cat == TOK_CAT_SPACE)
		*state = cp == ' ' ? TOK_ST_BLANK : TOK_ST_SPACE;
	else
		*state = cp == '\'' ? TOK_ST_QUOTE : run_of(cat);
	return TOK_STEP_TAKE;
}

static enum tok_pretok_step
after_quote(uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	switch (cp) {
	case 's':
	case 't':
	case 'm':
	case 'd':
		return tok_step_take_close(state);
	case 'r':
	case 'v':
		return tok_step_hold(state, TOK_ST_QUOTE_RV);
	case 'l':
		return tok_step_hold(state, TOK_ST_QUOTE_L);
	default:
		if (cat == TOK_CAT_SPACE || run_of(cat) != TOK_ST_OTHERS)
			return tok_step_close(state);
		return tok_step_take(state, TOK_ST_OTHERS);
	}
}

enum tok_pretok_step
tok_pretok_gpt2_step(uint32_t *state, enum tok_cat cat, uint32_t cp)
{
	const bool space = cat == TOK_CAT_SPACE;

	switch ((enum tok_pretok_state) * state) {
	case TOK_ST_NONE:
		return begin(state, cat, cp);
	case TOK_ST_BLANK: /* a quote after a blank begins no contraction */
		*state = space ? TOK_ST_SPACES : run_of(cat);
		return space ? TOK_STEP_HOLD : TOK_STEP_TAKE;
	case TOK_ST_SPACE:
		if (!space)
			return tok_step_close(state);
		return tok_step_hold(state, TOK_ST_SPACES);
	case TOK_ST_SPACES:
		/* \s+(?!\S): what comes before a non-space gives back its last character. */
		return space ? TOK_STEP_TAKE_HOLD : tok_step_close(state);
	case TOK_ST_LETTERS:
	case TOK_ST_NUMBERS:
	case TOK_ST_OTHERS:
		return !space && run_of(cat) == *state ? TOK_STEP_TAKE : tok_step_close(state);
	case TOK_ST_QUOTE:
		return after_quote(state, cat, cp);
	case TOK_ST_QUOTE_RV:
	case TOK_ST_QUOTE_L:
		if (cp != (*state == TOK_ST_QUOTE_L ? 'l' : 'e'))
			return tok_step_close(state);
		return tok_step_take_close(state);
	default:
		return tok_step_close(state);
	}
}
