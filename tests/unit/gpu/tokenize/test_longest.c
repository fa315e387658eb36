/* SPDX-License-Identifier: BSD-3-Clause */
/* WordPiece and longest match by a block of threads, with small vocabularies. */
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "compare.h"
#include "small_vocab.h"
#include "texts_fibers.h"
#include "unicode/utf8.h"

#define MOST 3000u /* bytes of a text */
#define TOKENS_MAX 4000

/* One thread, and 256 in each order. */
#define DEVICES (1 + FIBERS_ORDERS)

static struct tokg_texts *
device(const struct tok_vocab *v, uint32_t i)
{
	const struct tokg_view view = tokg_view_here(v);
	const struct fibers_how how = {256, (enum fibers_order)(i - 1), i};
	struct tokg_error err;

	return i == 0 ? tokg_texts_cpu(v, TOK_ADDED_AS_TEXT, &err) : tokg_texts_fibers(&view, &how);
}

static void
open_device(struct compare *c, const struct tok_vocab *v, uint32_t i)
{
	assert_null(tokg_view_refuses(v, TOK_ADDED_AS_TEXT));
	assert_true(compare_open(c, v, device(v, i)));
}

static void
close_device(struct compare *c)
{
	c->x->ops->close(c->x);
	compare_close(c);
}

/* TOKD_TEXTS, or 20,000: of both models together. */
static uint64_t
count(void)
{
	const char *const given = getenv("TOKD_TEXTS");

	return given != NULL ? strtoull(given, NULL, 10) : 20000;
}

/* So many made texts, of each device as many. More than n / share of them must be encoded. */
static void
compare_texts(const struct tok_vocab *v, uint64_t n, uint64_t seed, uint64_t share)
{
	uint64_t ok = 0, not_plain = 0;

	for (uint32_t i = 0; i < DEVICES; i++) {
		struct texts_made m = {.seed = seed + i, .characters = true};
		struct compare c;

		open_device(&c, v, i);
		if (!compare_made(&c, &m, n / DEVICES, MOST))
			fail_msg("device %u: %s", i, c.why);
		ok += c.n[TOKG_TEXT_OK];
		not_plain += c.n[TOKG_TEXT_NOT_PLAIN];
		close_device(&c);
	}
	assert_true(ok > n / share);
	assert_true(not_plain > 0);
}

/* One text, on all devices. */
static void
compare_one(const struct tok_vocab *v, const void *text, size_t n, enum tokg_text_status status)
{
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct compare c;

		open_device(&c, v, i);
		memcpy(c.text, text, n);
		c.begin[1] = n;
		if (!compare_some(&c, 1))
			fail_msg("device %u: %s", i, c.why);
		assert_int_equal(c.x->result[0].status, status);
		close_device(&c);
	}
}

/* ---- WordPiece ---- */

/* Each character of these is a token, at the beginning of a word and inside. */
static const uint32_t letters[][2] = {{'!', '/'}, {'0', '9'}, {'A', 'Z'}, {'a', 'w'}, {0xdf, 0xff},
	{0x3b1, 0x3c9}, {0x430, 0x44f}, {0x5d0, 0x5ea}, {0x627, 0x64a}, {0x905, 0x94c},
	{0x9be, 0x9cc}, {0xb95, 0xbcc}, {0xe01, 0xe30}, {0x1100, 0x1112}, {0x1161, 0x1175},
	{0x11a8, 0x11c2}, {0x302e, 0x302f}, {0x3041, 0x3096}, {0x4e00, 0x4e80}, {0x1d157, 0x1d172}};
static const char *const words[] = {"the", "token", "##ization", "##ness", "quick", "un", "##aff",
	"##able", "get", "##element", "##by", "##id", "aa", "##aa", "##aaaa", "##ab", "##abc",
	"x\U0001d165\U0001d16d"};

static struct tok_vocab *
wordpiece(const struct tok_model_bert *options)
{
	static char text[TOKENS_MAX][8];
	static const char *token[TOKENS_MAX] = {"[UNK]"};
	uint32_t n = 1;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		token[n++] = words[i];
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		for (uint32_t cp = letters[i][0]; cp <= letters[i][1]; cp++) {
			memcpy(text[n], "##", 2);
			text[n][2 + tok_utf8_encode(cp, (uint8_t *)text[n] + 2)] = '\0';
			token[n] = text[n];
			token[n + 1] = text[n] + 2;
			n += 2;
		}
	}
	return small_wordpiece(token, n, options);
}

static const struct tok_model_bert uncased = {
	.clean_text = true,
	.handle_chinese_chars = true,
	.strip_accents = true,
	.lowercase = true,
	.max_chars = 100,
};

TEST(words_are_those_of_libtok)
{
	struct tok_model_bert options = uncased;

	for (uint32_t i = 0; i < 16; i++) {
		struct tok_vocab *v;

		options.clean_text = i & 1;
		options.handle_chinese_chars = i & 2;
		options.strip_accents = i & 4;
		options.lowercase = i & 8;
		options.max_chars = i % 3 == 0 ? 7 : 100;
		v = wordpiece(&options);
		compare_texts(v, count() / 32, i, 2);
		tok_vocab_free(v);
	}
}

#define CHARACTERS 256 /* in a text */

/* After each the end of a word, the middle of one, or nothing. */
static size_t
text_of_characters(uint32_t cp, uint8_t *text)
{
	size_t n = 0;

	for (uint32_t i = 0; i < CHARACTERS; i++) {
		const uint32_t after = (cp / CHARACTERS + i) % 3;

		if (cp >= 0xd800 && cp < 0xe000)
			continue;
		n += tok_utf8_encode(cp + i, text + n);
		if (after > 0)
			text[n++] = after == 1 ? 'b' : ' ';
	}
	return n;
}

TEST(all_characters_are_normalized)
{
	struct tok_vocab *const v = wordpiece(&uncased);

	for (uint32_t d = 0; d < DEVICES; d++) {
		struct compare c;

		open_device(&c, v, d);
		for (uint32_t cp = 0; cp < TOK_CODE_POINTS;) {
			uint32_t n = 0;

			for (; n < COMPARE_TEXTS && cp < TOK_CODE_POINTS; n++, cp += CHARACTERS)
				c.begin[n + 1] =
					c.begin[n] + text_of_characters(cp, c.text + c.begin[n]);
			if (!compare_some(&c, n))
				fail_msg("device %u: %s", d, c.why);
		}
		assert_true(c.n[TOKG_TEXT_OK] > TOK_CODE_POINTS / CHARACTERS * 99 / 100);
		close_device(&c);
	}
	tok_vocab_free(v);
}

/* Marks with classes 216 and 226 that are not dropped; U+FE0F is dropped, and a border. */
TEST(marks_that_canonical_ordering_moves_are_left_to_the_cpu)
{
	static const struct {
		const char *text;
		enum tokg_text_status status;
	} texts[] = {
		{"a\U0001d165", TOKG_TEXT_OK}, {"a\U0001d165\U0001d165\U0001d16db", TOKG_TEXT_OK},
		{"a\U0001d16d\U0001d165b", TOKG_TEXT_NOT_PLAIN},
		{"a\U0001d16d\u0301\U0001d165b", TOKG_TEXT_NOT_PLAIN},
		{"a\U0001d16d\ufe0f\U0001d165b", TOKG_TEXT_OK},
		{"a\U0001d16db\U0001d165b", TOKG_TEXT_OK},
		{"a\U0001d16d \U0001d165b", TOKG_TEXT_OK},
		{"z\U0001d16d\U0001d165b", TOKG_TEXT_NOT_PLAIN}, /* unknown before */
		{"x\U0001d165\U0001d16d", TOKG_TEXT_OK},
		{"x\U0001d16d\U0001d165", TOKG_TEXT_NOT_PLAIN}, /* unknown in this order */
	};
	struct tok_vocab *const v = wordpiece(&uncased);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		compare_one(v, texts[i].text, strlen(texts[i].text), texts[i].status);
	tok_vocab_free(v);
}

TEST(words_of_any_length)
{
	static uint8_t text[TOKG_TEXT_MAX + 1];
	struct tok_vocab *const v = wordpiece(&uncased);

	compare_one(v, "", 0, TOKG_TEXT_OK);
	memset(text, 'a', sizeof(text));
	for (uint32_t n = 95; n < 105; n++)
		compare_one(v, text, n, TOKG_TEXT_OK);
	compare_one(v, text, TOKG_TEXT_MAX, TOKG_TEXT_OK);
	compare_one(v, text, TOKG_TEXT_MAX + 1, TOKG_TEXT_TOO_LONG);
	memset(text, '.', sizeof(text));
	compare_one(v, text, TOKG_TEXT_MAX, TOKG_TEXT_OK);
	memset(text, ' ', sizeof(text));
	compare_one(v, text, TOKG_TEXT_MAX, TOKG_TEXT_OK);
	tok_vocab_free(v);
}

/* ---- longest match ---- */

TEST(longest_match_is_that_of_libtok)
{
	static const enum tok_pretok pretoks[] = {
		TOK_PRETOK_GPT2, TOK_PRETOK_CL100K, TOK_PRETOK_O200K};

	for (uint64_t i = 0; i < 12; i++) {
		struct small_vocab sv;
		uint64_t seed = i;

		small_vocab_of(&sv, &seed, i % 2 == 0 ? "abcdefgh" : "etaoin s.\xc3\xa9", 128,
			pretoks[i % 3], SMALL_GREEDY | (i < 4 ? SMALL_NFC : 0));
		compare_texts(sv.v, count() / 24, i, i < 4 ? 8 : 2);
		small_vocab_free(&sv);
	}
}

/* All leaps lie in one pretoken, up to its limit. */
TEST(long_pretokens_by_longest_match)
{
	static uint8_t text[TOKG_TEXT_MAX];
	struct small_vocab sv;
	uint64_t seed = 1;

	small_vocab_of(&sv, &seed, "ab", 20, TOK_PRETOK_GPT2, SMALL_GREEDY);
	compare_one(sv.v, "", 0, TOKG_TEXT_OK);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)('a' + small_random(&seed, 2));
	for (uint32_t n = 1; n <= TOKG_WORD_MAX; n += 31)
		compare_one(sv.v, text, n, TOKG_TEXT_OK);
	compare_one(sv.v, text, TOKG_WORD_MAX, TOKG_TEXT_OK);
	compare_one(sv.v, text, TOKG_WORD_MAX + 1, TOKG_TEXT_TOO_LONG);
	for (uint32_t i = 900; i < sizeof(text); i += 900)
		text[i] = ' ';
	compare_one(sv.v, text, sizeof(text), TOKG_TEXT_OK);
	small_vocab_free(&sv);
}

/* ---- both ---- */

/* Texts on a device's copy of `other`, which is freed; v is the same. */
static void
compare_copy(const struct tok_vocab *v, struct tok_vocab *other)
{
	const struct fibers_how how = {64, FIBERS_RANDOM, 1};
	struct texts_made m = {.seed = 1, .characters = true};
	uint8_t *const image = aligned_alloc(256, (tokg_view_bytes(other) + 255) & ~(size_t)255);
	struct compare c;

	assert_non_null(image);
	tokg_view_write(other, (uint64_t)(uintptr_t)image, image);
	tok_vocab_free(other);
	assert_true(compare_open(
		&c, v, tokg_texts_fibers((const struct tokg_view *)(const void *)image, &how)));
	if (!compare_made(&c, &m, 200, MOST))
		fail_msg("%s", c.why);
	close_device(&c);
	free(image);
}

TEST(a_copy_needs_nothing_of_the_vocabulary)
{
	struct tok_vocab *const v = wordpiece(&uncased);
	struct small_vocab sv, other;
	uint64_t seed = 3, again = 3;

	compare_copy(v, wordpiece(&uncased));
	tok_vocab_free(v);
	small_vocab_of(&sv, &seed, "abst ", 100, TOK_PRETOK_LLAMA3, SMALL_GREEDY);
	small_vocab_of(&other, &again, "abst ", 100, TOK_PRETOK_LLAMA3, SMALL_GREEDY);
	compare_copy(sv.v, other.v);
	small_vocab_free(&sv);
}

TEST(other_words_than_berts_are_refused)
{
	struct tok_vocab *const v = wordpiece(&uncased);

	v->pretok = TOK_PRETOK_WHITE;
	assert_string_equal(tokg_view_refuses(v, 0), "words other than BERT's");
	v->pretok = TOK_PRETOK_BERT;
	v->norm.n = 1;
	assert_string_equal(tokg_view_refuses(v, 0), "a normalizer other than BERT's");
	v->norm.n = 0;
	v->stage[0] = &tok_stage_squeeze;
	assert_string_equal(tokg_view_refuses(v, 0), "a stage that devices do not have");
	tok_vocab_free(v);
}
