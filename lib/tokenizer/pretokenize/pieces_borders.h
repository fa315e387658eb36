/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pretokens of SentencePiece's models (pieces_step.c), 64 bytes at a time. Between two ASCII
 * characters tok_vocab.cuts decides, which leaves out few cuts; fewer cuts give the same ids. Hot
 * path.
 */
#pragma once

#include "scan_classes.h"

/* May a pretoken have both? */
static inline bool
pieces_join(const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	return tok_pieces_join(v, left, right) && tok_cat_of(v, left) != 0 &&
	       tok_cat_of(v, right) != 0;
}

/* Which of the characters that begin at `wide` begin a pretoken? They are not ASCII, or the one
 * before is not. */
static inline uint64_t
wide_borders(struct tok_pretok_scan *s, uint64_t wide)
{
	uint32_t left = s->state; /* the last character that is not ASCII */
	uint64_t begin = 0;

	for (; wide != 0; wide &= wide - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(wide);
		const uint8_t *p = s->text + s->at + i;
		const uint32_t right = tok_utf8_decode(p, tok_utf8_length(*p));

		if (p > s->text && p[-1] < 0x80)
			left = p[-1];
		begin |= (uint64_t)!pieces_join(s->v, left, right) << i;
		left = right;
	}
	s->state = left;
	return begin;
}

ALWAYS_INLINE uint32_t
scan_pieces(struct tok_pretok_scan *s, size_t *start)
{
	const struct tok_pieces_cuts *cuts = s->v->cuts;
	const uint8_t *p = s->text + s->at;
	const size_t n = s->n - s->at < TOK_SCAN_BLOCK ? s->n - s->at : TOK_SCAN_BLOCK;
	const uint64_t valid = ~0ull >> (64 - n);
	const bytes64 x = load64(p, n);
	bytes64 before;
	uint64_t begin, wide, follows;

	if (s->at > 0) {
		before = load64(p - 1, n);
	} else {
		uint8_t part[64] = {0};

		memcpy(part + 1, p, n - 1);
		before = load64(part, n);
	}
	wide = plane64(x, 7) | plane64(before, 7);
	begin = meet64(look64(before, cuts->left), look64(x, cuts->right)) & ~wide & valid;
	if (wide != 0) {
		follows = bits64(range64(x, 0x80, 0xbf));
		begin |= wide_borders(s, wide & ~follows & valid);
	}
	begin |= s->at == 0;
	write_starts(start, s->at, begin);
	s->at += n;
	return (uint32_t)__builtin_popcountll(begin);
}
