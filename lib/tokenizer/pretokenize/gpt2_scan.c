/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Borders of pretokens by bit arithmetic on blocks of up to 64 bytes. Bit i of a mask speaks of
 * byte i of the block; all bytes of a character carry its class, and a block ends between
 * characters.
 *
 *   text            I  '  v  e  .  S  e  t  .  .  n  o  w      (. is a blank)
 *   letter          1  0  1  1  0  1  1  1  0  0  1  1  1
 *   space           0  0  0  0  1  0  0  0  1  1  0  0  0
 *   same            0  0  0  1  0  0  1  1  0  0  0  1  1     class of the byte before
 *   after a blank   0  0  0  0  0  1  0  0  0  1  1  0  0
 *   begins, word    1  1  1  0  0  0  0  0  0  0  0  0  0     not space, not same, not after a
 * blank begins, space   0  0  0  0  1  0  0  0  1  1  0  0  0     first of a run, or last before a
 * word contraction           -  0  1                             'v cleared, what follows 've set
 */
#include "pretok.h"
#include "unicode/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define STARTS 16u
static_assert(TOK_SCAN_BLOCK % STARTS == 0, "rounded up, they fit where a block's do");

struct masks {
	uint64_t letter, number, space, blank, quote, high; /* high: bytes above 0x7f */
};

#ifdef __SSE2__
static inline uint64_t
in_range(__m128i x, char low, char high)
{
	/* unsigned x - low <= high - low */
	__m128i y = _mm_sub_epi8(x, _mm_set1_epi8(low));

	return (uint32_t)_mm_movemask_epi8(
		_mm_cmpeq_epi8(_mm_min_epu8(y, _mm_set1_epi8((char)(high - low))), y));
}

static inline struct masks
classify(const uint8_t *p)
{
	struct masks m = {0};

	for (unsigned int k = 0; k < 64; k += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(p + k));
		uint64_t blank = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8(' ')));

		m.letter |= in_range(_mm_or_si128(x, _mm_set1_epi8(0x20)), 'a', 'z') << k;
		m.number |= in_range(x, '0', '9') << k;
		m.space |= (in_range(x, '\t', '\r') | blank) << k;
		m.blank |= blank << k;
		m.quote |= (uint64_t)(uint32_t)_mm_movemask_epi8(
				   _mm_cmpeq_epi8(x, _mm_set1_epi8('\'')))
			   << k;
		m.high |= (uint64_t)(uint32_t)_mm_movemask_epi8(x) << k;
	}
	return m;
}
#else
static inline struct masks
classify(const uint8_t *p)
{
	struct masks m = {0};

	for (unsigned int k = 0; k < 64; k++) {
		uint64_t bit = 1ull << k;
		uint8_t c = p[k], lower = c | 0x20;

		m.letter |= lower >= 'a' && lower <= 'z' ? bit : 0;
		m.number |= c >= '0' && c <= '9' ? bit : 0;
		m.space |= c == ' ' || (c >= '\t' && c <= '\r') ? bit : 0;
		m.blank |= c == ' ' ? bit : 0;
		m.quote |= c == '\'' ? bit : 0;
		m.high |= c > 0x7f ? bit : 0;
	}
	return m;
}
#endif

/* Add the classes of the characters above 0x7f; inside: their bytes after the first. */
static void
classify_high(const struct tok_vocab *v, const uint8_t *p, struct masks *m, uint64_t *inside)
{
	uint64_t todo = m->high;

	while (todo != 0) {
		uint32_t i = (uint32_t)__builtin_ctzll(todo);
		uint32_t bytes = tok_utf8_length(p[i]);
		uint64_t bits = ((1ull << bytes) - 1) << i;
		const enum tok_cat cat = tok_cat_of(v, tok_utf8_decode(p + i, bytes));

		if (cat >= TOK_CAT_UPPER)
			m->letter |= bits;
		else if (cat == TOK_CAT_NUMBER)
			m->number |= bits;
		else if (cat == TOK_CAT_SPACE)
			m->space |= bits;
		*inside |= bits & ~(1ull << i);
		todo &= ~bits;
	}
}

/* Is the character at p white space? p is in bounds and between characters. */
static bool
space_at(const struct tok_vocab *v, const uint8_t *p)
{
	if (*p < 0x80)
		return *p == ' ' || (*p >= '\t' && *p <= '\r');
	return tok_cat_of(v, tok_utf8_decode(p, tok_utf8_length(*p))) == TOK_CAT_SPACE;
}

/* Bytes after the quote at p that are its contraction (1 or 2), 0: none, -1: cut by the end. */
static int
contraction(const uint8_t *p, const uint8_t *end, bool last)
{
	if (p + 1 == end)
		return last ? 0 : -1;
	switch (p[1]) {
	case 's':
	case 't':
	case 'm':
	case 'd':
		return 1;
	case 'r':
	case 'v':
	case 'l':
		if (p + 2 == end)
			return last ? 0 : -1;
		return p[2] == (p[1] == 'l' ? 'l' : 'e') ? 2 : 0;
	default:
		return 0;
	}
}

/* Clear the borders inside contractions and set those behind them; len: bytes of the block. */
static uint64_t
apply_contractions(struct tok_pretok_scan *s, uint32_t len, uint64_t begin, uint64_t quotes)
{
	/* The last two bits may belong to the next block: work in 128 bits. */
	unsigned __int128 clear = 0, set = 0;

	for (; quotes != 0; quotes &= quotes - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(quotes);
		int more = contraction(s->text + s->at + i, s->text + s->n, s->last);

		if (more < 0) {
			s->undecided = s->at + i;
		} else if (more > 0) {
			clear |= (unsigned __int128)1 << (i + 1);
			set |= (unsigned __int128)1 << (i + 1 + (uint32_t)more);
		}
	}
	s->clear = (uint64_t)(clear >> len);
	s->set = (uint64_t)(set >> len);
	return (begin & ~(uint64_t)clear) | (uint64_t)set;
}

uint32_t
tok_pretok_gpt2_scan(struct tok_pretok_scan *s, size_t *start)
{
	uint8_t tail[TOK_SCAN_BLOCK] = {0};
	const uint8_t *p = s->text + s->at;
	uint32_t len = TOK_SCAN_BLOCK, n, found;
	uint64_t valid, other, same, begin, end_space, quotes, inside = 0;
	struct masks m;

	/* 1. Take up to 64 bytes, ending between characters. */
	if (s->n - s->at < len) {
		len = (uint32_t)(s->n - s->at);
		memcpy(tail, p, len);
		p = tail;
	} else if (s->n - s->at > len) {
		while ((p[len] & 0xc0) == 0x80)
			len--;
	}
	valid = ~0ull >> (64 - len);

	/* 2. Classes. */
	m = classify(p);
	m.high &= valid;
	if (m.high != 0)
		classify_high(s->v, p, &m, &inside);
	m.letter &= valid;
	m.number &= valid;
	m.space &= valid;
	other = valid & ~(m.letter | m.number | m.space);

	/* 3. Words begin where the class changes, unless a blank in front belongs to them. */
	same = (m.letter & (m.letter << 1 | s->letter)) | (m.number & (m.number << 1 | s->number)) |
	       (other & (other << 1 | s->other));
	begin = valid & ~m.space & ~same & ~(m.blank << 1 | s->blank);

	/* 4. White space begins with its run, and with its last character where a word follows. */
	end_space = valid & ~m.space;
	end_space >>= 1;
	if (s->at + len < s->n && !space_at(s->v, s->text + s->at + len))
		end_space |= 1ull << (len - 1);
	end_space &= m.space;
	while (end_space & inside) /* from the last byte of that character to its first */
		end_space = (end_space & ~inside) | (end_space & inside) >> 1;
	begin |= end_space | (m.space & ~(m.space << 1 | s->space));

	/* 5. Contractions. */
	begin = (begin | s->set) & ~s->clear;
	s->set = s->clear = 0;
	quotes = m.quote & begin;
	if (quotes != 0)
		begin = apply_contractions(s, len, begin, quotes);
	begin &= valid;

	/* 6. What the next block needs to know. */
	len--;
	s->letter = m.letter >> len & 1;
	s->number = m.number >> len & 1;
	s->other = other >> len & 1;
	s->space = m.space >> len & 1;
	s->blank = m.blank >> len & 1;

	/* Some more than there are, within the room: how many is hard to guess. */
	found = (uint32_t)__builtin_popcountll(begin);
	for (n = 0; n < found; n += STARTS) {
		for (uint32_t i = 0; i < STARTS; i++, begin &= begin - 1)
			start[n + i] = s->at + (size_t)__builtin_ctzll(begin | 1ull << 63);
	}
	s->at += len + 1;
	return found;
}
