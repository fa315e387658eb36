/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge words with AVX-512. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx512.h"

#define MERGE_KERNEL tok_merge_avx512
#include "bpe_merge.h"

static inline uint32_t
least_key(const uint32_t *key)
{
	const __m512i x = _mm512_min_epi32(_mm512_load_si512(key), _mm512_load_si512(key + 16));
	const __m256i y =
		_mm256_min_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
	__m128i z = _mm_min_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));

	z = _mm_min_epi32(z, _mm_shuffle_epi32(z, 0x4e));
	z = _mm_min_epi32(z, _mm_shuffle_epi32(z, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(z);
}

static inline uint32_t
copy_tokens(uint32_t *to, const uint32_t *from, uint32_t places)
{
	const uint32_t low = (uint32_t)__builtin_popcount(places & 0xffff);
	const uint32_t high = (uint32_t)__builtin_popcount(places >> 16);

	_mm512_mask_storeu_epi32(to, (__mmask16)((1u << low) - 1),
		_mm512_maskz_compress_epi32((__mmask16)places, _mm512_load_si512(from)));
	if (__builtin_expect(high > 0, 0))
		_mm512_mask_storeu_epi32(to + low, (__mmask16)((1u << high) - 1),
			_mm512_maskz_compress_epi32(
				(__mmask16)(places >> 16), _mm512_load_si512(from + 16)));
	return low + high;
}

TOK_TARGET_END
#endif
