/* SPDX-License-Identifier: BSD-3-Clause */
/* The checksum of a compiled vocabulary's tables. Set-up only. */
#include "tables/crc32.h"
#include "compiled.h"

#define LANES 16u
#define PRIME 0x01000193u

/*
 * FNV-1a (Fowler, Noll, Vo) of 32-bit words in 16 lanes, which compilers make vector code of: it is
 * as fast as memory, and CRC-32 is not. A lane with one changed word differs at the end, because
 * each step is a bijection.
 */
uint32_t
tok_compiled_sum(const uint8_t *p, size_t n)
{
	uint32_t lane[LANES], word[LANES];
	size_t left = n;

	for (uint32_t i = 0; i < LANES; i++)
		lane[i] = i + 1;
	for (; left >= sizeof(word); left -= sizeof(word), p += sizeof(word)) {
		memcpy(word, p, sizeof(word));
		for (uint32_t i = 0; i < LANES; i++)
			lane[i] = (lane[i] ^ word[i]) * PRIME;
	}
	return tok_crc32(tok_crc32(0, lane, sizeof(lane)), p, left);
}
