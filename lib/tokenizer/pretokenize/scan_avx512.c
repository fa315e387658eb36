/* SPDX-License-Identifier: BSD-3-Clause */
/* Borders of pretokens by AVX-512 with VBMI and VBMI2. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx512.h"

#include "isa/kernels.h"
#include "pretok.h"
#include "pack_bmi2.h"

typedef __m512i bytes64;
typedef __mmask64 where64;

static inline bytes64
load64(const uint8_t *p, size_t n)
{
	return _mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, n < 64 ? (uint32_t)n : 64), p);
}

static inline where64
equal64(bytes64 x, uint8_t c)
{
	return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8((char)c));
}

static inline where64
range64(bytes64 x, uint8_t low, uint8_t high)
{
	return _mm512_cmple_epu8_mask(_mm512_sub_epi8(x, _mm512_set1_epi8((char)low)),
		_mm512_set1_epi8((char)(high - low)));
}

static inline where64
letters64(bytes64 x)
{
	return range64(_mm512_or_si512(x, _mm512_set1_epi8(0x20)), 'a', 'z');
}

static inline where64
both64(where64 a, where64 b)
{
	return a & b;
}

static inline uint64_t
bits64(where64 a)
{
	return a;
}

static inline bytes64
pick64(bytes64 y, where64 a, bytes64 i, const uint8_t *page)
{
	return _mm512_mask_permutexvar_epi8(y, a, i, _mm512_loadu_si512(page));
}

static inline uint64_t
plane64(bytes64 x, uint32_t k)
{
	return _mm512_test_epi8_mask(x, _mm512_set1_epi8((char)(1 << k)));
}

static inline bytes64
look64(bytes64 x, const uint8_t *table)
{
	return _mm512_permutex2var_epi8(
		_mm512_loadu_si512(table), x, _mm512_loadu_si512(table + 64));
}

static inline uint64_t
meet64(bytes64 a, bytes64 b)
{
	return _mm512_test_epi8_mask(a, b);
}

/* Eight at a time: most blocks have at most 16. */
static inline void
write_starts(size_t *start, size_t at, uint64_t m)
{
	const __m512i base = _mm512_set1_epi64((long long)at);
	const uint32_t n = (uint32_t)__builtin_popcountll(m);
	__m512i i = _mm512_set_epi8(63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48,
		47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27,
		26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5,
		4, 3, 2, 1, 0);

	i = _mm512_maskz_compress_epi8(m, i);
	for (uint32_t k = 0;; k += 16) {
		const __m128i some = _mm512_castsi512_si128(i);

		_mm512_storeu_si512(start + k, _mm512_add_epi64(base, _mm512_cvtepu8_epi64(some)));
		_mm512_storeu_si512(start + k + 8,
			_mm512_add_epi64(base, _mm512_cvtepu8_epi64(_mm_srli_si128(some, 8))));
		if (k + 16 >= n)
			return;
		i = _mm512_alignr_epi32(i, i, 4);
	}
}

#include "scan_borders.h"
#include "scan_skip.h"
#include "scan_utf8.h"

uint32_t
tok_scan_avx512(struct tok_pretok_scan *s, size_t *start, uint32_t room)
{
	return scan_blocks(s, start, room);
}

size_t
tok_utf8_avx512(const uint8_t *p, size_t n)
{
	return utf8_blocks(p, n);
}

size_t
tok_skip_avx512(const uint8_t few[TOK_SKIP_BYTES], const uint8_t *p, size_t n)
{
	return skip_blocks(few, p, n);
}

TOK_TARGET_END
#endif
