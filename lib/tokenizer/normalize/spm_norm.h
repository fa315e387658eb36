/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SentencePiece's normalizer as in Hugging Face, streaming: it applies a map of characters, drops
 * white space at both ends, and replaces several blanks by one.
 *
 * The map is a Darts trie of keys with replacement texts. A grapheme cluster of fewer than six
 * bytes is replaced as a whole by the text of the shortest key that is a prefix of it. If there is
 * no such key, and in longer clusters, each character is replaced in the same way, or kept
 * (normalizers/precompiled.rs, spm_precompiled).
 *
 * A .model uses the normalizer of sentencepiece instead (normalizer.cc; `sentencepiece` is set). At
 * each position: the longest USER_DEFINED piece is kept; else the longest key is replaced by its
 * text; else one character is kept. An invalid byte is passed as TOK_SPM_BROKEN and becomes U+FFFD.
 * strip_left, strip_right and squeeze are all set (remove_extra_whitespaces) or all clear.
 */
#pragma once

#include <assert.h>

#include "vocab.h"

#define TOK_SPM_TEXT_MAX 255 /* most bytes of a text in the map */
#define TOK_SPM_OUT 16384
#define TOK_SPM_FULL SIZE_MAX
#define TOK_SPM_BROKEN "\xff" /* a byte that never occurs in UTF-8 */
#define TOK_SPM_KEY_MAX 64    /* most bytes of a key of sentencepiece's map */
static_assert(TOK_SPM_KEY_MAX < TOK_SPM_WINDOW, "a key can be held");

/* A piece of text: whole characters. */
struct tok_spm_piece {
	const uint8_t *p, *end; /* the rest of it: tok_spm_next advances p */
	bool last;		/* the text ends at `end` */
};

/*
 * Write more normalized text, whole characters, to out[0 .. TOK_SPM_OUT). Returns its bytes; 0: the
 * piece is consumed; TOK_SPM_FULL: more than TOK_SPM_WHITE_MAX bytes of white space are held.
 */
size_t tok_spm_next(const struct tok_vocab *v, struct tok_spm_state *s, struct tok_spm_piece *piece,
	uint8_t *out);

void tok_spm_init(struct tok_spm_state *s);

/* The property of a character for grapheme.h. */
uint8_t tok_spm_property(const struct tok_vocab *v, uint32_t cp);

/* The output of a step. */
struct tok_spm_sink {
	const struct tok_vocab *v;
	const struct tok_spm_norm *norm; /* its */
	struct tok_spm_state *s;
	uint8_t *out;
	bool full; /* no room for white space */
};

/* tok_spm_next for a .model: runs until the piece is consumed or out reaches `stop`. */
void tok_spm_take_longest(struct tok_spm_sink *k, struct tok_spm_piece *piece, const uint8_t *stop);

/* Number of bytes not released yet. */
static inline size_t
tok_spm_waiting(const struct tok_spm_norm *norm, const struct tok_spm_state *s)
{
	if (norm->sentencepiece)
		return (size_t)s->window.n + s->n_white;
	return (size_t)s->n_held + s->n_white + (s->blanks > 0 ? 3 : 0);
}

/* Is the next output certain to be a blank, U+2581, or the end? */
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
 * The text of the shortest key that is a prefix of p[0 .. n). If there is none: TOK_SPM_NO_TEXT,
 * and *open is set if more bytes could complete a key.
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

/* Most keys that are prefixes of each other, in a search for the longest. */
#define TOK_SPM_KEYS 32

/*
 * The text of the longest key that is a prefix of p[0 .. n), or TOK_SPM_NO_TEXT. *len is the length
 * of the key. *open is set if more bytes could complete a longer key.
 */
uint32_t tok_spm_find_longest(
	const struct tok_spm_norm *norm, const uint8_t *p, size_t n, uint32_t *len, bool *open);
