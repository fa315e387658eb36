/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes to well-formed UTF-8 (Unicode 16, table 3-7). Ill-formed bytes become one U+FFFD per
 * maximal subpart (Unicode 16, section 3.9), as with Python's errors="replace".
 */
#pragma once

#include "inline.h"

#define TOK_UTF8_REPLACEMENT "\xef\xbf\xbd"
#define TOK_UTF8_REPLACEMENT_BYTES 3

/* What follows a well-formed prefix. */
enum tok_utf8_end {
	TOK_UTF8_WHOLE = 0,  /* nothing follows */
	TOK_UTF8_SHORT = 1,  /* an incomplete character at the end */
	TOK_UTF8_BROKEN = 2, /* ill-formed */
};

struct tok_utf8_span {
	size_t valid; /* bytes of complete, well-formed characters at the front */
	enum tok_utf8_end end;
	unsigned int rest; /* 1-3 bytes: the incomplete character if SHORT, the maximal subpart if
			      BROKEN */
};

struct tok_utf8_span tok_utf8_scan(const uint8_t *p, size_t n);

/* Length of the character that starts with `lead`; 0 if no character does. */
TOK_INLINE unsigned int
tok_utf8_length(uint8_t lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return 2 + (lead >= 0xe0) + (lead >= 0xf0);
}

/* Length of the UTF-8 of a code point. */
TOK_INLINE uint32_t
tok_utf8_bytes(uint32_t cp)
{
	return 1 + (cp >= 0x80) + (cp >= 0x800) + (cp >= 0x10000);
}

/* Characters of n bytes of well-formed text. */
TOK_INLINE size_t
tok_utf8_count(const uint8_t *p, size_t n)
{
	size_t chars = 0;

	for (size_t i = 0; i < n; i++)
		chars += (p[i] & 0xc0) != 0x80;
	return chars;
}

/* Can `b` be at index `i` (1-3) of a character that starts with `lead`? */
TOK_INLINE bool
tok_utf8_follows(uint8_t lead, unsigned int i, uint8_t b)
{
	uint8_t low = 0x80, high = 0xbf;

	if (i == 1) {
		if (lead == 0xe0)
			low = 0xa0;
		else if (lead == 0xed)
			high = 0x9f;
		else if (lead == 0xf0)
			low = 0x90;
		else if (lead == 0xf4)
			high = 0x8f;
	}
	return b >= low && b <= high;
}

/* Code point of the well-formed character of `len` bytes at p. */
TOK_INLINE uint32_t
tok_utf8_decode(const uint8_t *p, unsigned int len)
{
	switch (len) {
	case 1:
		return p[0];
	case 2:
		return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	case 3:
		return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	default:
		return (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
		       (p[3] & 0x3fu);
	}
}

/* Write a code point as UTF-8 to `out`, which has room. Returns the length. */
TOK_INLINE unsigned int
tok_utf8_encode(uint32_t cp, uint8_t *out)
{
	if (cp < 0x80) {
		out[0] = (uint8_t)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (uint8_t)(0xc0 | cp >> 6);
		out[1] = (uint8_t)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (uint8_t)(0xe0 | cp >> 12);
		out[1] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | cp >> 18);
	out[1] = (uint8_t)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (cp & 0x3f));
	return 4;
}
