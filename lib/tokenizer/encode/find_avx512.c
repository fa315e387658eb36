/* SPDX-License-Identifier: BSD-3-Clause */
/* Short pretokens in the cache by AVX-512: keys and hashes four at a time. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx512.h"

#include "block.h"
#include "isa/kernels.h"

#define GROUP 8 /* pretokens */

/* Those of a group that are among the next n. (The instruction takes n modulo 256.) */
static inline __mmask8
first_lanes(uint32_t n)
{
	return (__mmask8)_bzhi_u32(0xff, n < GROUP ? n : GROUP);
}

/* The bytes of a group: pretoken i is at p + at[i], and 16 bytes are readable there. */
struct texts {
	const uint8_t *p;
	const size_t *at;
};

/* Room for a copy of those near the end of the text, or of a group that is not full. */
struct copy {
	size_t at[GROUP];
	uint8_t bytes[GROUP][16];
};

static void
copy_texts(struct texts *t, struct copy *copy, __m512i at, const uint8_t *end)
{
	_mm512_storeu_si512(copy->at, at);
	for (uint32_t i = 0; i < GROUP; i++) {
		const uint8_t *from = t->p + copy->at[i];
		const size_t room = (size_t)(end - from);
		const __mmask16 there = (__mmask16)_bzhi_u32(0xffff, room < 16 ? room : 16);

		_mm_storeu_si128((__m128i *)copy->bytes[i], _mm_maskz_loadu_epi8(there, from));
		copy->at[i] = 16 * i;
	}
	*t = (struct texts){copy->bytes[0], copy->at};
}

/* Keys of four pretokens. len[4 * half ..]: their lengths; longer than TOK_CACHE_SHORT: 16. */
static inline __m512i
four_keys(const struct texts *t, __m512i len, uint32_t half)
{
	const size_t *at = t->at + 4 * half;
	/* The place in a key; byte 15 is no text. */
	const __m512i place = _mm512_broadcast_i32x4(
		_mm_set_epi8(-1, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
	const __m512i lane =
		_mm512_set_epi64(0x1818181818181818, 0x1818181818181818, 0x1010101010101010,
			0x1010101010101010, 0x0808080808080808, 0x0808080808080808, 0, 0);
	const __mmask64 last = 0x8000800080008000;
	__m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(t->p + at[0])));
	__mmask64 text, too_long;

	x = _mm512_inserti64x2(x, _mm_loadu_si128((const __m128i *)(t->p + at[1])), 1);
	x = _mm512_inserti64x2(x, _mm_loadu_si128((const __m128i *)(t->p + at[2])), 2);
	x = _mm512_inserti64x2(x, _mm_loadu_si128((const __m128i *)(t->p + at[3])), 3);
	len = _mm512_permutexvar_epi8(
		_mm512_add_epi8(lane, _mm512_set1_epi8((char)(32 * half))), len);
	text = _mm512_cmplt_epu8_mask(place, len);
	too_long = _mm512_cmpgt_epu8_mask(len, _mm512_set1_epi8(TOK_CACHE_SHORT));
	x = _mm512_mask_mov_epi8(_mm512_maskz_mov_epi8(last, len), text, x);
	return _mm512_mask_mov_epi8(x, too_long & ~last, _mm512_set1_epi8(-1));
}

/* Hashes of four keys, each twice. */
static inline __m512i
four_hashes(const struct tok_cache *c, __m512i keys)
{
	const __m512i x = _mm512_mullo_epi64(
		keys, _mm512_broadcast_i64x2(_mm_loadu_si128((const __m128i *)c->multiplier)));

	return _mm512_add_epi64(x, _mm512_shuffle_epi32(x, _MM_PERM_BADC));
}

/* Keys and sets of pretokens k .. k + GROUP - 1, of which n - k are there. */
static inline void
make_keys(const struct tok_cache *c, struct tok_block *b, uint32_t k, uint32_t n, const uint8_t *p,
	const uint8_t *end)
{
	const __mmask8 some = first_lanes(n - k);
	const __m512i at = _mm512_maskz_loadu_epi64(some, b->start + k);
	const __m512i len =
		_mm512_min_epu64(_mm512_sub_epi64(_mm512_maskz_loadu_epi64(some, b->end + k), at),
			_mm512_set1_epi64(TOK_CACHE_SHORT + 1));
	const size_t room = (size_t)(end - p);
	__m512i low, high, sets;
	struct texts t = {p, b->start + k};
	struct copy copy;

	if (__builtin_expect(n - k < GROUP, 0) || __builtin_expect(room < 16, 0) ||
		__builtin_expect(
			_mm512_cmpgt_epu64_mask(at, _mm512_set1_epi64((long long)(room - 16))) != 0,
			0))
		copy_texts(&t, &copy, at, end);
	low = four_keys(&t, len, 0);
	high = four_keys(&t, len, 1);
	_mm512_store_si512(b->key[k], low);
	_mm512_store_si512(b->key[k + 4], high);
	sets = _mm512_permutex2var_epi64(four_hashes(c, low),
		_mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), four_hashes(c, high));
	sets = _mm512_srl_epi64(sets, _mm_cvtsi32_si128((int)c->set_shift));
	sets = _mm512_slli_epi64(sets, 6);
	_mm512_store_si512(
		b->set + k, _mm512_add_epi64(sets, _mm512_set1_epi64((long long)c->entry)));
}

/* Called a group later: the processor waits if it reads a part of what it has just written. */
static inline void
fetch_sets(const struct tok_block *b, uint32_t k)
{
	for (uint32_t i = 0; i < GROUP; i++)
		__builtin_prefetch(b->set[k + i]);
}

/* The first keys of four sets. */
static inline __m512i
four_first(struct tok_cache_entry *const set[4])
{
	__m512i x = _mm512_castsi128_si512(_mm_load_si128((const __m128i *)set[0]->key));

	x = _mm512_inserti64x2(x, _mm_load_si128((const __m128i *)set[1]->key), 1);
	x = _mm512_inserti64x2(x, _mm_load_si128((const __m128i *)set[2]->key), 2);
	return _mm512_inserti64x2(x, _mm_load_si128((const __m128i *)set[3]->key), 3);
}

/* Which pretokens of a group are the first of their sets. */
static inline uint32_t
are_first(const struct tok_block *b, uint32_t k)
{
	/* Of a key: all but the number of ids. */
	const __m512i bits = _mm512_broadcast_i32x4(
		_mm_set_epi64x((long long)(~0ull >> (64 - TOK_CACHE_N_SHIFT)), -1));
	/* (a ^ b) & bits */
	const __m512i low = _mm512_ternarylogic_epi64(
		four_first(b->set + k), _mm512_load_si512(b->key[k]), bits, 0x28);
	const __m512i high = _mm512_ternarylogic_epi64(
		four_first(b->set + k + 4), _mm512_load_si512(b->key[k + 4]), bits, 0x28);
	const uint32_t same = _mm512_kunpackb(
		_mm512_testn_epi64_mask(high, high), _mm512_testn_epi64_mask(low, low));

	return _pext_u32(same & same >> 1, 0x5555);
}

uint32_t
tok_find_avx512(const struct tok_cache *c, struct tok_block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end)
{
	const __m512i id = _mm512_set1_epi64(offsetof(struct tok_cache_entry, id));
	__m128i index = _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0);
	uint32_t missed = 0;

	if (n == 0)
		return 0;
	make_keys(c, b, 0, n, p, end);
	for (uint32_t k = GROUP; k < n; k += GROUP) {
		make_keys(c, b, k, n, p, end);
		fetch_sets(b, k - GROUP);
	}
	fetch_sets(b, (n - 1) / GROUP * GROUP);
	for (uint32_t k = 0; k < n; k += GROUP) {
		const uint32_t misses = ~are_first(b, k) & first_lanes(n - k);

		_mm512_store_si512(b->ids + k, _mm512_add_epi64(_mm512_load_si512(b->set + k), id));
		_mm_storeu_si128((__m128i *)(b->missed + missed),
			_mm_maskz_compress_epi16((__mmask8)misses, index));
		missed += (uint32_t)__builtin_popcount(misses);
		index = _mm_add_epi16(index, _mm_set1_epi16(GROUP));
	}
	return missed;
}

TOK_TARGET_END
#endif
