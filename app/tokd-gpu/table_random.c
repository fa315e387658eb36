/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computed tables: a counter-based generator, so that numpy can compute any row
 * (python/dpdk_tokd/embeddings/table.py).
 */
#include <mix.h>

#include "tables_inside.h"

static uint64_t
splitmix64(uint64_t x)
{
	return dice_throw(&x);
}

void
tokg_random_fill(float *to, uint64_t seed, enum tokg_part part, uint64_t first, size_t n)
{
	const uint64_t key = splitmix64(splitmix64(seed) + part);

	for (size_t i = 0; i < n; i++) /* 24 bits: exact in a float */
		to[i] = (float)(splitmix64(key + first + i) >> 40) * 0x1p-23f - 1.0f;
}
