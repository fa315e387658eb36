/* SPDX-License-Identifier: BSD-3-Clause */
/* Borders of pretokens in plain C, which compilers vectorize. Hot path. */
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "isa/kernels.h"
#include "pretok.h"
#include "pack.h"
#include "write_starts.h"

typedef struct {
	uint8_t b[64];
} bytes64;
typedef bytes64 where64; /* 0xff or 0 */

static inline bytes64
load64(const uint8_t *p, size_t n)
{
	bytes64 x = {{0}};

	memcpy(x.b, p, n < 64 ? n : 64);
	return x;
}

static inline where64
range64(bytes64 x, uint8_t low, uint8_t high)
{
	const uint8_t span = high - low;

	for (uint32_t i = 0; i < 64; i++)
		x.b[i] = (uint8_t)(x.b[i] - low) <= span ? 0xff : 0;
	return x;
}

static inline where64
equal64(bytes64 x, uint8_t c)
{
	return range64(x, c, c);
}

static inline where64
letters64(bytes64 x)
{
	for (uint32_t i = 0; i < 64; i++)
		x.b[i] |= 0x20;
	return range64(x, 'a', 'z');
}

static inline where64
both64(where64 a, where64 b)
{
	for (uint32_t i = 0; i < 64; i++)
		a.b[i] &= b.b[i];
	return a;
}

/* Sixteen bytes at a time: SSE2 collects their sign bits. */
#ifdef __SSE2__
static inline uint64_t
plane64(bytes64 x, uint32_t k)
{
	uint64_t m = 0;

	for (uint32_t i = 0; i < 64; i += 16) {
		const __m128i y = _mm_loadu_si128((const __m128i *)(x.b + i));

		m |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_slli_epi16(y, 7 - (int)k)) << i;
	}
	return m;
}
#else /* or eight: the product collects their bits in its top byte, without carries */
static inline uint64_t
plane64(bytes64 x, uint32_t k)
{
	uint64_t m = 0;

	for (uint32_t i = 0; i < 64; i += 8)
		m |= ((tok_load8(x.b + i) >> k & 0x0101010101010101ull) * 0x0102040810204080ull) >>
		     56 << i;
	return m;
}
#endif

static inline uint64_t
bits64(where64 a)
{
	return plane64(a, 0);
}

static inline bytes64
pick64(bytes64 y, where64 a, bytes64 i, const uint8_t *page)
{
	for (uint32_t k = 0; k < 64; k++)
		y.b[k] = (page[i.b[k] & 63] & a.b[k]) | (y.b[k] & ~a.b[k]);
	return y;
}

static inline bytes64
look64(bytes64 x, const uint8_t *table)
{
	for (uint32_t i = 0; i < 64; i++)
		x.b[i] = table[x.b[i] & 127];
	return x;
}

static inline uint64_t
meet64(bytes64 a, bytes64 b)
{
	for (uint32_t i = 0; i < 64; i++)
		a.b[i] = (a.b[i] & b.b[i]) != 0 ? 0xff : 0;
	return bits64(a);
}

#include "scan_borders.h"
#include "scan_skip.h"
#include "scan_utf8.h"

uint32_t
tok_scan_portable(struct tok_pretok_scan *s, size_t *start, uint32_t room)
{
	return scan_blocks(s, start, room);
}

size_t
tok_utf8_portable(const uint8_t *p, size_t n)
{
	return utf8_blocks(p, n);
}

size_t
tok_skip_portable(const uint8_t few[TOK_SKIP_BYTES], const uint8_t *p, size_t n)
{
	return skip_blocks(few, p, n);
}
