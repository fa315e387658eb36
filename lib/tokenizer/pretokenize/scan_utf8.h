/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Well-formed UTF-8 (Unicode 16, table 3-7), a block of 64 bytes at a time. Included by scan_*.c,
 * like scan_classes.h.
 */
#pragma once

#include "scan_classes.h"

/* What the previous block leaves over: bits at the beginning of the next one. */
struct utf8_open {
	uint64_t expected;	 /* bytes that must continue a character */
	uint64_t e0, ed, f0, f4; /* the second byte of a character with this first byte */
};

/* Bytes of a block that are ill-formed after the bytes before them. */
ALWAYS_INLINE uint64_t
broken(struct utf8_open *open, bytes64 x, uint64_t high)
{
	const uint64_t continues = bits64(range64(x, 0x80, 0xbf)), lead = high & ~continues;
	const uint64_t three = bits64(range64(x, 0xe0, 0xff)),
		       four = bits64(range64(x, 0xf0, 0xff));
	const uint64_t expected = open->expected | lead << 1 | three << 2 | four << 3;
	const uint64_t e0 = bits64(equal64(x, 0xe0)), ed = bits64(equal64(x, 0xed));
	const uint64_t f4 = four & bits64(equal64(x, 0xf4)), f0 = four & bits64(equal64(x, 0xf0));
	const uint64_t second = e0 | ed | four | open->e0 | open->ed | open->f0 | open->f4;
	uint64_t bad = bits64(range64(x, 0xc0, 0xc1)) | (expected ^ continues);

	if (second != 0) {
		const uint64_t low = bits64(range64(x, 0x80, 0x8f));
		const uint64_t high_half = bits64(range64(x, 0xa0, 0xbf));

		bad |= (e0 << 1 | open->e0) & ~high_half;
		bad |= (ed << 1 | open->ed) & high_half;
		bad |= (f0 << 1 | open->f0) & low;
		bad |= (f4 << 1 | open->f4) & ~low;
		bad |= bits64(range64(x, 0xf5, 0xff));
	}
	*open = (struct utf8_open){.expected = lead >> 63 | three >> 62 | four >> 61,
		.e0 = e0 >> 63,
		.ed = ed >> 63,
		.f0 = f0 >> 63,
		.f4 = f4 >> 63};
	return bad;
}

/* tok_utf8_kernel */
ALWAYS_INLINE size_t
utf8_blocks(const uint8_t *p, size_t n)
{
	struct utf8_open open = {0};
	size_t at = 0;

	while (at < n) {
		const bytes64 x = load64(p + at, n - at);
		const uint64_t high = bits64(range64(x, 0x80, 0xff)), before = open.expected;

		if ((high | before) != 0 && broken(&open, x, high) != 0) {
			open.expected = before;
			break;
		}
		at += n - at < 64 ? n - at : 64;
	}
	if (open.expected != 0) /* back to where the open character begins */
		while ((p[--at] & 0xc0) == 0x80)
			;
	return at;
}
