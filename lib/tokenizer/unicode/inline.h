/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups that C, C++ and CUDA's device code share are TOK_INLINE: without calls of other files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define TOK_INLINE static __host__ __device__ inline
#else
#define TOK_INLINE static inline
#endif

/* Number of bits that are set. */
TOK_INLINE uint32_t
tok_popcount(uint64_t x)
{
#ifdef __CUDA_ARCH__
	return (uint32_t)__popcll(x);
#else
	return (uint32_t)__builtin_popcountll(x);
#endif
}

/* Are n bytes equal? */
TOK_INLINE bool
tok_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
#ifdef __CUDA_ARCH__
	for (size_t i = 0; i < n; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
#else
	return memcmp(a, b, n) == 0;
#endif
}
