/* SPDX-License-Identifier: BSD-3-Clause */
#include "bytelevel.h"
#include "utf8.h"

/* The byte that a character stands for, or -1. */
static int
byte_of(uint32_t c)
{
	if ((c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff))
		return (int)c;
	if (c >= 0x100 && c <= 0x120)
		return (int)(c - 0x100); /* 0x00 to 0x20 */
	if (c >= 0x121 && c <= 0x142)
		return (int)(c - 0x121 + 0x7f); /* 0x7f to 0xa0 */
	return c == 0x143 ? 0xad : -1;
}

bool
tok_bytelevel_decode(const char *text, size_t n, uint8_t *out, size_t *n_out)
{
	const uint8_t *p = (const uint8_t *)text;

	if (tok_utf8_scan(p, n).end != TOK_UTF8_WHOLE)
		return false;
	*n_out = 0;
	for (size_t at = 0; at < n; at += tok_utf8_length(p[at])) {
		int byte = byte_of(tok_utf8_decode(p + at, tok_utf8_length(p[at])));

		if (byte < 0)
			return false;
		out[(*n_out)++] = (uint8_t)byte;
	}
	return true;
}
