/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of elements into each other, by way of f32, which holds all of the others exactly. */
#include <string.h>

#include "tables_inside.h"

static float
float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint32_t
bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static float
from_f16(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	const uint32_t exponent = h >> 10 & 0x1f, mantissa = h & 0x3ff;

	if (exponent == 0) /* subnormal: mantissa * 2^-24 is exact */
		return float_of(sign | bits_of((float)mantissa * 0x1p-24f));
	if (exponent == 31)
		return float_of(sign | 0x7f800000 | mantissa << 13);
	return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

static uint16_t
to_f16(float f)
{
	const uint32_t bits = bits_of(f), size = bits & 0x7fffffff;
	const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

	if (size > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff)); /* a quiet NaN */
	if (size >= 0x477ff000) /* 65520 and above round to infinity */
		return (uint16_t)(sign | 0x7c00);
	if (size <
		0x38800000) /* below 2^-14: adding 0.5 leaves units of 2^-24, rounded by the FPU */
		return (uint16_t)(sign | (bits_of(float_of(size) + 0.5f) - 0x3f000000));
	return (uint16_t)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
}

static uint16_t
to_bf16(float f)
{
	const uint32_t bits = bits_of(f);

	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float
load(const void *from, uint32_t dtype, size_t i)
{
	uint16_t half;
	float f;

	if (dtype == TOKG_F32) {
		memcpy(&f, (const uint8_t *)from + 4 * i, sizeof(f));
		return f;
	}
	memcpy(&half, (const uint8_t *)from + 2 * i, sizeof(half));
	return dtype == TOKG_F16 ? from_f16(half) : float_of((uint32_t)half << 16);
}

void
tokg_convert(void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype, size_t n)
{
	if (to_dtype == from_dtype) {
		memcpy(to, from, n * tokg_element_bytes(to_dtype));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const float f = load(from, from_dtype, i);

		if (to_dtype == TOKG_F32)
			((float *)to)[i] = f;
		else
			((uint16_t *)to)[i] = to_dtype == TOKG_F16 ? to_f16(f) : to_bf16(f);
	}
}
