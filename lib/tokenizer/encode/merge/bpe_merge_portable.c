/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge words with portable C. Hot path. */
#define MERGE_KERNEL tok_merge_portable
#include "bpe_merge.h"
#include "bpe_merge_copy.h"

static inline uint32_t
least_key(const uint32_t *key, uint32_t n)
{
	int32_t least = INT32_MAX;

	/* Fixed counts, without branches, and signed: GCC vectorizes it for x86-64. */
	for (uint32_t i = 0; i <= n; i += KEYS) {
		for (uint32_t k = 0; k < KEYS; k++)
			least = (int32_t)key[i + k] < least ? (int32_t)key[i + k] : least;
	}
	return (uint32_t)least;
}
