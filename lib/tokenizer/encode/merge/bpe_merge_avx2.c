/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge words with AVX2. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx2.h"

#define MERGE_KERNEL tok_merge_avx2
#include "bpe_merge.h"
#include "bpe_merge_copy.h"

static inline __m256i
least_of_two(const uint32_t *key)
{
	return _mm256_min_epi32(_mm256_load_si256((const __m256i *)key),
		_mm256_load_si256((const __m256i *)(key + 8)));
}

static inline uint32_t
least_key(const uint32_t *key, uint32_t n)
{
	__m256i y = least_of_two(key);
	__m128i z;

	for (uint32_t i = KEYS; __builtin_expect(i <= n, 0); i += KEYS)
		y = _mm256_min_epi32(y, least_of_two(key + i));
	z = _mm_min_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
	z = _mm_min_epi32(z, _mm_shuffle_epi32(z, 0x4e));
	z = _mm_min_epi32(z, _mm_shuffle_epi32(z, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(z);
}

TOK_TARGET_END
#endif
