/* SPDX-License-Identifier: BSD-3-Clause */
/* Borders of pretokens by NEON. Hot path. */
#ifdef __aarch64__
#include <arm_neon.h>

#include "isa/kernels.h"
#include "pretok.h"
#include "pack.h"
#include "write_starts.h"

typedef uint8x16x4_t bytes64;
typedef bytes64 where64;

static inline bytes64
load64(const uint8_t *p, size_t n)
{
	uint8_t part[64] = {0};

	if (n < 64) {
		memcpy(part, p, n);
		p = part;
	}
	return vld1q_u8_x4(p);
}

static inline where64
equal64(bytes64 x, uint8_t c)
{
	for (uint32_t i = 0; i < 4; i++)
		x.val[i] = vceqq_u8(x.val[i], vdupq_n_u8(c));
	return x;
}

static inline where64
range64(bytes64 x, uint8_t low, uint8_t high)
{
	for (uint32_t i = 0; i < 4; i++)
		x.val[i] = vcleq_u8(
			vsubq_u8(x.val[i], vdupq_n_u8(low)), vdupq_n_u8((uint8_t)(high - low)));
	return x;
}

static inline where64
letters64(bytes64 x)
{
	for (uint32_t i = 0; i < 4; i++)
		x.val[i] = vorrq_u8(x.val[i], vdupq_n_u8(0x20));
	return range64(x, 'a', 'z');
}

static inline where64
both64(where64 a, where64 b)
{
	for (uint32_t i = 0; i < 4; i++)
		a.val[i] = vandq_u8(a.val[i], b.val[i]);
	return a;
}

/* Each byte keeps the bit of its index modulo eight. Adding pairs three times combines eight bytes
 * into one. */
static inline uint64_t
bits64(where64 a)
{
	const uint8x16_t place = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
	const uint8x16_t x = vpaddq_u8(vandq_u8(a.val[0], place), vandq_u8(a.val[1], place));
	const uint8x16_t y = vpaddq_u8(vandq_u8(a.val[2], place), vandq_u8(a.val[3], place));
	const uint8x16_t z = vpaddq_u8(x, y);

	return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(z, z)), 0);
}

static inline bytes64
pick64(bytes64 y, where64 a, bytes64 i, const uint8_t *page)
{
	const uint8x16x4_t table = vld1q_u8_x4(page);

	for (uint32_t k = 0; k < 4; k++)
		y.val[k] = vbslq_u8(a.val[k],
			vqtbl4q_u8(table, vandq_u8(i.val[k], vdupq_n_u8(0x3f))), y.val[k]);
	return y;
}

static inline uint64_t
plane64(bytes64 x, uint32_t k)
{
	for (uint32_t i = 0; i < 4; i++)
		x.val[i] = vtstq_u8(x.val[i], vdupq_n_u8((uint8_t)(1u << k)));
	return bits64(x);
}

static inline bytes64
look64(bytes64 x, const uint8_t *table)
{
	const uint8x16x4_t low = vld1q_u8_x4(table), high = vld1q_u8_x4(table + 64);

	for (uint32_t k = 0; k < 4; k++)
		x.val[k] = vqtbx4q_u8(
			vqtbl4q_u8(low, x.val[k]), high, vsubq_u8(x.val[k], vdupq_n_u8(64)));
	return x;
}

static inline uint64_t
meet64(bytes64 a, bytes64 b)
{
	for (uint32_t k = 0; k < 4; k++)
		a.val[k] = vtstq_u8(a.val[k], b.val[k]);
	return bits64(a);
}

#include "scan_borders.h"
#include "scan_skip.h"
#include "scan_utf8.h"

uint32_t
tok_scan_neon(struct tok_pretok_scan *s, size_t *start, uint32_t room)
{
	return scan_blocks(s, start, room);
}

size_t
tok_utf8_neon(const uint8_t *p, size_t n)
{
	return utf8_blocks(p, n);
}

size_t
tok_skip_neon(const uint8_t few[TOK_SKIP_BYTES], const uint8_t *p, size_t n)
{
	return skip_blocks(few, p, n);
}
#endif
