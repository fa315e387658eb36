/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPT-2:
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 */
#include "pretok.h"

/* The run that a character without a blank in front begins. */
static enum tok_pretok_state
run_of(enum tok_cat cat)
{
	if (cat >= TOK_CAT_UPPER)
		return TOK_ST_LETTERS;
	return cat == TOK_CAT_NUMBER ? TOK_ST_NUMBERS : TOK_ST_OTHERS;
}

static enum tok_pretok_step
begin(uint8_t *state, enum tok_cat cat, uint32_t cp)
{
	if (cat == TOK_CAT_SPACE)
		*state = cp == ' ' ? TOK_ST_BLANK : TOK_ST_SPACE;
	else
		*state = cp == '\'' ? TOK_ST_QUOTE : run_of(cat);
	return TOK_STEP_TAKE;
}

static enum tok_pretok_step
close(uint8_t *state)
{
	*state = TOK_ST_NONE;
	return TOK_STEP_CLOSE;
}

static enum tok_pretok_step
after_quote(uint8_t *state, enum tok_cat cat, uint32_t cp)
{
	switch (cp) {
	case 's':
	case 't':
	case 'm':
	case 'd':
		*state = TOK_ST_NONE;
		return TOK_STEP_TAKE_CLOSE;
	case 'r':
	case 'v':
		*state = TOK_ST_QUOTE_RV;
		return TOK_STEP_HOLD;
	case 'l':
		*state = TOK_ST_QUOTE_L;
		return TOK_STEP_HOLD;
	default:
		if (cat == TOK_CAT_SPACE || run_of(cat) != TOK_ST_OTHERS)
			return close(state);
		*state = TOK_ST_OTHERS;
		return TOK_STEP_TAKE;
	}
}

enum tok_pretok_step
tok_pretok_gpt2_step(uint8_t *state, enum tok_cat cat, uint32_t cp)
{
	const bool space = cat == TOK_CAT_SPACE;

	switch ((enum tok_pretok_state) * state) {
	case TOK_ST_NONE:
		return begin(state, cat, cp);
	case TOK_ST_BLANK: /* a quote behind it begins no contraction */
		*state = space ? TOK_ST_SPACES : run_of(cat);
		return space ? TOK_STEP_HOLD : TOK_STEP_TAKE;
	case TOK_ST_SPACE:
		if (!space)
			return close(state);
		*state = TOK_ST_SPACES;
		return TOK_STEP_HOLD;
	case TOK_ST_SPACES:
		/* \s+(?!\S): what comes before a non-space gives back its last character. */
		return space ? TOK_STEP_TAKE_HOLD : close(state);
	case TOK_ST_LETTERS:
	case TOK_ST_NUMBERS:
	case TOK_ST_OTHERS:
		return !space && run_of(cat) == *state ? TOK_STEP_TAKE : close(state);
	case TOK_ST_QUOTE:
		return after_quote(state, cat, cp);
	case TOK_ST_QUOTE_RV:
	case TOK_ST_QUOTE_L:
		if (cp != (*state == TOK_ST_QUOTE_L ? 'l' : 'e'))
			return close(state);
		*state = TOK_ST_NONE;
		return TOK_STEP_TAKE_CLOSE;
	default:
		return close(state);
	}
}
