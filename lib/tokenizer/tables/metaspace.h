/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SentencePiece's blanks. To its models a blank and U+2581 are the same. Inside libtok both are the
 * byte 0x20, in texts and in tokens. A blank may be put before a text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOK_METASPACE "\xe2\x96\x81" /* U+2581 */
#define TOK_METASPACE_BYTES 3

/* When a blank is put before a text that is not empty. */
enum tok_prefix {
	TOK_PREFIX_NONE = 0,
	TOK_PREFIX_FIRST = 1,  /* before the whole text, unless it begins with a blank */
	TOK_PREFIX_EACH = 2,   /* before each text between added tokens, with the same exception */
	TOK_PREFIX_ANYWAY = 3, /* before each text between added tokens, even if it has a blank */
	TOK_PREFIX_TEXT = 4,   /* before the whole text, even if it begins with a blank */
};

enum tok_metaspace_stage {
	TOK_METASPACE_OFF = 0,
	TOK_METASPACE_NORMALIZER = 1,	/* before the search for added tokens in normalized text */
	TOK_METASPACE_PRETOKENIZER = 2, /* after it */
	TOK_METASPACE_PREFIX = 3, /* after it; U+2581 is a character like others (ByteLevel) */
};

struct tok_metaspace {
	enum tok_metaspace_stage stage;
	enum tok_prefix prefix;
	bool strip; /* decoding drops a blank at the very beginning */
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

/* Number of bytes of p[0 .. n) before the first U+2581, or n. */
size_t tok_metaspace_find(const uint8_t *p, size_t n);
