/* SPDX-License-Identifier: BSD-3-Clause */
/* write_starts() of scan_classes.h, bit by bit. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Write more entries than there are bits, within the room: fewer mispredicted branches. */
static inline void
write_starts(size_t *start, size_t at, uint64_t m)
{
	const uint32_t n = (uint32_t)__builtin_popcountll(m);

	for (uint32_t k = 0; k < n; k += 16) {
		for (uint32_t i = 0; i < 16; i++, m &= m - 1)
			start[k + i] = at + (size_t)__builtin_ctzll(m | 1ull << 63);
	}
}
