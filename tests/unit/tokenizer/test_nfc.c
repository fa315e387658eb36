/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Form C in pieces: examples cut in every way, what waits and for how long, the limit, pieces that
 * end against an inaccessible page. tests/golden/test_nfc.py compares with the reference.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mix.h>
#include "test.h"
#include "nfc_pieces.h"
#include "unicode/utf8.h"

#define TEXT_MAX 8192

static size_t
count_chars(const char *text)
{
	size_t n = 0;

	for (const char *p = text; *p != '\0'; p++)
		n += (*p & 0xc0) != 0x80;
	return n;
}

static void
assert_form_c(const char *text, const char *want)
{
	size_t n = strlen(text), chars = count_chars(text);
	uint8_t out[3 * TEXT_MAX];

	assert_true(chars >= 1 && chars <= 12);
	for (uint64_t bits = 0; bits < 1ull << (chars - 1); bits++) {
		size_t got = nfc_pieces((const uint8_t *)text, n, nfc_by_bits, &bits, out);

		if (got != strlen(want) || memcmp(out, want, got) != 0)
			fail_msg("\"%s\" cut as 0x%llx", text, (unsigned long long)bits);
	}
}

TEST(marks_compose_with_their_starter)
{
	assert_form_c("e\u0301", "\u00e9");
	assert_form_c("lie\u0301s", "li\u00e9s");
	assert_form_c("e\u0301\u0301", "\u00e9\u0301");
	assert_form_c("a\u0302\u0301-", "\u1ea5-");
	assert_form_c("\u212b\u2126K\u0338", "\u00c5\u03a9K\u0338");
	assert_form_c("<\u0338=\u0338", "\u226e\u2260");
	assert_form_c("1\u0301x", "1\u0301x");
	/* starters that compose with starters */
	assert_form_c("\u0cc6\u0cc2\u0cd5!", "\u0ccb!");
	assert_form_c("\u0dd9\u0dcf\u0dca", "\u0ddd");
	assert_form_c("\u1025\u102e\u102e", "\u1026\u102e");
	assert_form_c("\u304b\u3099\u304b", "\u304c\u304b");
	/* a mark of the same class in between blocks, one of a lower class does not, a starter does
	 */
	assert_form_c("u\u0305\u0301", "u\u0305\u0301");
	assert_form_c("u\u0316\u0301", "\u00fa\u0316");
	assert_form_c("e!\u0301", "e!\u0301");
}

TEST(marks_are_put_in_order)
{
	assert_form_c("e\u0301\u0323", "\u1eb9\u0301");
	assert_form_c("\u00e9\u0323", "\u1eb9\u0301");
	assert_form_c("q\u0301\u0323\u0301\u0316", "q\u0323\u0316\u0301\u0301");
	assert_form_c("\u1e69\u031b", "\u1e69\u031b"); /* composes over it */
	/* none of which composes with anything */
	assert_form_c("x\u0305\u0316", "x\u0316\u0305");
	/* without a starter */
	assert_form_c("\u0301\u0323", "\u0323\u0301");
	assert_form_c("\u0301", "\u0301");
	assert_form_c("\n\u0301\u0323e\u0301", "\n\u0323\u0301\u00e9");
	/* excluded from composition; of two marks; of three parts */
	assert_form_c("\u0958\u0f73", "\u0915\u093c\u0f71\u0f72");
	assert_form_c("a\u0344", "\u00e4\u0301");
	assert_form_c("\U0001d160\u0301", "\U0001d158\U0001d165\U0001d16e\u0301");
	/* two starters that compose with nothing */
	assert_form_c("\u0f43\u0f43\u0f71!", "\u0f42\u0fb7\u0f42\u0fb7\u0f71!");
}

TEST(hangul_is_composed)
{
	assert_form_c("\u1112\u1161\u11ab\u1100\u1173\u11af", "\ud55c\uae00");
	assert_form_c("\uac00\u11a8\u11a8", "\uac01\u11a8");
	assert_form_c("\uac01\u11a8", "\uac01\u11a8");
	assert_form_c("\uac00\u11a7", "\uac00\u11a7");
	assert_form_c("\u1100\u1100\u1161", "\u1100\uac00");
	assert_form_c("\u1100\u0301\u1161", "\u1100\u0301\u1161");
	assert_form_c("\u1161\u11a8", "\u1161\u11a8");
	assert_form_c("\u1113\u1161\u1112\u1176", "\u1113\u1161\u1112\u1176");
}

TEST(waiting_ends_with_the_next_starter)
{
	static const struct {
		const char *text;
		size_t waits; /* bytes, at its end */
	} cases[] = {
		{"word", 1},
		{"word.", 0},
		{"12", 0},
		{"e\u0301", 3},
		{"e\u0301\n", 0},
		{"\n\u0301", 3},
		{"\u1100", 3},
		{"\u1100\u1161", 6},
		{"\u1100\u1161\u11a8", 0},
		{"\uac00", 3},
		{"\uac01", 0},
		{"\u0f43", 0},
		{"\uf900", 0},
		{"\u304b", 3},
		{"\u4e2d", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *text = (const uint8_t *)cases[i].text;
		struct tok_nfc_piece piece = {text, text + strlen(cases[i].text), false};
		struct tok_nfc nfc;
		struct tok_nfc_span span;

		tok_nfc_init(&nfc, false);
		while (tok_nfc_next(&nfc, &piece, &span) == TOK_NFC_SPAN)
			;
		if (tok_nfc_waiting(&nfc) != cases[i].waits)
			fail_msg("\"%s\": %zu bytes wait", cases[i].text, tok_nfc_waiting(&nfc));
	}
}

TEST(text_in_form_c_is_not_copied)
{
	static const char text[] =
		"The quick brown fox \u2014 na\u00efve \u4e2d\u6587 \ud55c\uae00 "
		"\u041c\u043e\u0439 \u05d1\u05bc \U0001f600 jumps over it";
	const uint8_t *p = (const uint8_t *)text;
	struct tok_nfc_piece piece = {p, p + sizeof(text) - 1, true};
	struct tok_nfc nfc;
	struct tok_nfc_span span;

	tok_nfc_init(&nfc, false);
	assert_int_equal(tok_nfc_next(&nfc, &piece, &span), TOK_NFC_SPAN);
	assert_ptr_equal(span.p, p);
	assert_int_equal(span.n, sizeof(text) - 1);
	assert_int_equal(tok_nfc_next(&nfc, &piece, &span), TOK_NFC_DONE);
}

/* A starter with marks of two kinds in turn, uncut and cut: the same limit. */
TEST(limit_is_the_same_however_the_text_is_cut)
{
	static const struct {
		const char *starter, *even, *odd;
		size_t own; /* marks that the starter decomposes to */
	} cases[] = {
		{"", "\u0301", "\u0301", 0},
		{"", "\u0316", "\u0301", 0},
		{"b", "\u0305", "\u0305", 0},
		{"1", "\u0305", "\u0316", 0},
		{"e", "\u0301", "\u0323", 0},
		{"\u4e2d", "\u0305", "\u0305", 0},
		{"\u00e9", "\u0305", "\u0305", 1},
		{"\u1f82", "\u0305", "\u0305", 3},
		{"\uac01", "\u0305", "\u0305", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t marks = TOK_NFC_MARKS_MAX - 8; marks < TOK_NFC_MARKS_MAX + 8; marks++) {
			uint64_t bits = 0x8000000100000101ull;
			uint8_t out[3 * TEXT_MAX];
			char text[TEXT_MAX];
			size_t n = (size_t)sprintf(text, "ab%s", cases[i].starter), got[3];

			if (i == 0)
				n = 0;
			for (size_t k = 0; k < marks; k++)
				n += (size_t)sprintf(
					text + n, "%s", k % 2 ? cases[i].odd : cases[i].even);
			n += (size_t)sprintf(text + n, "x");
			got[0] = nfc_pieces((uint8_t *)text, n, nfc_uncut, NULL, out);
			got[1] = nfc_pieces((uint8_t *)text, n, nfc_each, NULL, out);
			got[2] = nfc_pieces((uint8_t *)text, n, nfc_by_bits, &bits, out);
			assert_int_equal(got[0], got[1]);
			assert_int_equal(got[0], got[2]);
			if (marks + cases[i].own > TOK_NFC_MARKS_MAX)
				assert_true(got[0] == NFC_FULL);
			else
				assert_true(got[0] < NFC_BROKEN);
		}
	}
}

/* Two kinds in turn, fed in two pieces: all of the lower class come first. */
TEST(a_whole_text_has_any_number_of_marks)
{
	static char text[TEXT_MAX], want[TEXT_MAX];

	for (size_t half = TOK_NFC_MARKS_MAX / 2 - 1; half < TEXT_MAX / 4; half += half) {
		const size_t n = 4 * half;
		struct tok_nfc_piece piece = {(uint8_t *)text, (uint8_t *)text + n / 2, false};
		struct tok_nfc_span span;
		struct tok_nfc nfc;

		for (size_t i = 0; i < half; i++) {
			memcpy(text + 4 * i, "\u0301\u0323", 4);
			memcpy(want + 2 * i, "\u0323", 2);
			memcpy(want + n / 2 + 2 * i, "\u0301", 2);
		}
		tok_nfc_init(&nfc, false);
		tok_nfc_open_whole(&nfc);
		assert_int_equal(tok_nfc_next(&nfc, &piece, &span), TOK_NFC_DONE);
		piece.end += n / 2;
		piece.last = true;
		assert_int_equal(tok_nfc_next(&nfc, &piece, &span), TOK_NFC_SPAN);
		assert_int_equal(span.n, n);
		assert_memory_equal(span.p, want, n);
		tok_nfc_close_whole(&nfc);
	}
}

static uint32_t
random_below(uint64_t *state, uint32_t below)
{
	return (uint32_t)(dice_throw(state) % below);
}

static bool
at_random(void *state, size_t i, size_t at)
{
	return random_below(state, 40) == 0;
}

/* Long runs of all kinds, that blocks begin and end anywhere; each piece lies before a page that
 * must not be read. */
TEST(nothing_beyond_the_piece_is_read)
{
	static const char *const runs[] = {"a", "\u00e9", "\u0439", "\u4e2d", "\u3042", "\uac01",
		"\uac00", "\U0001f600", "e\u0301", "\u1100\u1161", "\u0301", "\u0323", "\u0958"};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t seed = 3;

	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + page, page, PROT_NONE), 0);
	for (int round = 0; round < 4000; round++) {
		char text[1024];
		uint8_t want[3 * sizeof(text)], out[3 * sizeof(text)], *p;
		size_t n = 0, n_want, got;

		for (uint32_t k = random_below(&seed, 8); k > 0; k--) {
			const char *what = runs[random_below(&seed, sizeof(runs) / sizeof(*runs))];

			for (uint32_t times = 1 + random_below(&seed, 30); times > 0; times--)
				n += (size_t)sprintf(text + n, "%s", what);
		}
		p = memcpy(map + page - n, text, n);
		n_want = nfc_pieces(p, n, nfc_each, NULL, want);
		got = nfc_pieces(p, n, round % 2 ? nfc_uncut : at_random, &seed, out);
		assert_int_equal(got, n_want);
		assert_true(got < NFC_BROKEN);
		assert_memory_equal(out, want, got);
	}
	munmap(map, 2 * page);
}
