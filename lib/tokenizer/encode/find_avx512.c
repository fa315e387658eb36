/* SPDX-License-Identifier: BSD-3-Clause */
/* Short pretokens in the cache by AVX-512: keys and hashes four at a time. Hot path. */
#ifdef __x86_64__
#include "isa/target_avx512.h"

#include "block.h"
#include "isa/kernels.h"

#define GROUP 8 /* pretokens */

/* Keys of four pretokens, at p + at[i], where 16 bytes are readable. len[4 * half ..]: their
 * lengths; longer than TOK_CACHE_SHORT: 16. */
static inline __m512i
four_keys(const uint8_t *p, const size_t *at, __m512i len, uint32_t half)
{
	/* The place in a key; byte 15 is no text. */
	const __m512i place = _mm512_broadcast_i32x4(
		_mm_set_epi8(-1, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
	const __m512i lane =
		_mm512_set_epi64(0x1818181818181818, 0x1818181818181818, 0x1010101010101010,
			0x1010101010101010, 0x0808080808080808, 0x0808080808080808, 0, 0);
	const __mmask64 last = 0x8000800080008000;
	__m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(p + at[0])));
	__mmask64 text, too_long;

	x = _mm512_inserti64x2(x, _mm_loadu_si128((const __m128i *)(p + at[1])), 1);
	x = _mm512_inserti64x2(x, _mm_loadu_si128((const __m128i *)(p + at[2])), 2);
	x = _mm512_inserti64x2(x, _mm_loadu_si128((const __m128i *)(p + at[3])), 3);
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

/* Keys and sets of pretokens k .. k + GROUP - 1. */
static inline void
make_keys(const struct tok_cache *c, struct tok_block *b, uint32_t k, const uint8_t *p)
{
	const size_t *at = b->start + k;
	const __m512i len = _mm512_min_epu64(
		_mm512_sub_epi64(_mm512_loadu_si512(b->end + k), _mm512_loadu_si512(at)),
		_mm512_set1_epi64(TOK_CACHE_SHORT + 1));
	const __m512i low = four_keys(p, at, len, 0), high = four_keys(p, at + 4, len, 1);
	__m512i sets;

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

/* How many of n pretokens are in groups, in which 16 bytes of each are readable. */
static inline uint32_t
in_groups(const struct tok_block *b, uint32_t n, size_t room)
{
	n -= n % GROUP;
	while (n > 0 && room - b->start[n - 1] < 16)
		n -= GROUP;
	return n;
}

/* The key and the set of a pretoken: no other byte than its own is read. */
static inline void
make_key(const struct tok_cache *c, struct tok_block *b, uint32_t k, const uint8_t *p)
{
	const size_t len = b->end[k] - b->start[k];
	const bool fits = len <= TOK_CACHE_SHORT;
	const __m128i *rest =
		(const __m128i *)tok_cache_mask[fits ? len : TOK_CACHE_SHORT + 1].rest;
	const __mmask16 text = (__mmask16)_bzhi_u32(0xffff, fits ? (uint32_t)len : 0);

	_mm_store_si128((__m128i *)b->key[k],
		_mm_mask_loadu_epi8(_mm_load_si128(rest), text, p + b->start[k]));
	b->set[k] = tok_cache_set(c, b->key[k]);
	__builtin_prefetch(b->set[k]);
}

uint32_t
tok_find_avx512(const struct tok_cache *c, struct tok_block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end)
{
	const __m512i id = _mm512_set1_epi64(offsetof(struct tok_cache_entry, id));
	const uint32_t groups = in_groups(b, n, (size_t)(end - p));
	__m128i index = _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0);
	uint32_t missed = 0;

	for (uint32_t k = 0; k < groups; k += GROUP) {
		make_keys(c, b, k, p);
		if (k > 0)
			fetch_sets(b, k - GROUP);
	}
	if (groups > 0)
		fetch_sets(b, groups - GROUP);
	for (uint32_t k = groups; k < n; k++)
		make_key(c, b, k, p);
	for (uint32_t k = 0; k < groups; k += GROUP) {
		const uint32_t misses = ~are_first(b, k) & 0xff;

		_mm512_store_si512(b->ids + k, _mm512_add_epi64(_mm512_load_si512(b->set + k), id));
		_mm_storeu_si128((__m128i *)(b->missed + missed),
			_mm_maskz_compress_epi16((__mmask8)misses, index));
		missed += (uint32_t)__builtin_popcount(misses);
		index = _mm_add_epi16(index, _mm_set1_epi16(GROUP));
	}
	for (uint32_t k = groups; k < n; k++) {
		b->ids[k] = b->set[k]->id;
		b->missed[missed] = (uint16_t)k;
		missed += tok_cache_differs(b->set[k], b->key[k]);
	}
	return missed;
}

TOK_TARGET_END
#endif
