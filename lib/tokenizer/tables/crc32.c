/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "crc32.h"

#define POLYNOMIAL 0xedb88320u /* bit-reversed */
#define AT_ONCE 8u

/* table[k][b]: what the byte b does to a CRC from k bytes before the end. */
static uint32_t table[AT_ONCE][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
fill_table(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		table[0][b] = b;
		for (int bit = 0; bit < 8; bit++)
			table[0][b] = table[0][b] >> 1 ^ (table[0][b] & 1 ? POLYNOMIAL : 0);
	}
	for (uint32_t k = 1; k < AT_ONCE; k++) {
		for (uint32_t b = 0; b < 256; b++)
			table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
	}
}

/* Eight bytes a step, as proposed by M. E. Kounavis and F. L. Berry, "A Systematic Approach to
 * Building High Performance Software-Based CRC Generators", 2005. */
uint32_t
tok_crc32(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	pthread_once(&once, fill_table);
	crc = ~crc;
	for (; n >= AT_ONCE; n -= AT_ONCE, p += AT_ONCE) {
		const uint32_t first = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 |
						     (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);

		crc = table[7][first & 0xff] ^ table[6][first >> 8 & 0xff] ^
		      table[5][first >> 16 & 0xff] ^ table[4][first >> 24] ^ table[3][p[4]] ^
		      table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
	}
	for (; n > 0; n--, p++)
		crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
	return ~crc;
}
