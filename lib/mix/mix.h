/* SPDX-License-Identifier: BSD-3-Clause */
/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014). */
#pragma once

#include <stdint.h>

/*
 * Keyed sums of what counts up (ids, addresses) lie on a line: for one secret in some dozens they
 * fill a few buckets only. This spreads them: each bit depends on all. It is a bijection: it makes
 * no two equal.
 */
static inline uint64_t
tokd_mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

/* The next of the random numbers that follow from *dice: any number, which becomes another. */
static inline uint64_t
dice_throw(uint64_t *dice)
{
	return tokd_mix(*dice += UINT64_C(0x9e3779b97f4a7c15));
}
