/* SPDX-License-Identifier: BSD-3-Clause */
/* Where words and their pieces begin and end, for ids and for offsets. */
#pragma once

#include "unicode/word.h"
#include "unicode/utf8.h"
#include "unigram.h"
#include "vocab.h"

enum tok_unigram_border {
	TOK_BORDER_NONE,
	TOK_BORDER_BLANK, /* U+2581, or a blank that stands for it */
	TOK_BORDER_WHITE, /* white space that belongs to no word */
};

/* Classify the character at p; *len is its length. */
static inline enum tok_unigram_border
tok_unigram_border_at(const struct tok_unigram *u, const uint8_t *p, uint32_t *len)
{
	uint32_t cp;

	*len = tok_utf8_length(*p);
	if (!u->border[*p])
		return TOK_BORDER_NONE;
	cp = tok_utf8_decode(p, *len);
	if (u->words && tok_is_white(cp))
		return TOK_BORDER_WHITE;
	return u->blanks && (cp == ' ' || cp == 0x2581) ? TOK_BORDER_BLANK : TOK_BORDER_NONE;
}

/* Is a blank put before a text, or a word, that begins with this character? It is not a blank. */
static inline bool
tok_unigram_wants_prefix(const struct tok_stream *s)
{
	const struct tok_unigram *u = &s->vocab->unigram;

	if (s->state == TOK_UNIGRAM_OPEN || (s->state == TOK_UNIGRAM_GAP && !u->words))
		return false;
	return u->prefix == TOK_PREFIX_EACH || (u->prefix == TOK_PREFIX_FIRST && !s->unigram.later);
}

static inline uint32_t
tok_unigram_bytes(const struct tok_vocab *v, uint32_t piece)
{
	const uint32_t cp = piece & ~TOK_UNKNOWN_CHAR;

	if (cp == piece)
		return v->len[piece];
	return tok_utf8_bytes(cp);
}
