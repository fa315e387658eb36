/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of code points for NFC. Data in nfc_tables.c (generated). */
#pragma once

#include "inline.h"

/* Properties of a code point; 0 for most. */
#define TOK_NFC_CCC 0x3f   /* index of its combining class; 0: a starter */
#define TOK_NFC_CHECK 0x40 /* NFC_Quick_Check is not Yes */
#define TOK_NFC_OPEN 0x80  /* a starter that later characters may change */

/* A held character: its combining class << 21 | code point. */
#define TOK_NFC_CP 0x1fffffu
#define TOK_NFC_CP_BITS 21

#define TOK_NFC_PAIR_BITS 11
#define TOK_NFC_DECOMP_BITS 12
#define TOK_NFC_HASH 0x9e3779b97f4a7c15ull /* Knuth, TAOCP 6.4 */

/* By code point / 256: index of a page in tok_nfc_props. The first page is all zeros. */
extern const uint8_t tok_nfc_page[];
extern const uint8_t tok_nfc_props[];
extern const uint64_t tok_nfc_pair[];	/* first << 42 | second << 21 | composite; 0: free */
extern const uint64_t tok_nfc_decomp[]; /* code point << 24 | first part << 3 | parts; 0: free */
extern const uint32_t tok_nfc_part[];	/* held characters */

/* Hangul syllables follow from arithmetic (Unicode 16, section 3.12). */
enum {
	TOK_NFC_L = 0x1100,
	TOK_NFC_LS = 19,
	TOK_NFC_V = 0x1161,
	TOK_NFC_VS = 21,
	TOK_NFC_T = 0x11a7,
	TOK_NFC_TS = 28, /* U+11A7 itself stands for no trailing consonant */
	TOK_NFC_S = 0xac00,
	TOK_NFC_SS = TOK_NFC_LS * TOK_NFC_VS * TOK_NFC_TS,
};

/* The letters of a Hangul syllable. Returns their number, 2 or 3. */
TOK_INLINE uint32_t
tok_nfc_letters(uint32_t syllable, uint32_t letter[3])
{
	const uint32_t at = syllable - TOK_NFC_S, t = at % TOK_NFC_TS;

	letter[0] = TOK_NFC_L + at / (TOK_NFC_VS * TOK_NFC_TS);
	letter[1] = TOK_NFC_V + at / TOK_NFC_TS % TOK_NFC_VS;
	letter[2] = TOK_NFC_T + t;
	return t == 0 ? 2 : 3;
}

/* 0 for Hangul syllables: they are starters, and in no table. */
static inline uint32_t
tok_nfc_props_of(uint32_t cp)
{
	return tok_nfc_props[(uint32_t)tok_nfc_page[cp >> 8] << 8 | (cp & 255)];
}

/* Can later characters change this starter? A syllable without trailing consonant may get one. */
static inline int
tok_nfc_is_open(uint32_t cp)
{
	if (cp - TOK_NFC_S < TOK_NFC_SS)
		return (cp - TOK_NFC_S) % TOK_NFC_TS == 0;
	return (tok_nfc_props_of(cp) & TOK_NFC_OPEN) != 0;
}

/* Composite of two code points, or 0. */
static inline uint32_t
tok_nfc_compose(uint32_t first, uint32_t second)
{
	uint64_t key = (uint64_t)first << 21 | second;
	uint32_t i = (uint32_t)(key * TOK_NFC_HASH >> (64 - TOK_NFC_PAIR_BITS));

	if (first - TOK_NFC_L < TOK_NFC_LS && second - TOK_NFC_V < TOK_NFC_VS)
		return TOK_NFC_S +
		       ((first - TOK_NFC_L) * TOK_NFC_VS + second - TOK_NFC_V) * TOK_NFC_TS;
	if (first - TOK_NFC_S < TOK_NFC_SS && (first - TOK_NFC_S) % TOK_NFC_TS == 0 &&
		second - TOK_NFC_T - 1 < TOK_NFC_TS - 1)
		return first + second - TOK_NFC_T;
	for (; tok_nfc_pair[i] != 0; i = (i + 1) & ((1u << TOK_NFC_PAIR_BITS) - 1)) {
		if (tok_nfc_pair[i] >> 21 == key)
			return (uint32_t)tok_nfc_pair[i] & TOK_NFC_CP;
	}
	return 0;
}

/* Full canonical decomposition as held characters. NULL if there is none; Hangul has none here. */
static inline const uint32_t *
tok_nfc_decompose(uint32_t cp, uint32_t *n)
{
	uint32_t i = (uint32_t)(cp * TOK_NFC_HASH >> (64 - TOK_NFC_DECOMP_BITS));

	for (; tok_nfc_decomp[i] != 0; i = (i + 1) & ((1u << TOK_NFC_DECOMP_BITS) - 1)) {
		if (tok_nfc_decomp[i] >> 24 == cp) {
			*n = tok_nfc_decomp[i] & 7;
			return &tok_nfc_part[tok_nfc_decomp[i] >> 3 & 0x1fffff];
		}
	}
	return NULL;
}
