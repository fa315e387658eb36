/* SPDX-License-Identifier: BSD-3-Clause */
/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014). */
#pragma once

#include <stdint.h>

/*
 * Spreads a keyed sum: each bit of the result depends on all bits of `h`. Sums of consecutive ids
 * or addresses are consecutive, and for one key in some dozens they fill only a few buckets. It is
 * a bijection: different sums stay different.
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
