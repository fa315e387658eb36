/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of tables/norm.h, streaming. Each takes a piece of text, whole characters, and passes
 * what is certain to its sink. Hot path.
 */
#pragma once

#include "unicode/word.h"
#include "vocab.h"

static inline enum tok_side
tok_side_of(uint32_t cp)
{
	if (tok_is_word(cp))
		return TOK_SIDE_WORD;
	return tok_is_white(cp) ? TOK_SIDE_WHITE : TOK_SIDE_OTHER;
}

/* tok_border_before for TOK_WORD_END_SPECIALS. */
bool tok_border_special(const struct tok_vocab *v, uint8_t *state, uint32_t cp);

/* Is there a border between words before this character? *state begins as TOK_SIDE_WHITE. */
static inline bool
tok_border_before(const struct tok_vocab *v, uint8_t *state, uint32_t cp)
{
	uint32_t side, before = *state;

	if (v->word_end == TOK_WORD_END_SPECIALS)
		return tok_border_special(v, state, cp);
	side = tok_side_of(cp);
	*state = (uint8_t)side;
	return side != before && side != TOK_SIDE_WHITE && before != TOK_SIDE_WHITE;
}

/* The stage after a step. */
struct tok_norm_sink {
	struct tok_stream *s;
	const struct tok_stage *const *next;
	uint32_t **ids;
};

enum tok_error_code tok_map_feed(
	struct tok_norm_sink k, uint32_t map, const uint8_t *p, size_t n, bool last);
enum tok_error_code tok_literal_feed(
	struct tok_norm_sink k, uint32_t literal, const uint8_t *p, size_t n, bool last);
/* Not of a normalizer: a blank is put where there is a border. */
enum tok_error_code tok_border_feed(struct tok_norm_sink k, const uint8_t *p, size_t n, bool last);

enum tok_error_code tok_squeeze_feed(struct tok_norm_sink k, const uint8_t *p, size_t n, bool last);
enum tok_error_code tok_strip_feed(struct tok_norm_sink k, const uint8_t *p, size_t n, bool last);
