/* SPDX-License-Identifier: BSD-3-Clause */
/* Offsets of the bits of a mask, as scan_classes.h asks for it: bit by bit. */
#ifndef TOK_WRITE_STARTS_H
#define TOK_WRITE_STARTS_H

#include <stddef.h>
#include <stdint.h>

/* Some more than there are, within the room: how many is hard to guess. */
static inline void
write_starts(size_t *start, size_t at, uint64_t m)
{
	const uint32_t n = (uint32_t)__builtin_popcountll(m);

	for (uint32_t k = 0; k < n; k += 16) {
		for (uint32_t i = 0; i < 16; i++, m &= m - 1)
			start[k + i] = at + (size_t)__builtin_ctzll(m | 1ull << 63);
	}
}

#endif
