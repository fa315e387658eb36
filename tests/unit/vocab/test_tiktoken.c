/* SPDX-License-Identifier: BSD-3-Clause */
/* .tiktoken files: ranks, and the merges that follow from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "build/model_make.h"

/* The small vocabulary with `more` after it. */
static const char *
put_ranks(void **state, const char *more)
{
	char *small = small_tiktoken(), *text = malloc(strlen(small) + strlen(more) + 1);
	const char *path;

	assert_non_null(text);
	strcpy(text, small);
	strcat(text, more);
	path = put_text(state, "small.tiktoken", text);
	free(text);
	free(small);
	return path;
}

static void
assert_ranks_refused(void **state, const char *more, const char *says)
{
	const struct tok_load_opts opts = {.pretokenizer = "gpt2"};
	struct tok_error err;

	assert_null(tok_vocab_load(put_ranks(state, more), &opts, &err));
	if (strstr(err.text, says) == NULL)
		fail_msg("expected: %s\nfound: %s", says, err.text);
}

FOLDER_TEST(gives_the_merges_of_the_other_formats)
{
	json_t *document = small_tokenizer_json();
	uint32_t want;

	set_at(document, "added_tokens", "[]");
	set_at(document, "model.vocab." SMALL_SPECIAL, NULL);
	want = assert_loads(put_json(state, "tokenizer.json", document));
	assert_int_equal(assert_loads(put_ranks(state, "")), want);
	assert_int_equal(assert_loads(put_ranks(state, "\n")), want);
}

FOLDER_TEST(lines_may_end_as_on_windows_and_come_in_any_order)
{
	uint32_t want = assert_loads(put_ranks(state, "aGVo 260\naGVoZQ== 261\n"));

	assert_int_equal(assert_loads(put_ranks(state, "aGVoZQ== 261\r\n\r\naGVo 260")), want);
}

FOLDER_TEST(an_unknown_file_needs_its_pretokenizer)
{
	const struct tok_load_opts opts = {.pretokenizer = "cl100k!"};
	struct tok_error err;

	assert_refused(put_ranks(state, ""), "choose one with --pretokenizer: gpt2, cl100k,");
	assert_null(tok_vocab_load(put_ranks(state, ""), &opts, &err));
	assert_non_null(strstr(
		err.text, "pretokenizer \"cl100k!\" is not implemented (implemented: gpt2, "));
}

FOLDER_TEST(bad_lines_are_refused_with_their_number)
{
	static const char expected[] = "small.tiktoken\" line 261: expected \"base64 rank\"";
	static const char *const bad[] = {"aGVo", "aGVo ", " 260", "aGVo 260 ", "aGVo  260",
		"aGVo -1", "aGVo 0x1", "aGVo 99999999999999999999", "aGV 260", "aG=o 260",
		"==== 260", "aGV* 260", "\xff\xfe\xfd\xfc 260", "aGVo\t260"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_ranks_refused(state, bad[i], expected);
	assert_ranks_refused(
		state, "aGVo 261\n", "line 261: rank 261, expected 0 to 260 without gaps");
	assert_ranks_refused(state, "aGVo 5\n", "line 261: rank 5 a second time");
	assert_ranks_refused(state, "aGU= 260\n", "has the bytes of another rank");
}

/*
 * Words of two times eight bytes that differ in the top bits: a multiplication moves these to where
 * the next eight bytes undo them, whatever a seed is added to.
 */
TEST(nobody_can_choose_tokens_whose_hashes_are_equal)
{
	struct tok_hash_seed seed;
	uint32_t hash[64];

	assert_true(tok_hash_seed(&seed));
	for (uint32_t i = 0; i < 64; i++) {
		uint64_t word[12];

		for (uint32_t k = 0; k < 6; k++) {
			word[2 * k] = (uint64_t)(i >> k & 1) << 63;
			word[2 * k + 1] = (uint64_t)(i >> k & 1) * 0x8000000080000000ull;
		}
		hash[i] = tok_hash_bytes(seed, (const uint8_t *)word, sizeof(word));
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(hash[i], hash[k]);
	}
}

TEST(each_table_of_tokens_has_a_seed_of_its_own)
{
	struct tok_model m = {0};
	struct tok_index x = {0}, y = {0};

	assert_true(tok_index_init(&x, &m, NULL) && tok_index_init(&y, &m, NULL));
	assert_memory_not_equal(&x.seed, &y.seed, sizeof(x.seed));
	tok_index_free(&x);
	tok_index_free(&y);
}

/* As a whole, and in a text: first ids, whether it is fed at once or byte by byte. */
static void
assert_encodes(const struct tok_vocab *v, const char *text, const uint32_t *want, size_t n)
{
	uint32_t whole[TOK_STREAM_HELD_MAX], bytes[TOK_STREAM_HELD_MAX];
	size_t len = strlen(text), produced = 0;
	struct tok_result r = tok_encode(v, NULL, text, len, 0, whole, TOK_STREAM_HELD_MAX);
	struct tok_stream s;

	assert_int_equal(r.produced, n);
	assert_memory_equal(whole, want, n * sizeof(*want));
	tok_stream_init(&s, v, NULL, 0);
	for (size_t i = 0; i < len; i++) {
		r = tok_stream_feed(
			&s, text + i, 1, i + 1 == len, bytes + produced, TOK_STREAM_HELD_MAX / 2);
		assert_int_equal(r.status, TOK_OK);
		produced += r.produced;
	}
	assert_int_equal(produced, n);
	assert_memory_equal(bytes, want, n * sizeof(*want));
}

FOLDER_TEST(a_rank_that_no_merge_makes_is_a_pretoken_or_nothing)
{
	const struct tok_load_opts opts = {.pretokenizer = "gpt2"};
	struct tok_vocab *v = tok_vocab_load(put_ranks(state, "eHl6 260\n"), &opts, NULL); /* xyz */

	assert_non_null(v);
	assert_encodes(v, "xyz", (uint32_t[]){260}, 1);
	assert_encodes(v, "xy", (uint32_t[]){'x', 'y'}, 2);
	assert_encodes(v, "xyzx", (uint32_t[]){'x', 'y', 'z', 'x'}, 4);
	assert_encodes(v, "xyz!xyz", (uint32_t[]){260, '!', 260}, 3);
	tok_vocab_free(v);
}

/* "xyz" is rank 260, "xy" 261: as soon as x and y are one, z joins them. */
FOLDER_TEST(a_part_may_have_a_higher_rank)
{
	const struct tok_load_opts opts = {.pretokenizer = "gpt2"};
	struct tok_vocab *v = tok_vocab_load(put_ranks(state, "eHl6 260\neHk= 261\n"), &opts, NULL);

	assert_non_null(v);
	assert_encodes(v, "axyzxy", (uint32_t[]){'a', 260, 261}, 3);
	tok_vocab_free(v);
}

/* "xyx" is 260, "xy" 261: in "xyxy" the first x y takes the x that the second needs. */
FOLDER_TEST(a_part_that_several_need_is_refused)
{
	assert_ranks_refused(state, "eHl4 260\neHk= 261\n", "comes before those of its parts, and");
}

FOLDER_TEST(files_without_all_bytes_are_refused)
{
	assert_refused(put_text(state, "a.tiktoken", "aA== 0\n"), "expected 256 to 2097130");
	assert_refused(put_text(state, "a.tiktoken", ""), "0 lines with a rank");
}

/* The work on a token is bounded by the square of its 1024 bytes at most, and that on all of them
 * by the sum of 1024 such tokens. */
FOLDER_TEST(tokens_of_1024_bytes_load_and_longer_ones_are_refused)
{
	char *more = malloc(4096 * 16), *at = more;

	/* "A" doubled ten times; in base64, 3 bytes "AAA" are "QUFB". */
	for (int rank = 260, n = 2; n <= 1024; n *= 2, rank++) {
		for (int i = 0; i + 3 <= n; i += 3)
			at += sprintf(at, "QUFB");
		at += sprintf(at, "%s %d\n", n % 3 == 1 ? "QQ==" : "QUE=", rank);
	}
	assert_loads(put_ranks(state, more));
	for (int i = 0; i < 1026; i += 3)
		at += sprintf(at, "QUFB");
	sprintf(at, " 270\n");
	assert_ranks_refused(state, more, "line 271: expected \"base64 rank\"");
	free(more);
}

/* Their squares are just above the limit, 2^30. */
FOLDER_TEST(many_long_tokens_are_refused)
{
	enum { TOKENS = 1030, BYTES = 1023 };
	char *more = malloc(TOKENS * (BYTES / 3 * 4 + 8)), *at = more;

	for (int t = 0; t < TOKENS; t++) {
		for (int i = 0; i < BYTES; i += 3) /* "aaa", "aab" */
			at += sprintf(at, t >> i / 3 % 11 & 1 ? "YWFi" : "YWFh");
		at += sprintf(at, " %d\n", SMALL_RANKS + t);
	}
	assert_ranks_refused(state, more, "its tokens are too long: the squares of their bytes");
	free(more);
}
