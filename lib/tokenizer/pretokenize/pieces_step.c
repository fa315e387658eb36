/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SentencePiece's models have no pretokenizer: the whole text is one pretoken. It can be cut
 * between two characters if no token contains them next to each other: then no merge crosses the
 * cut (doc/internals/streaming.md). It is also cut around characters that are in no token. Hot
 * path.
 */
#include "pretok.h"

/* The state is the last byte of the open pretoken, or NUL_BYTE if that is 0. State 0: none is open.
 */
#define NUL_BYTE 0xff

static inline uint8_t
first_byte(uint32_t cp)
{
	return (uint8_t)(cp < 0x80	? cp
			 : cp < 0x800	? 0xc0 | cp >> 6
			 : cp < 0x10000 ? 0xe0 | cp >> 12
					: 0xf0 | cp >> 18);
}

enum tok_pretok_step
tok_pretok_pieces_step(const struct tok_vocab *v, uint8_t *state, uint32_t known, uint32_t cp)
{
	const uint8_t last = (uint8_t)(cp < 0x80 ? cp : 0x80 | (cp & 0x3f));
	const uint32_t before = *state == NUL_BYTE ? 0 : *state;

	if (*state != TOK_ST_NONE &&
		!(known && tok_pieces_join(v->joins, (uint8_t)before, first_byte(cp)))) {
		*state = TOK_ST_NONE;
		return TOK_STEP_CLOSE;
	}
	if (!known) {
		*state = TOK_ST_NONE;
		return TOK_STEP_TAKE_CLOSE;
	}
	*state = last == 0 ? NUL_BYTE : last;
	return TOK_STEP_TAKE;
}
