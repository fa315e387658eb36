/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blanks as SentencePiece has them. To its models a blank and U+2581 are the same; inside libtok
 * both are the byte 0x20, in texts and tokens alike. One may be put before a text.
 */
#ifndef TOK_METASPACE_H
#define TOK_METASPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOK_METASPACE "\xe2\x96\x81" /* U+2581 */
#define TOK_METASPACE_BYTES 3

/* A blank before a text that is not empty. */
enum tok_prefix {
	TOK_PREFIX_NONE = 0,
	TOK_PREFIX_FIRST = 1,  /* before what begins the text, unless a blank does */
	TOK_PREFIX_EACH = 2,   /* before all between added tokens that no blank begins */
	TOK_PREFIX_ANYWAY = 3, /* before all between added tokens, before a blank too */
	TOK_PREFIX_TEXT = 4,   /* before the text, before a blank too */
};

enum tok_metaspace_stage {
	TOK_METASPACE_OFF = 0,
	TOK_METASPACE_NORMALIZER = 1,	/* before added tokens are looked for in normalized text */
	TOK_METASPACE_PRETOKENIZER = 2, /* behind that */
};

struct tok_metaspace {
	enum tok_metaspace_stage stage;
	enum tok_prefix prefix;
	bool strip; /* decoding leaves out a blank that all begins with */
};

/* Does a text that begins with p[0 .. n), whole characters and at least one, get the prefix? */
static inline bool
tok_metaspace_wants(enum tok_prefix prefix, const uint8_t *p, size_t n)
{
	switch (prefix) {
	case TOK_PREFIX_NONE:
		return false;
	case TOK_PREFIX_FIRST:
	case TOK_PREFIX_EACH:
		return *p != ' ' &&
		       !(n >= TOK_METASPACE_BYTES && p[0] == 0xe2 && p[1] == 0x96 && p[2] == 0x81);
	case TOK_PREFIX_ANYWAY:
	case TOK_PREFIX_TEXT:
		return true;
	}
	return false;
}

/* Bytes of p[0 .. n) before the first U+2581, or n. */
size_t tok_metaspace_find(const uint8_t *p, size_t n);

#endif
