/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Borders by the kernels of each instruction set against the stepper, for every family, and BERT's
 * against their definition: random texts over characters of all classes, in runs that cross blocks,
 * whole and as pieces that end anywhere. Well-formed UTF-8 by the kernels against tok_utf8_scan.
 * TOK_SCAN_ROUNDS is the number of texts.
 */

#include <stdlib.h>

#include "test.h"
#include "isa/kernels.h"
#include "pretokenize/names.h"
#include "pretokenize/pretok.h"
#include "small_vocab.h"
#include "unicode/utf8.h"

#define TEXT_MAX 600

static const char *const pieces[] = {"'", "'s", "'re", "'l", "'ll", "'v", "'ve", "'D", "'\xc5\xbf",
	"'RE", "v", "r", "e", "l", "s", " ", "  ", "\n", "\t", "\r\n", "\r", "/", "\n/", ".\n", "a",
	"bc", " the", "A", "BC", "Ab", "1", "23", "4567", "!", "...", "_", "\x01", "\x7f", "Z",
	/* white space: U+3000, U+00A0, U+0085, U+2028 */
	"\xe3\x80\x80", "\xc2\xa0", "\xc2\x85", "\xe2\x80\xa8",
	/* numbers: superscript two, Arabic-Indic, circled, mathematical */
	"\xc2\xb2", "\xd9\xa3", "\xe2\x91\xa0", "\xf0\x9d\x9f\x8e",
	/* letters: small, capital, title case, caseless, modifier, of four bytes */
	"\xc3\xa9", "\xc3\x89", "\xd0\xb6", "\xd0\x96", "\xc7\x85", "\xd7\x90", "\xca\xb0",
	"\xe4\xb8\xad", "\xe9\xbe\xa5", "\xe9\xbe\xa6", "\xea\xb0\x80", "\xe1\xba\xa0",
	"\xf0\x90\x90\x80", "\xf0\xa0\x80\x80",
	/* kana, its marks, its middle dot, unassigned */
	"\xe3\x81\x82", "\xe3\x82\xa2", "\xe3\x82\x99", "\xe3\x82\x9b", "\xe3\x83\xbb",
	"\xe3\x81\x80",
	/* marks */
	"\xcc\x81", "\xef\xb8\x8f", "\xe0\xa4\xbe", "\xf0\x9d\x85\xa5",
	/* symbols, unassigned, soft hyphen */
	"\xe3\x80\x82", "\xe2\x80\x94", "\xf0\x9f\x98\x80", "\xc2\xab", "\xcd\xb8", "\xc2\xad"};
#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

/* A text of few of the pieces, each some times in a row, now and then very often. */
static uint32_t
random_text(uint64_t *seed, uint8_t *text)
{
	const uint32_t kinds = 1 + small_random(seed, 12), count = small_random(seed, 80);
	const uint32_t max = small_random(seed, TEXT_MAX - 8);
	const char *some[12];
	uint32_t n = 0;

	for (uint32_t i = 0; i < kinds; i++)
		some[i] = pieces[small_random(seed, N_PIECES)];
	for (uint32_t i = 0; i < count; i++) {
		const char *piece = some[small_random(seed, kinds)];
		const uint32_t len = (uint32_t)strlen(piece);
		uint32_t times = small_random(seed, 40) == 0 ? small_random(seed, 150)
							     : 1 + small_random(seed, 4) / 3;

		for (; times > 0 && n + len <= max; times--, n += len)
			memcpy(text + n, piece, len);
	}
	return n;
}

/* All starts of a piece to start[]. Returns their number. */
static uint32_t
scan_all(tok_scan_kernel *scan, const struct tok_vocab *v, const uint8_t *p, size_t n, bool last,
	size_t *start)
{
	const uint32_t room = TOK_SCAN_BLOCK << n % 4; /* for one block, or for several */
	struct tok_pretok_scan s = {.v = v, .text = p, .n = n, .last = last};
	uint32_t found = 0;

	while (s.at < n)
		found += scan(&s, start + found, room);
	assert_int_equal(s.at, n);
	return found;
}

static void
check(const struct tok_vocab *v, const uint8_t *p, size_t n, bool last)
{
	static size_t want[TEXT_MAX + TOK_SCAN_BLOCK], got[TEXT_MAX + TOK_SCAN_BLOCK];
	/* Allocated, so that a sanitizer sees what is read beyond the piece. */
	uint8_t *const text = malloc(n + 1);
	uint32_t n_want, n_got;

	assert_non_null(text);
	memcpy(text, p, n);
	n_want = scan_all(tok_pretok_step_scan, v, text, n, last, want);
	n_got = scan_all(v->kernels->scan, v, text, n, last, got);
	if (n_got != n_want || memcmp(want, got, n_want * sizeof(*want)) != 0) {
		uint32_t i = 0;

		while (i < n_want && i < n_got && want[i] == got[i])
			i++;
		for (size_t k = 0; k < n; k++)
			print_message("%02x%s", text[k], k % 32 == 31 ? "\n" : " ");
		fail_msg("%s, %s, %zu bytes%s: start %u of %u is %zu, expected %zu of %u",
			tok_pretok_name(v->pretok), v->kernels->isa, n, last ? "" : " that go on",
			i, n_got, i < n_got ? got[i] : n, i < n_want ? want[i] : n, n_want);
	}
	free(text);
}

/* ---- BERT ---- */

/* Categories of a text's characters as of a cleaned text: bert_norm.h. */
static void
make_bert(struct tok_vocab *v, bool han_alone)
{
	static uint8_t cat[2][TOK_CODE_POINTS];
	static uint16_t page[TOK_CODE_POINTS / 256];

	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		const enum tok_cat was = tok_cat_of(v, cp);
		const bool han = cp >= 0x4e00 && cp <= 0x9fff;

		page[cp >> 8] = (uint16_t)(cp >> 8);
		cat[han_alone][cp] =
			(uint8_t)(was == TOK_CAT_SPACE && cp != '\v' && cp != '\f' ? TOK_CAT_SPACE
				  : was == TOK_CAT_SYMBOL || (han && han_alone)	   ? TOK_CAT_SYMBOL
										   : TOK_CAT_OTHER);
	}
	v->cat = cat[han_alone];
	v->cat_page = page;
	v->pretok = TOK_PRETOK_BERT;
}

/* The definition: starts and ends of words, as far as both are known. Returns the starts. */
static uint32_t
find_words(const struct tok_vocab *v, const uint8_t *p, size_t n, size_t *start, size_t *end,
	uint32_t *n_ends)
{
	enum tok_cat before = TOK_CAT_SPACE;
	uint32_t n_starts = 0;

	*n_ends = 0;
	for (size_t at = 0; at < n;) {
		const uint32_t len = tok_utf8_length(p[at]);
		const enum tok_cat cat = tok_cat_of(v, tok_utf8_decode(p + at, len));

		if (before != TOK_CAT_SPACE && (cat != TOK_CAT_OTHER || before != TOK_CAT_OTHER))
			end[(*n_ends)++] = at;
		if (cat != TOK_CAT_SPACE && (cat != TOK_CAT_OTHER || before != TOK_CAT_OTHER))
			start[n_starts++] = at;
		before = cat;
		at += len;
	}
	return n_starts;
}

static void
check_bert(const struct tok_vocab *v, const uint8_t *p, size_t n)
{
	static size_t want[2][TEXT_MAX + TOK_SCAN_BLOCK], got[2][TEXT_MAX + TOK_SCAN_BLOCK];
	uint8_t *const text = malloc(n + 1);
	const uint32_t room = TOK_SCAN_BLOCK << n % 4;
	struct tok_pretok_scan s = {.v = v, .text = text, .n = n, .end = got[1]};
	uint32_t n_starts, n_ends, found = 0;

	assert_non_null(text);
	memcpy(text, p, n);
	n_starts = find_words(v, text, n, want[0], want[1], &n_ends);
	while (s.at < n)
		found += v->kernels->scan(&s, got[0] + found, room);
	if (found != n_starts || s.n_ends != n_ends ||
		memcmp(want[0], got[0], found * sizeof(**got)) != 0 ||
		memcmp(want[1], got[1], n_ends * sizeof(**got)) != 0) {
		for (size_t k = 0; k < n; k++)
			print_message("%02x%s", text[k], k % 32 == 31 ? "\n" : " ");
		fail_msg("bert, %s, %zu bytes: %u starts and %u ends, expected %u and %u",
			v->kernels->isa, n, found, s.n_ends, n_starts, n_ends);
	}
	free(text);
}

/* ---- UTF-8 ---- */

/* The text with some bytes replaced. What the kernel takes is whole; few bytes are left to the
 * scan after it. */
static void
check_utf8(const struct tok_kernels *k, uint64_t *seed, const uint8_t *p, size_t n)
{
	uint8_t *const text = malloc(n + 1);
	struct tok_utf8_span span;
	size_t whole;

	assert_non_null(text);
	memcpy(text, p, n);
	for (uint32_t i = small_random(seed, 3); n > 0 && i > 0; i--) {
		static const uint8_t odd[] = {0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
			0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 'a'};

		text[small_random(seed, (uint32_t)n)] = odd[small_random(seed, sizeof(odd))];
	}
	span = tok_utf8_scan(text, n);
	whole = k->utf8(text, n);
	if (whole > span.valid || span.valid - whole >= TOK_SCAN_BLOCK + 3 ||
		(whole < n && (text[whole] & 0xc0) == 0x80 && whole != span.valid))
		fail_msg("%s: %zu of %zu bytes, expected up to %zu", k->isa, whole, n, span.valid);
	free(text);
}

TEST(kernels_equal_the_stepper)
{
	static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};
	const char *given = getenv("TOK_SCAN_ROUNDS");
	const long rounds = given != NULL ? atol(given) : 20000;
	uint64_t seed = given != NULL ? (uint64_t)atol(given) : 5;
	const struct tok_kernels *kernels[4];
	struct small_vocab sv[TOK_PRETOK_LAST + 1];
	struct tok_vocab bert[2];
	struct tok_error err;
	uint32_t n_sets = 0;

	for (uint32_t i = 0; i < 4; i++) {
		setenv("TOK_ISA", sets[i], 1);
		kernels[n_sets] = tok_kernels_choose(&err);
		if (kernels[n_sets] != NULL)
			n_sets++;
		else
			print_message("# not tested: %s\n", err.text);
	}
	unsetenv("TOK_ISA");
	for (enum tok_pretok kind = TOK_PRETOK_GPT2; kind <= TOK_PRETOK_LAST; kind++)
		small_vocab_of(&sv[kind], &seed, "ab", 5, kind, 0);
	bert[0] = bert[1] = *sv[TOK_PRETOK_GPT2].v;
	make_bert(&bert[0], false);
	make_bert(&bert[1], true);
	for (long round = 0; round < rounds; round++) {
		uint8_t text[TEXT_MAX];
		const uint32_t n = random_text(&seed, text);
		uint32_t end = small_random(&seed, n + 1);

		while (end > 0 && end < n && (text[end] & 0xc0) == 0x80)
			end--;
		for (enum tok_pretok kind = TOK_PRETOK_GPT2; kind <= TOK_PRETOK_LAST; kind++) {
			for (uint32_t i = 0; i < n_sets; i++) {
				sv[kind].v->kernels = kernels[i];
				check(sv[kind].v, text, n, true);
				check(sv[kind].v, text, end, false);
			}
		}
		for (uint32_t i = 0; i < n_sets; i++) {
			bert[round % 2].kernels = kernels[i];
			check_bert(&bert[round % 2], text, n);
			check_utf8(kernels[i], &seed, text, n);
		}
	}
	for (enum tok_pretok kind = TOK_PRETOK_GPT2; kind <= TOK_PRETOK_LAST; kind++)
		small_vocab_free(&sv[kind]);
}
