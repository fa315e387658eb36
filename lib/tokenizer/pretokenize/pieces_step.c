/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Characters to pretokens for SentencePiece's models, whose pretoken is the whole text. It is cut
 * between two characters that no token has beside each other: then no merge crosses the cut
 * (doc/internals/streaming.md). It is also cut around characters that are in no token. Hot path.
 */
#include "pretok.h"
#include "unicode/utf8.h"

/* The state is the last character of the open pretoken + 1. State 0: none is open. */

enum tok_pretok_step
tok_pretok_pieces_step(const struct tok_vocab *v, uint32_t *state, uint32_t known, uint32_t cp)
{
	if (*state != TOK_ST_NONE && !(known && tok_pieces_join(v, *state - 1, cp))) {
		*state = TOK_ST_NONE;
		return TOK_STEP_CLOSE;
	}
	if (!known) {
		*state = TOK_ST_NONE;
		return TOK_STEP_TAKE_CLOSE;
	}
	*state = cp + 1;
	return TOK_STEP_TAKE;
}

/* Do both belong to one pretoken? `left` is UINT32_MAX at the beginning of the text. */
static bool
join(const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	return left != UINT32_MAX && tok_pieces_join(v, left, right) && tok_cat_of(v, left) != 0 &&
	       tok_cat_of(v, right) != 0;
}

/* For two that are ASCII, one look-up without a branch: if one is in no token, no token has both.
 */
uint32_t
tok_pretok_pieces_scan(struct tok_pretok_scan *s, size_t *start)
{
	const size_t end = s->n - s->at < TOK_SCAN_BLOCK ? s->n : s->at + TOK_SCAN_BLOCK;
	const struct tok_vocab *v = s->v;
	uint32_t n = 0, left = s->state - 1;
	size_t at = s->at;

	while (at < end) {
		const uint32_t len = tok_utf8_length(s->text[at]);
		const uint32_t right = tok_utf8_decode(s->text + at, len);

		start[n] = at;
		n += !((left | right) < 0x80 ? tok_pieces_join(v, left, right)
					     : join(v, left, right));
		left = right;
		at += len;
	}
	s->state = left + 1;
	s->at = at;
	return n;
}
