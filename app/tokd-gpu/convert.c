/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts element types through f32, which represents the others exactly. */
#include <string.h>

#include "kernel/element.h"
#include "tables_inside.h"

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
	return tokg_element16(dtype, half);
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
			((uint16_t *)to)[i] = tokg_element16_of(to_dtype, f);
	}
}
