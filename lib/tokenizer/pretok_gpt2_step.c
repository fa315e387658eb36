/* SPDX-License-Identifier: BSD-3-Clause */
#include "pretok.h"

static enum tok_pretok_step
begin(uint8_t *state, enum tok_class cls, uint8_t c)
{
	static const uint8_t first[] = {
		[TOK_CLASS_OTHER] = TOK_ST_OTHERS,
		[TOK_CLASS_LETTER] = TOK_ST_LETTERS,
		[TOK_CLASS_NUMBER] = TOK_ST_NUMBERS,
		[TOK_CLASS_SPACE] = TOK_ST_SPACE,
	};

	*state = c == ' ' ? TOK_ST_BLANK : c == '\'' ? TOK_ST_QUOTE : first[cls];
	return TOK_STEP_TAKE;
}

static enum tok_pretok_step
run_of(uint8_t *state, bool same)
{
	if (same)
		return TOK_STEP_TAKE;
	*state = TOK_ST_NONE;
	return TOK_STEP_CLOSE;
}

enum tok_pretok_step
tok_pretok_gpt2_step(uint8_t *state, const uint8_t *ahead, enum tok_class cls, uint8_t c)
{
	switch ((enum tok_pretok_state)*state) {
	case TOK_ST_NONE:
		return begin(state, cls, c);
	case TOK_ST_BLANK:
		if (cls == TOK_CLASS_SPACE) {
			*state = TOK_ST_SPACES;
			return TOK_STEP_HOLD;
		}
		begin(state, cls, c);
		if (*state == TOK_ST_QUOTE) /* " '": no contraction, as the blank is in front */
			*state = TOK_ST_OTHERS;
		return TOK_STEP_TAKE;
	case TOK_ST_SPACE:
		if (cls != TOK_CLASS_SPACE)
			return run_of(state, false);
		*state = TOK_ST_SPACES;
		return TOK_STEP_HOLD;
	case TOK_ST_SPACES:
		/* \s+(?!\S): what comes before a non-space gives back its last character. */
		return cls == TOK_CLASS_SPACE ? TOK_STEP_AHEAD_HOLD : run_of(state, false);
	case TOK_ST_LETTERS:
		return run_of(state, cls == TOK_CLASS_LETTER);
	case TOK_ST_NUMBERS:
		return run_of(state, cls == TOK_CLASS_NUMBER);
	case TOK_ST_OTHERS:
		return run_of(state, cls == TOK_CLASS_OTHER);
	case TOK_ST_QUOTE:
		if (c == 's' || c == 't' || c == 'm' || c == 'd') {
			*state = TOK_ST_NONE;
			return TOK_STEP_TAKE_CLOSE;
		}
		if (c == 'r' || c == 'v' || c == 'l') {
			*state = TOK_ST_QUOTE_AHEAD;
			return TOK_STEP_HOLD;
		}
		if (cls == TOK_CLASS_OTHER)
			*state = TOK_ST_OTHERS;
		return run_of(state, cls == TOK_CLASS_OTHER);
	case TOK_ST_QUOTE_AHEAD:
		*state = TOK_ST_NONE;
		return c == (ahead[0] == 'l' ? 'l' : 'e') ? TOK_STEP_AHEAD_TAKE_CLOSE
							    : TOK_STEP_CLOSE;
	}
	return TOK_STEP_CLOSE;
}
