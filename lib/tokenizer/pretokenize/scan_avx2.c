/* SPDX-License-Identifier: BSD-3-Clause */
/* Borders of pretokens by AVX2 and BMI2. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx2.h"

#include "isa/kernels.h"
#include "pretok.h"
#include "pack_bmi2.h"
#include "write_starts.h"

typedef struct {
	__m256i v[2];
} bytes64;
typedef bytes64 where64;

static inline bytes64
load64(const uint8_t *p, size_t n)
{
	uint8_t part[64] = {0};

	if (n < 64) {
		memcpy(part, p, n);
		p = part;
	}
	return (bytes64){{_mm256_loadu_si256((const __m256i *)p),
		_mm256_loadu_si256((const __m256i *)(p + 32))}};
}

static inline where64
equal64(bytes64 x, uint8_t c)
{
	const __m256i y = _mm256_set1_epi8((char)c);

	return (where64){{_mm256_cmpeq_epi8(x.v[0], y), _mm256_cmpeq_epi8(x.v[1], y)}};
}

static inline __m256i
range32(__m256i x, uint8_t low, uint8_t high)
{
	const __m256i y = _mm256_sub_epi8(x, _mm256_set1_epi8((char)low));

	return _mm256_cmpeq_epi8(_mm256_min_epu8(y, _mm256_set1_epi8((char)(high - low))), y);
}

static inline where64
range64(bytes64 x, uint8_t low, uint8_t high)
{
	return (where64){{range32(x.v[0], low, high), range32(x.v[1], low, high)}};
}

static inline where64
letters64(bytes64 x)
{
	const __m256i y = _mm256_set1_epi8(0x20);

	return range64(
		(bytes64){{_mm256_or_si256(x.v[0], y), _mm256_or_si256(x.v[1], y)}}, 'a', 'z');
}

static inline where64
both64(where64 a, where64 b)
{
	return (where64){{_mm256_and_si256(a.v[0], b.v[0]), _mm256_and_si256(a.v[1], b.v[1])}};
}

static inline uint64_t
bits64(where64 a)
{
	return (uint32_t)_mm256_movemask_epi8(a.v[0]) |
	       (uint64_t)(uint32_t)_mm256_movemask_epi8(a.v[1]) << 32;
}

/* Sixteen bytes of the page at a time, chosen by bits 4 and 5 of the index. */
static inline __m256i
pick32(__m256i y, __m256i a, __m256i i, const uint8_t *page)
{
	const __m128i *q = (const __m128i *)page;
	const __m256i low = _mm256_and_si256(i, _mm256_set1_epi8(0x0f));
	const __m256i bit4 = _mm256_slli_epi16(i, 3), bit5 = _mm256_slli_epi16(i, 2);
	__m256i x[4];

	for (uint32_t k = 0; k < 4; k++)
		x[k] = _mm256_shuffle_epi8(
			_mm256_broadcastsi128_si256(_mm_loadu_si128(q + k)), low);
	x[0] = _mm256_blendv_epi8(x[0], x[1], bit4);
	x[2] = _mm256_blendv_epi8(x[2], x[3], bit4);
	return _mm256_blendv_epi8(y, _mm256_blendv_epi8(x[0], x[2], bit5), a);
}

static inline bytes64
pick64(bytes64 y, where64 a, bytes64 i, const uint8_t *page)
{
	return (bytes64){
		{pick32(y.v[0], a.v[0], i.v[0], page), pick32(y.v[1], a.v[1], i.v[1], page)}};
}

static inline uint64_t
plane64(bytes64 x, uint32_t k)
{
	const int up = 7 - (int)k; /* to the sign */

	return bits64((where64){{_mm256_slli_epi16(x.v[0], up), _mm256_slli_epi16(x.v[1], up)}});
}

/* Sixteen bytes of the table at a time: the other bytes of x get the sign, so they choose zero. */
static inline __m256i
look32(__m256i x, const uint8_t *table)
{
	__m256i y = _mm256_setzero_si256();

	for (int k = 0; k < 8; k++) {
		const __m128i part = _mm_loadu_si128((const __m128i *)table + k);
		const __m256i i =
			_mm256_adds_epu8(_mm256_sub_epi8(x, _mm256_set1_epi8((char)(16 * k))),
				_mm256_set1_epi8(0x70));

		y = _mm256_or_si256(y, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(part), i));
	}
	return y;
}

static inline bytes64
look64(bytes64 x, const uint8_t *table)
{
	return (bytes64){{look32(x.v[0], table), look32(x.v[1], table)}};
}

static inline uint64_t
meet64(bytes64 a, bytes64 b)
{
	const __m256i zero = _mm256_setzero_si256();
	const where64 apart = {{_mm256_cmpeq_epi8(_mm256_and_si256(a.v[0], b.v[0]), zero),
		_mm256_cmpeq_epi8(_mm256_and_si256(a.v[1], b.v[1]), zero)}};

	return ~bits64(apart);
}

#include "scan_borders.h"
#include "scan_skip.h"
#include "scan_utf8.h"

uint32_t
tok_scan_avx2(struct tok_pretok_scan *s, size_t *start, uint32_t room)
{
	return scan_blocks(s, start, room);
}

size_t
tok_utf8_avx2(const uint8_t *p, size_t n)
{
	return utf8_blocks(p, n);
}

size_t
tok_skip_avx2(const uint8_t few[TOK_SKIP_BYTES], const uint8_t *p, size_t n)
{
	return skip_blocks(few, p, n);
}

TOK_TARGET_END
#endif
