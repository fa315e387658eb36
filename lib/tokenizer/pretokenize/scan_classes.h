/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Masks of the character classes of a block of 64 bytes. The kernels, scan_*.c, include this file
 * after defining these for their instruction set:
 *
 *   bytes64                  64 bytes
 *   where64                  a set of the 64: one bit or one byte for each
 *   struct packing           how bits of a mask are packed
 *   load64(p, n)             the first n bytes at p, at most 64, and zeros
 *   equal64(x, c)            x == c
 *   range64(x, low, high)    low <= x <= high
 *   both64(a, b), bits64(a)  intersection; as a mask
 *   letters64(x)             ASCII letters
 *   pick64(y, a, i, page)    page[i & 63] where a is, y elsewhere
 *   plane64(x, k)            mask of bit k of each byte
 *   look64(x, table)         table[x] of 128 where x is ASCII
 *   meet64(a, b)             mask of the bytes where (a & b) != 0
 *   prepare(m)               for the bits that m has:
 *   pack(&packing, x)        these bits of x, moved together at the low end
 *   unpack(&packing, x)      the reverse
 *   select_starts(s, e, c)   s has the starts and e the ends of runs, which alternate; returns the
 *                            starts of the runs whose end is in c
 *   write_starts(start, at, m)  writes at + i for each bit i of m; may write up to 64 entries
 */
#pragma once

#include "pretok.h"
#include "unicode/utf8.h"

/* Each family is compiled separately, so the compiler drops the masks that it does not use. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/*
 * Bit i of a mask stands for the i-th character that begins in the block. A character belongs to
 * the block in which it begins, even if it ends in the next one.
 */
struct block {
	uint64_t valid;
	uint64_t letter, upper, lower, mark, number, space, symbol; /* categories */
	uint64_t newline, blank, quote, slash, ascii;
	uint64_t control;   /* ASCII control characters */
	uint64_t ideograph; /* DeepSeek's */
	uint64_t han;	    /* U+4E00-9FFF */
	uint32_t n;	    /* characters */
	bool packed;	    /* some have several bytes */
	struct packing packing;
};

/* Categories of the 64 code points from cp on, by their last byte. */
static inline const uint8_t *
categories(const struct tok_vocab *v, uint32_t cp)
{
	return v->cat + ((uint32_t)v->cat_page[cp >> 8] << 8 | (cp & 0xc0));
}

/* U+3040-30FF, U+4E00-9FA5 at their first bytes; x1 and x2: the following bytes. */
ALWAYS_INLINE uint64_t
ideographs(bytes64 x, bytes64 x1, bytes64 x2)
{
	return bits64(both64(equal64(x, 0xe3), range64(x1, 0x81, 0x83))) |
	       bits64(both64(equal64(x, 0xe4), range64(x1, 0xb8, 0xbf))) |
	       bits64(range64(x, 0xe5, 0xe8)) |
	       bits64(both64(equal64(x, 0xe9), range64(x1, 0x80, 0xbd))) |
	       bits64(both64(both64(equal64(x, 0xe9), equal64(x1, 0xbe)), range64(x2, 0x80, 0xa5)));
}

/* The same for most ideographs and Hangul: U+4E00-9FFF, U+AC00-D77F are letters without case. */
ALWAYS_INLINE uint64_t
plain_letters(bytes64 x, bytes64 x1)
{
	return bits64(range64(x, 0xe5, 0xe9)) | bits64(range64(x, 0xeb, 0xec)) |
	       bits64(both64(equal64(x, 0xe4), range64(x1, 0xb8, 0xbf))) |
	       bits64(both64(equal64(x, 0xea), range64(x1, 0xb0, 0xbf))) |
	       bits64(both64(equal64(x, 0xed), range64(x1, 0x80, 0x9d)));
}

/*
 * Category bits of characters above 0x7f, at their first bytes, 64 code points at a time. A text
 * uses few such pages. Most ideographs need no page.
 */
ALWAYS_INLINE void
high_categories(const struct tok_vocab *v, const uint8_t *p, bytes64 x, bytes64 x1, bytes64 x2,
	uint64_t plane[3])
{
	const uint64_t plain = plain_letters(x, x1);
	bytes64 cat = load64(p, 0);
	uint64_t two = bits64(range64(x, 0xc2, 0xdf));
	uint64_t three = bits64(range64(x, 0xe0, 0xef)) & ~plain;
	uint64_t four = bits64(range64(x, 0xf0, 0xff));

	while (two != 0) {
		const uint8_t lead = p[__builtin_ctzll(two)];
		const where64 same = equal64(x, lead);

		cat = pick64(cat, same, x1, categories(v, (lead & 0x1fu) << 6));
		two &= ~bits64(same);
	}
	while (three != 0) {
		const uint8_t *c = p + __builtin_ctzll(three);
		const where64 same = both64(equal64(x, c[0]), equal64(x1, c[1]));

		cat = pick64(
			cat, same, x2, categories(v, (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6));
		three &= ~bits64(same);
	}
	for (uint32_t i = 0; i < 3; i++)
		plane[i] = plane64(cat, i) | plain;
	for (; four != 0; four &= four - 1) {
		const uint32_t at = (uint32_t)__builtin_ctzll(four);
		const uint64_t c = tok_cat_of(v, tok_utf8_decode(p + at, 4));

		for (uint32_t i = 0; i < 3; i++)
			plane[i] |= (c >> i & 1) << at;
	}
}

ALWAYS_INLINE void
add_high(struct block *b, const struct tok_vocab *v, const uint8_t *p, size_t n, bytes64 x)
{
	const bytes64 x1 = load64(p + 1, n - 1), x2 = load64(p + 2, n < 2 ? 0 : n - 2);
	uint64_t c[3];

	high_categories(v, p, x, x1, x2, c);
	b->upper |= c[2] & ~c[1] & c[0];
	b->lower |= c[2] & c[1] & ~c[0];
	b->letter |= c[2] & (c[1] | c[0]);
	b->space |= c[2] & ~c[1] & ~c[0];
	b->number |= ~c[2] & c[1] & c[0];
	b->symbol |= ~c[2] & c[1] & ~c[0];
	b->mark = ~c[2] & ~c[1] & c[0];
	b->ideograph = ideographs(x, x1, x2);
	b->han = plain_letters(x, x1) & bits64(range64(x, 0xe4, 0xe9));

	b->packing = prepare(b->valid);
	b->upper = pack(&b->packing, b->upper);
	b->lower = pack(&b->packing, b->lower);
	b->letter = pack(&b->packing, b->letter);
	b->space = pack(&b->packing, b->space);
	b->number = pack(&b->packing, b->number);
	b->symbol = pack(&b->packing, b->symbol);
	b->mark = pack(&b->packing, b->mark);
	b->ideograph = pack(&b->packing, b->ideograph);
	b->han = pack(&b->packing, b->han);
	b->control = pack(&b->packing, b->control);
	b->newline = pack(&b->packing, b->newline);
	b->blank = pack(&b->packing, b->blank);
	b->quote = pack(&b->packing, b->quote);
	b->slash = pack(&b->packing, b->slash);
	b->ascii = pack(&b->packing, b->ascii);
	b->n = (uint32_t)__builtin_popcountll(b->valid);
	b->valid = b->n == 0 ? 0 : ~0ull >> (64 - b->n);
	b->packed = true;
}

/* Classify the n >= 1 bytes at p, at most one block. */
ALWAYS_INLINE void
classify(struct block *b, const struct tok_vocab *v, const uint8_t *p, size_t n)
{
	const bytes64 x = load64(p, n);
	const uint64_t high = bits64(range64(x, 0x80, 0xff));

	b->n = n < 64 ? (uint32_t)n : 64;
	b->valid = ~0ull >> (64 - b->n);
	b->letter = bits64(letters64(x));
	b->upper = bits64(range64(x, 'A', 'Z'));
	b->lower = b->letter & ~b->upper;
	b->number = bits64(range64(x, '0', '9'));
	b->blank = bits64(equal64(x, ' '));
	b->space = bits64(range64(x, '\t', '\r')) | b->blank;
	b->newline = bits64(equal64(x, '\n')) | bits64(equal64(x, '\r'));
	b->quote = bits64(equal64(x, '\''));
	b->slash = bits64(equal64(x, '/'));
	b->ascii = b->valid & ~high;
	b->control = b->valid & (bits64(range64(x, 0, 0x1f)) | bits64(equal64(x, 0x7f)));
	b->symbol = b->ascii & ~(b->control | b->letter | b->number | b->space);
	b->mark = b->ideograph = b->han = 0;
	b->packed = false;
	if (high != 0) {
		b->valid &= ~bits64(range64(x, 0x80, 0xbf));
		add_high(b, v, p, n, x);
	}
}
