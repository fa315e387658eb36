/* SPDX-License-Identifier: BSD-3-Clause */
#include "bytelevel.h"
#include "utf8.h"

static bool
is_printable(uint32_t byte)
{
	return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
	       (byte >= 0xae && byte <= 0xff);
}

bool
tok_bytelevel_decode(const char *text, size_t n, uint8_t *out, size_t *n_out)
{
	const uint8_t *p = (const uint8_t *)text;
	uint8_t rest[68]; /* bytes written as U+0100 and on */
	uint32_t n_rest = 0, byte;
	size_t at = 0;

	for (byte = 0; byte < 256; byte++) {
		if (!is_printable(byte))
			rest[n_rest++] = (uint8_t)byte;
	}
	if (tok_utf8_scan(p, n).end != TOK_UTF8_WHOLE)
		return false;
	for (*n_out = 0; at < n; at += tok_utf8_length(p[at])) {
		uint32_t c = tok_utf8_decode(p + at, tok_utf8_length(p[at]));

		if (c < 256 && is_printable(c))
			out[(*n_out)++] = (uint8_t)c;
		else if (c >= 256 && c - 256 < n_rest)
			out[(*n_out)++] = rest[c - 256];
		else
			return false;
	}
	return true;
}
