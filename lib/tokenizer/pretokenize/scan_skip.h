/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the first of a few bytes, a block of 64 at a time. Included by scan_*.c, like
 * scan_classes.h.
 */
#pragma once

#include "scan_classes.h"

ALWAYS_INLINE size_t
skip_blocks(const uint8_t few[TOK_SKIP_BYTES], const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n; at += 64) {
		const bytes64 x = load64(p + at, n - at);
		uint64_t found = 0;

		for (uint32_t i = 0; i < TOK_SKIP_BYTES; i++)
			found |= bits64(equal64(x, few[i]));
		if (n - at < 64)
			found |= 1ull << (n - at);
		if (found != 0)
			return at + (size_t)__builtin_ctzll(found);
	}
	return n;
}
