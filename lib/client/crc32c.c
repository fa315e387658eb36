/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C by the CPU's instruction if it has one, else by table; chosen once. */
#include <stdbool.h>
#include <string.h>

#include "crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

static uint32_t table[256];

static uint32_t
by_table(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n-- > 0)
		crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>

static bool
have_instruction(void)
{
	uint32_t a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}

__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t wide = crc, word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		wide = _mm_crc32_u64(wide, word);
	}
	crc = (uint32_t)wide;
	while (n-- > 0)
		crc = _mm_crc32_u8(crc, *p++);
	return crc;
}
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#include <asm/hwcap.h>

static bool
have_instruction(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

__attribute__((target("+crc"))) static uint32_t
by_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		crc = __crc32cd(crc, word);
	}
	while (n-- > 0)
		crc = __crc32cb(crc, *p++);
	return crc;
}
#else
static bool
have_instruction(void)
{
	return false;
}
#define by_instruction by_table
#endif

static uint32_t (*extend)(uint32_t crc, const uint8_t *p, size_t n) = by_table;

__attribute__((constructor)) static void
choose(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[i] = crc;
	}
	if (have_instruction())
		extend = by_instruction;
}

uint32_t
client_crc32c(uint32_t crc, const void *data, size_t n)
{
	return ~extend(~crc, data, n);
}
