/* SPDX-License-Identifier: BSD-3-Clause */
#include "utf8.h"

#include <stdbool.h>
#include <string.h>

#define NOT_ASCII 0x8080808080808080ull
#define TAIL 0x3fu /* bits of a character in a byte that continues it */

utf8_writer *
utf8_choose(const char *isa)
{
#ifdef __x86_64__
	if (strcmp(isa, "avx512") == 0)
		return utf8_avx512;
#endif
	return utf8_portable;
}

/* Without a branch for characters below 0x10000: their lengths are hard to predict. */
static inline uint8_t *
put(uint8_t *out, uint32_t c)
{
	const uint32_t two = 0x80c0 | c >> 6 | (c & TAIL) << 8;
	const uint32_t three = 0x8080e0 | c >> 12 | (c >> 6 & TAIL) << 8 | (c & TAIL) << 16;
	uint32_t bytes = c < 0x80 ? c : c < 0x800 ? two : three;

	if (c >= 0x10000) {
		bytes = 0x808080f0 | c >> 18 | (c >> 12 & TAIL) << 8 | (c >> 6 & TAIL) << 16 |
			(c & TAIL) << 24;
		out++;
	}
	memcpy(out - (c >= 0x10000), &bytes, sizeof(bytes));
	return out + 1 + (c >= 0x80) + (c >= 0x800);
}

static inline bool
is_surrogate(uint32_t c)
{
	return c >> 11 == 0xd800 >> 11;
}

/* Latin-1: mostly ASCII. */
static uint8_t *
write_1(uint8_t *out, const uint8_t *c, size_t n)
{
	uint64_t eight;

	for (; n >= 8; n -= 8, c += 8) {
		memcpy(&eight, c, 8);
		memcpy(out, &eight, 8);
		if ((eight & NOT_ASCII) == 0) {
			out += 8;
			continue;
		}
		for (int i = 0; i < 8; i++)
			out = put(out, c[i]);
	}
	while (n-- > 0)
		out = put(out, *c++);
	return out;
}

size_t
utf8_portable(uint8_t *out, const void *chars, size_t n, unsigned int width)
{
	uint8_t *end = out;
	bool bad = false;

	if (width == 1)
		return (size_t)(write_1(out, chars, n) - out);
	if (width == 2) {
		for (size_t i = 0; i < n; i++) {
			uint32_t c = ((const uint16_t *)chars)[i];

			bad |= is_surrogate(c);
			end = put(end, c);
		}
	} else {
		for (size_t i = 0; i < n; i++) {
			uint32_t c = ((const uint32_t *)chars)[i];

			bad |= is_surrogate(c);
			end = put(end, c);
		}
	}
	return bad ? SIZE_MAX : (size_t)(end - out);
}
