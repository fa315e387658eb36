/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Characters to pretokens for SentencePiece's models, whose pretoken is the whole text. It is cut
 * between two characters that no token has beside each other: then no merge crosses the cut
 * (doc/internals/streaming.md). It is also cut around characters that are in no token.
 * pieces_borders.h does the same for text in memory, with fewer cuts. Hot path.
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
