/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge words with AVX-512. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx512.h"

#define MERGE_KERNEL tok_merge_avx512
#include "bpe_merge.h"

static inline uint32_t
least_key(const uint32_t *key, uint32_t n)
{
	__m512i x = _mm512_load_si512(key);
	__m256i y;
	__m128i z;

	for (uint32_t i = KEYS; __builtin_expect(i <= n, 0); i += KEYS)
		x = _mm512_min_epi32(x, _mm512_load_si512(key + i));
	y = _mm256_min_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
	z = _mm_min_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
	z = _mm_min_epi32(z, _mm_shuffle_epi32(z, 0x4e));
	z = _mm_min_epi32(z, _mm_shuffle_epi32(z, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(z);
}

static inline uint32_t
copy_tokens(uint32_t *to, const uint32_t *from, uint64_t places)
{
	uint32_t n = 0;

	do {
		const __mmask16 some = (__mmask16)places;
		const uint32_t found = (uint32_t)__builtin_popcount(some);

		_mm512_mask_storeu_epi32(to + n, (__mmask16)((1u << found) - 1),
			_mm512_maskz_compress_epi32(some, _mm512_maskz_loadu_epi32(some, from)));
		n += found;
		from += 16;
		places >>= 16;
	} while (__builtin_expect(places != 0, 0));
	return n;
}

TOK_TARGET_END
#endif
