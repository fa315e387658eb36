/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "utf8.h"

/* Number of ASCII bytes at the front of [p, end), in steps of 8, so possibly a few fewer. */
static inline const uint8_t *
skip_ascii(const uint8_t *p, const uint8_t *end)
{
	uint64_t a, b;

	while (end - p >= 16) {
		memcpy(&a, p, 8);
		memcpy(&b, p + 8, 8);
		if ((a | b) & 0x8080808080808080ull)
			break;
		p += 16;
	}
	return p;
}

struct tok_utf8_span
tok_utf8_scan(const uint8_t *text, size_t n)
{
	struct tok_utf8_span span = {.end = TOK_UTF8_WHOLE};
	const uint8_t *p = text, *end = text + n;

	while (p < end) {
		unsigned int len, i;

		if (*p < 0x80) {
			p = skip_ascii(p, end);
			while (p < end && *p < 0x80)
				p++;
			continue;
		}
		len = tok_utf8_length(*p);
		for (i = 1; i < len && p + i < end && tok_utf8_follows(*p, i, p[i]); i++)
			;
		if (i == len) {
			p += len;
			continue;
		}
		span.end = len != 0 && p + i == end ? TOK_UTF8_SHORT : TOK_UTF8_BROKEN;
		span.rest = i;
		break;
	}
	span.valid = (size_t)(p - text);
	return span;
}
