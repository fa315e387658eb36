/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text to ids by a block of threads, on small vocabularies: of one thread, and of many that are
 * fibers. tests/cli/gpu/test_text_ids.py has published vocabularies.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "small_vocab.h"
#include "test.h"
#include "texts_fibers.h"

#define MERGES 120
#define TEXTS 700u
#define MOST 3000u

static const char alphabet[] = "ab'st \n1eT\xc3\xa9";

/* Of these, one that is not the first decides over the pretokenizer. */
static const enum tok_pretok pretoks[] = {TOK_PRETOK_GPT2, TOK_PRETOK_CL100K, TOK_PRETOK_LLAMA3,
	TOK_PRETOK_QWEN2, TOK_PRETOK_O200K, TOK_PRETOK_TEKKEN, TOK_PRETOK_DEEPSEEK};
#define N_PRETOKS (sizeof(pretoks) / sizeof(pretoks[0]))

static const enum small_flags flags_of[] = {0, SMALL_WHOLE, SMALL_NFC, SMALL_NFC | SMALL_WHOLE};
#define N_FLAGS (sizeof(flags_of) / sizeof(flags_of[0]))

static void
assert_same(struct compare *c, uint64_t seed, uint64_t count, size_t most)
{
	struct texts_made m = {.seed = seed};

	if (!compare_made(c, &m, count, most))
		fail_msg("%s", c->why);
}

/* Compare made texts on this device, which is closed. */
static void
compare_on(const struct tok_vocab *v, struct tokg_texts *x, uint64_t seed, uint64_t count)
{
	struct compare c;

	assert_non_null(x);
	assert_true(compare_open(&c, v, x));
	assert_same(&c, seed, count, MOST);
	assert_true(c.n[TOKG_TEXT_OK] > count / 10);
	compare_close(&c);
	x->ops->close(x);
}

static struct tokg_texts *
one_thread(const struct tok_vocab *v)
{
	struct tokg_error err;

	return tokg_texts_cpu(v, TOK_ADDED_AS_TEXT, &err);
}

TEST(one_thread_has_libtoks_ids)
{
	uint64_t seed = 1;

	for (size_t i = 0; i < N_PRETOKS * N_FLAGS; i++) {
		struct small_vocab sv;

		small_vocab_of(&sv, &seed, alphabet, MERGES, pretoks[i % N_PRETOKS],
			flags_of[i / N_PRETOKS]);
		compare_on(sv.v, one_thread(sv.v), i, TEXTS);
		small_vocab_free(&sv);
	}
}

TEST(many_threads_have_libtoks_ids_in_any_order)
{
	static const uint32_t threads[] = {2, 32, 64, 256};
	uint64_t seed = 2;

	for (uint32_t i = 0; i < 4 * FIBERS_ORDERS; i++) {
		const struct fibers_how how = {
			threads[i / FIBERS_ORDERS], (enum fibers_order)(i % FIBERS_ORDERS), i};
		struct small_vocab sv;
		struct tokg_view view;

		small_vocab_of(&sv, &seed, alphabet, MERGES, pretoks[i % N_PRETOKS],
			flags_of[i % N_FLAGS]);
		view = tokg_view_here(sv.v);
		compare_on(sv.v, tokg_texts_fibers(&view, &how), i, 40);
		small_vocab_free(&sv);
	}
}

/* Digits by threes: the lists of a chunk and the next two never agree. */
static void
compare_digits(const struct tok_vocab *v, struct tokg_texts *x)
{
	struct compare c;

	assert_true(compare_open(&c, v, x));
	for (uint32_t n = 0; n < 300; n++) {
		memset(c.text, 'a', n % 7);
		for (uint32_t i = n % 7; i < n + n % 7; i++)
			c.text[i] = (uint8_t)('0' + i * i % 10);
		c.begin[1] = n + n % 7;
		if (!compare_some(&c, 1))
			fail_msg("%s", c.why);
	}
	compare_close(&c);
	x->ops->close(x);
}

TEST(lists_of_borders_that_disagree_for_long)
{
	uint64_t seed = 8;
	struct small_vocab sv;
	struct tokg_view view;

	small_vocab_of(&sv, &seed, "0123456789a", MERGES, TOK_PRETOK_CL100K, 0);
	compare_digits(sv.v, one_thread(sv.v));
	view = tokg_view_here(sv.v);
	for (uint32_t i = 0; i < FIBERS_ORDERS; i++) {
		const struct fibers_how how = {64, (enum fibers_order)i, i};

		compare_digits(sv.v, tokg_texts_fibers(&view, &how));
	}
	small_vocab_free(&sv);
}

/* A device's copy, where the vocabulary itself is gone. */
TEST(a_copy_needs_nothing_of_the_vocabulary)
{
	const struct fibers_how how = {1, FIBERS_FORWARD, 0};
	uint64_t seed = 3, again = 3;
	struct small_vocab sv, other;
	size_t bytes;
	uint8_t *image;

	small_vocab_of(&sv, &seed, alphabet, MERGES, TOK_PRETOK_LLAMA3, SMALL_NFC | SMALL_WHOLE);
	small_vocab_of(
		&other, &again, alphabet, MERGES, TOK_PRETOK_LLAMA3, SMALL_NFC | SMALL_WHOLE);
	bytes = (tokg_view_bytes(other.v) + 255) & ~(size_t)255;
	image = aligned_alloc(256, bytes);
	assert_non_null(image);
	tokg_view_write(other.v, (uint64_t)(uintptr_t)image, image);
	small_vocab_free(&other);
	compare_on(sv.v, tokg_texts_fibers((const struct tokg_view *)image, &how), 3, TEXTS);
	free(image);
	small_vocab_free(&sv);
}

/* ---- limits and refusals ---- */

static struct tokg_texts_result
result_of(struct tokg_texts *x, const void *text, uint32_t n)
{
	const uint64_t begin[2] = {0, n};
	struct tokg_error err;
	uint64_t ns;

	assert_true(x->ops->put(x, text, begin, 1, &err) && x->ops->run(x, &ns, &err) &&
		    x->ops->fetch(x, &err));
	return x->result[0];
}

static void
assert_status(struct tokg_texts *x, const void *text, size_t n, enum tokg_text_status status)
{
	assert_int_equal(result_of(x, text, (uint32_t)n).status, status);
}

TEST(texts_and_pretokens_have_a_longest_length)
{
	uint64_t seed = 4;
	uint8_t *const text = malloc(TOKG_TEXT_MAX + 1);
	struct small_vocab sv;
	struct tokg_texts *x;

	small_vocab_of(&sv, &seed, alphabet, MERGES, TOK_PRETOK_GPT2, 0);
	x = one_thread(sv.v);
	memset(text, 'a', TOKG_TEXT_MAX + 1);
	assert_status(x, text, 0, TOKG_TEXT_OK);
	assert_int_equal(x->result[0].n_ids, 0);
	assert_status(x, text, TOKG_WORD_MAX, TOKG_TEXT_OK);
	assert_status(x, text, TOKG_WORD_MAX + 1, TOKG_TEXT_TOO_LONG);
	for (uint32_t i = 0; i <= TOKG_TEXT_MAX; i += 100)
		text[i] = '!';
	assert_status(x, text, TOKG_TEXT_MAX, TOKG_TEXT_OK);
	assert_status(x, text, TOKG_TEXT_MAX + 1, TOKG_TEXT_TOO_LONG);
	x->ops->close(x);
	small_vocab_free(&sv);
	free(text);
}

TEST(malformed_text_is_left_to_the_cpu)
{
	static const char *const text[] = {"\x80", "a\x80", "\xc3", "\xc3\xa9\xa9", "\xe4\xb8",
		"\xe4\xb8"
		"a",
		"\xf0\x9f\x98", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff",
		"\xf0\x9f\x98\x80\x80", "\x80\x80\x80\x80\x80", "\xe2\x82\xc2\xa0"};
	uint64_t seed = 5;
	struct small_vocab sv;
	struct tokg_texts *x;

	small_vocab_of(&sv, &seed, alphabet, MERGES, TOK_PRETOK_GPT2, 0);
	x = one_thread(sv.v);
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		assert_status(x, text[i], strlen(text[i]), TOKG_TEXT_NOT_PLAIN);
	assert_status(x, "\xf4\x8f\xbf\xbf\xee\x80\x80\xc2\x80", 9, TOKG_TEXT_OK);
	x->ops->close(x);
	small_vocab_free(&sv);
}

TEST(text_that_form_c_may_change_is_left_to_the_cpu)
{
	static const struct {
		const char *text;
		enum tokg_text_status status;
	} a[] = {
		{"caf\xc3\xa9", TOKG_TEXT_OK}, {"cafe\xcc\x81", TOKG_TEXT_NOT_PLAIN}, /* composes */
		{"\xe2\x84\xab", TOKG_TEXT_NOT_PLAIN},		   /* the sign of Angstrom */
		{"\xed\x95\x9c", TOKG_TEXT_OK},			   /* a syllable */
		{"\xe1\x84\x92\xe1\x85\xa1", TOKG_TEXT_NOT_PLAIN}, /* its letters */
		{"x\xd6\xb0\xd6\xbc", TOKG_TEXT_OK},		   /* marks in order: 10, 21 */
		{"x\xd6\xbc\xd6\xb0", TOKG_TEXT_NOT_PLAIN},	   /* and not */
	};
	uint64_t seed = 6;
	struct small_vocab sv;
	struct tokg_texts *x;

	small_vocab_of(&sv, &seed, alphabet, MERGES, TOK_PRETOK_QWEN2, SMALL_NFC);
	x = one_thread(sv.v);
	for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); i++)
		assert_status(x, a[i].text, strlen(a[i].text), a[i].status);
	x->ops->close(x);
	small_vocab_free(&sv);
}

TEST(vocabularies_that_are_not_covered_are_refused)
{
	uint64_t seed = 7;
	struct small_vocab sv;

	small_vocab_of(&sv, &seed, alphabet, MERGES, TOK_PRETOK_GPT2, SMALL_ADDED);
	assert_null(tokg_view_refuses(sv.v, TOK_ADDED_AS_TEXT));
	assert_string_equal(tokg_view_refuses(sv.v, 0), "added tokens in text");
	assert_string_equal(tokg_view_refuses(sv.v, TOK_SPECIAL), "added tokens in text");
	assert_non_null(tokg_view_refuses(sv.v, TOK_ADDED_AS_TEXT | TOK_TEMPLATE));
	assert_non_null(tokg_view_refuses(sv.v, TOK_ADDED_AS_TEXT | TOK_STRICT_UTF8));
	small_vocab_free(&sv);
	small_vocab_of(&sv, &seed, alphabet, MERGES, TOK_PRETOK_GPT2, 0);
	assert_null(tokg_view_refuses(sv.v, 0));
	sv.v->digits_apart = true;
	assert_string_equal(tokg_view_refuses(sv.v, 0), "digits apart within pretokens");
	sv.v->digits_apart = false;
	sv.v->word_end = TOK_WORD_END_MARK;
	assert_string_equal(tokg_view_refuses(sv.v, 0), "marks at the ends of words");
	sv.v->word_end = TOK_WORD_END_NONE;
	sv.v->n_repeats = 1;
	assert_string_equal(tokg_view_refuses(sv.v, 0), "families of repeated tokens");
	sv.v->n_repeats = 0;
	sv.v->metaspace.stage = TOK_METASPACE_PREFIX;
	assert_string_equal(tokg_view_refuses(sv.v, 0), "SentencePiece's normalizer or blanks");
	sv.v->metaspace.stage = TOK_METASPACE_OFF;
	sv.v->stage[0] = &tok_stage_squeeze;
	assert_string_equal(tokg_view_refuses(sv.v, 0), "a stage that devices do not have");
	small_vocab_free(&sv);
}
