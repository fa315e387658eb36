/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef __x86_64__
#include "isa/target_avx512.h"

#include "utf8.h"

#define LANES 16

/* The lanes of `valid`, zero-extended. The others read nothing. */
static inline __m512i
load(const void *chars, size_t i, unsigned int width, __mmask16 valid)
{
	switch (width) {
	case 1:
		return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(valid, (const char *)chars + i));
	case 2:
		return _mm512_cvtepu16_epi32(
			_mm256_maskz_loadu_epi16(valid, (const char *)chars + 2 * i));
	default:
		return _mm512_maskz_loadu_epi32(valid, (const char *)chars + 4 * i);
	}
}

/*
 * A character takes a lane of four bytes, its UTF-8 at the end of it:
 *   1. the six bits of each byte to their place: c >> 18, c >> 12, c >> 6, c;
 *   2. the marks of a sequence of this length; an ASCII character is one byte without a mark;
 *   3. the bytes in use, chosen by `keep`, are compressed to one sequence.
 */
static inline size_t
convert(uint8_t *out, const void *chars, size_t n, unsigned int width)
{
	/* of the two characters of 64 bits: where each byte's bits begin */
	const __m512i places = _mm512_set1_epi64(0x20262c3200060c12);
	__mmask16 bad = 0;
	uint8_t *end = out;

	for (size_t i = 0; i < n; i += LANES) {
		const __mmask16 valid = (__mmask16)_bzhi_u32(0xffff, n - i < LANES ? n - i : LANES);
		const __m512i c = load(chars, i, width, valid);
		const __mmask16 two = _mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x80));
		__m512i mark = _mm512_maskz_set1_epi32(two, (int)0x80c00000);
		__m512i keep = _mm512_mask_set1_epi32(
			_mm512_maskz_set1_epi32(valid, (int)0x80000000), two, (int)0x80800000);
		__m512i bytes = _mm512_and_si512(
			_mm512_multishift_epi64_epi8(places, c), _mm512_set1_epi8(0x3f));
		__mmask64 used;

		if (width > 1) {
			const __mmask16 three =
				_mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x800));

			mark = _mm512_mask_set1_epi32(mark, three, (int)0x8080e000);
			keep = _mm512_mask_set1_epi32(keep, three, (int)0x80808000);
			bad |= _mm512_cmpeq_epi32_mask(
				_mm512_srli_epi32(c, 11), _mm512_set1_epi32(0xd800 >> 11));
		}
		if (width > 2) {
			const __mmask16 four =
				_mm512_cmpge_epu32_mask(c, _mm512_set1_epi32(0x10000));

			mark = _mm512_mask_set1_epi32(mark, four, (int)0x808080f0);
			keep = _mm512_mask_set1_epi32(keep, four, (int)0x80808080);
		}
		bytes = _mm512_mask_slli_epi32(
			_mm512_or_si512(bytes, mark), _knot_mask16(two), c, 24);
		used = _mm512_movepi8_mask(keep);
		_mm512_storeu_si512(end, _mm512_maskz_compress_epi8(used, bytes));
		end += _mm_popcnt_u64(used);
	}
	return bad != 0 ? SIZE_MAX : (size_t)(end - out);
}

size_t
utf8_avx512(uint8_t *out, const void *chars, size_t n, unsigned int width)
{
	switch (width) {
	case 1:
		return convert(out, chars, n, 1);
	case 2:
		return convert(out, chars, n, 2);
	default:
		return convert(out, chars, n, 4);
	}
}

TOK_TARGET_END
#endif
