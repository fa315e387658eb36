/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge words with NEON. Hot path. */
#ifdef __aarch64__
#include <arm_neon.h>

#define MERGE_KERNEL tok_merge_neon
#include "bpe_merge.h"
#include "bpe_merge_copy.h"

static inline uint32x4_t
least_of_four(const uint32_t *key)
{
	return vminq_u32(vminq_u32(vld1q_u32(key), vld1q_u32(key + 4)),
		vminq_u32(vld1q_u32(key + 8), vld1q_u32(key + 12)));
}

static inline uint32_t
least_key(const uint32_t *key, uint32_t n)
{
	uint32x4_t x = least_of_four(key);

	for (uint32_t i = KEYS; __builtin_expect(i <= n, 0); i += KEYS)
		x = vminq_u32(x, least_of_four(key + i));
	return vminvq_u32(x);
}
#endif
