/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Converts 16-bit elements to float (exact) and back (to nearest, ties to even). For the agent,
 * which reads tables, and for both devices.
 */
#pragma once

#include "ring/gpu_ring.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

TOKG_FN uint32_t
tokg_float_bits(float f)
{
#ifdef __CUDA_ARCH__
	return __float_as_uint(f);
#else
	uint32_t u;

	__builtin_memcpy(&u, &f, sizeof(u));
	return u;
#endif
}

TOKG_FN float
tokg_bits_float(uint32_t u)
{
#ifdef __CUDA_ARCH__
	return __uint_as_float(u);
#else
	float f;

	__builtin_memcpy(&f, &u, sizeof(f));
	return f;
#endif
}

/* IEEE 754 binary16: its exponent counts from 15, a float's from 127. */
TOKG_FN float
tokg_half_to_float(uint16_t h)
{
#ifdef __CUDA_ARCH__
	return __half2float(__ushort_as_half(h));
#else
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	const uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;

	if (exponent == 31)
		return tokg_bits_float(sign | 0x7f800000u | mantissa << 13);
	if (exponent == 0) /* mantissa * 2^-24 is exact */
		return tokg_bits_float(sign | tokg_float_bits((float)mantissa * 0x1p-24f));
	return tokg_bits_float(sign | (exponent + 112) << 23 | mantissa << 13);
#endif
}

TOKG_FN uint16_t
tokg_half_of_float(float f)
{
#ifdef __CUDA_ARCH__
	return __half_as_ushort(__float2half_rn(f));
#else
	const uint32_t u = tokg_float_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;

	if (a > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff)); /* a quiet NaN */
	if (a >= 0x477ff000u)
		return (uint16_t)(sign | 0x7c00); /* 65520 and above: infinity */
	if (a < 0x38800000u) /* below 2^-14: adding 0.5 rounds to multiples of 2^-24 */
		return (uint16_t)(sign |
				  (tokg_float_bits(tokg_bits_float(a) + 0.5f) - 0x3f000000u));
	return (uint16_t)(sign | ((a - (112u << 23) + 0xfff + (a >> 13 & 1)) >> 13));
#endif
}

/* bfloat16 is the upper half of a float. */
TOKG_FN uint16_t
tokg_bf16_of_float(float f)
{
	const uint32_t u = tokg_float_bits(f);

	if ((u & 0x7fffffff) > 0x7f800000u)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

TOKG_FN float
tokg_element16(uint32_t dtype, uint16_t bits)
{
	return dtype == TOKG_F16 ? tokg_half_to_float(bits) : tokg_bits_float((uint32_t)bits << 16);
}

TOKG_FN uint16_t
tokg_element16_of(uint32_t dtype, float f)
{
	return dtype == TOKG_F16 ? tokg_half_of_float(f) : tokg_bf16_of_float(f);
}
