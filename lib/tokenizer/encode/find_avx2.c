/* SPDX-License-Identifier: BSD-3-Clause */
/* Short pretokens in the cache by AVX2: a key is one register. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx2.h"

#define FIND_KERNEL tok_find_avx2
#include "find.h"

static inline void
make_key(uint64_t key[2], const uint8_t *p, size_t len)
{
	const __m128i *m = (const __m128i
			*)&tok_cache_mask[len <= TOK_CACHE_SHORT ? len : TOK_CACHE_SHORT + 1];
	const __m128i text = _mm_and_si128(_mm_loadu_si128((const __m128i *)p), _mm_load_si128(m));

	_mm_store_si128((__m128i *)key, _mm_or_si128(text, _mm_load_si128(m + 1)));
}

static inline uint32_t
key_differs(const struct tok_cache_entry *e, const uint64_t key[2])
{
	/* All but the number of ids. */
	const __m128i bits = _mm_set_epi64x((long long)(~0ull >> (64 - TOK_CACHE_N_SHIFT)), -1);

	return !_mm_testz_si128(bits, _mm_xor_si128(_mm_load_si128((const __m128i *)e->key),
					      _mm_load_si128((const __m128i *)key)));
}

TOK_TARGET_END
#endif
