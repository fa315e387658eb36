/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The normalizer of SentencePiece's models as Hugging Face has it, as the text comes in: a map of
 * characters, then white space at the ends is left out, then several blanks become one.
 *
 * The map is a trie (Darts) with texts. A grapheme cluster of fewer than six bytes becomes, as a
 * whole, the text of the shortest key that begins it; if there is none, and in longer clusters,
 * each character becomes that of the shortest key that begins it, or stays
 * (normalizers/precompiled.rs, spm_precompiled).
 *
 * Of a .model it is that of sentencepiece (normalizer.cc), by `sentencepiece`: the longest
 * USER_DEFINED piece that begins what is left of a text stays, otherwise the longest key that
 * begins it becomes its text, otherwise a character stays. A byte that is not UTF-8 comes as
 * TOK_SPM_BROKEN, and becomes U+FFFD. All of strip_left, strip_right and squeeze are
 * remove_extra_whitespaces, or none.
 */
#ifndef TOK_SPM_NORM_H
#define TOK_SPM_NORM_H

#include <assert.h>

#include "vocab.h"

#define TOK_SPM_TEXT_MAX 255 /* bytes of a text in the map */
#define TOK_SPM_OUT 4096
#define TOK_SPM_FULL SIZE_MAX
#define TOK_SPM_BROKEN "\xff" /* a byte that UTF-8 never has */
#define TOK_SPM_KEY_MAX 64    /* bytes of a key of sentencepiece's map, at most */
static_assert(TOK_SPM_KEY_MAX < TOK_SPM_WINDOW, "a key can be held");

/* A piece of text: whole characters. */
struct tok_spm_piece {
	const uint8_t *p, *end; /* what is left of it: tok_spm_next moves p */
	bool last;		/* the text ends at `end` */
};

/*
 * More normalized text to out[0 .. TOK_SPM_OUT), whole characters. Returns its bytes; 0: the piece
 * is taken; TOK_SPM_FULL: more than TOK_SPM_WHITE_MAX bytes of white space wait.
 */
size_t tok_spm_next(const struct tok_vocab *v, struct tok_spm_state *s, struct tok_spm_piece *piece,
	uint8_t *out);

void tok_spm_init(struct tok_spm_state *s);

/* Of a character, for grapheme.h. */
uint8_t tok_spm_property(const struct tok_vocab *v, uint32_t cp);

/* What goes by the name of out: where the next byte goes. */
struct tok_spm_sink {
	const struct tok_vocab *v;
	const struct tok_spm_norm *norm; /* its */
	struct tok_spm_state *s;
	uint8_t *out;
	bool full; /* no room for white space */
};

/* tok_spm_next for a .model, until nothing is left of the piece or out comes to `stop`. */
void tok_spm_take_longest(struct tok_spm_sink *k, struct tok_spm_piece *piece, const uint8_t *stop);

/* Bytes that are not given out yet. */
static inline size_t
tok_spm_waiting(const struct tok_spm_norm *norm, const struct tok_spm_state *s)
{
	if (norm->sentencepiece)
		return (size_t)s->window.n + s->n_white;
	return (size_t)s->n_held + s->n_white + (s->blanks > 0 ? 3 : 0);
}

/* Whether what comes next is certain to be a blank, U+2581, or the end. */
static inline bool
tok_spm_blank_waits(const struct tok_spm_state *s)
{
	return s->n_white > 0 ? s->white[0] == ' ' || (s->white[0] == 0xe2 && s->white[1] == 0x96)
			      : s->blanks > 0;
}

/* ---- the trie ---- */

#define TOK_SPM_NO_TEXT UINT32_MAX

static inline uint32_t
tok_spm_offset(uint32_t unit)
{
	return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/*
 * The text of the shortest key that begins p[0 .. n), or TOK_SPM_NO_TEXT: there is none, and
 * *open says whether more bytes could complete one.
 */
static inline uint32_t
tok_spm_find(const struct tok_spm_norm *norm, const uint8_t *p, uint32_t n, bool *open)
{
	uint32_t at = tok_spm_offset(norm->unit[0]);

	*open = false;
	for (uint32_t i = 0; i < n && p[i] != 0; i++) {
		uint32_t unit;

		at ^= p[i];
		unit = norm->unit[at];
		if ((unit & (1u << 31 | 0xff)) != p[i])
			return TOK_SPM_NO_TEXT;
		at ^= tok_spm_offset(unit);
		if (unit >> 8 & 1)
			return norm->unit[at] & ~(1u << 31);
	}
	*open = true;
	return TOK_SPM_NO_TEXT;
}

#define TOK_SPM_KEYS 32 /* that begin one another, of which the longest is looked for */

/*
 * The text of the longest key that begins p[0 .. n), and its bytes to *len, or TOK_SPM_NO_TEXT;
 * *open says whether more bytes could complete a longer one.
 */
uint32_t tok_spm_find_longest(
	const struct tok_spm_norm *norm, const uint8_t *p, size_t n, uint32_t *len, bool *open);

#endif
