/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keyed sums of what counts up (ids, addresses) lie on a line: for one secret in some dozens they
 * fill a few buckets only. This spreads them: each bit depends on all. It is the finalizer of
 * splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a bijection: it makes no two equal.
 */
#pragma once

#include <stdint.h>

static inline uint64_t
tokd_mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}
