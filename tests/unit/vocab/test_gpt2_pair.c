/* SPDX-License-Identifier: BSD-3-Clause */
/* vocab.json with merges.txt beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static const char *
put_pair(void **state, json_t *vocab, const char *merges)
{
	put_text(state, "merges.txt", merges);
	return put_json(state, "vocab.json", vocab);
}

FOLDER_TEST(holds_the_same_as_tokenizer_json)
{
	uint32_t want = assert_loads(put_json(state, "tokenizer.json", small_tokenizer_json()));

	assert_int_equal(assert_loads(put_pair(state, small_vocab_json(), small_merges)), want);
	/* Without the first line, without a last end of line, with a blank last line, with CRLF. */
	assert_int_equal(
		assert_loads(put_pair(state, small_vocab_json(), "h e\nl l\nhe ll\n\xc4\xa0 w")),
		want);
	assert_int_equal(assert_loads(put_pair(state, small_vocab_json(),
				 "#version: 0.2\nh e\nl l\nhe ll\n\xc4\xa0 w\n\n")),
		want);
	assert_int_equal(assert_loads(put_pair(state, small_vocab_json(),
				 "#version: 0.2\r\nh e\r\nl l\r\nhe ll\r\n\xc4\xa0 w\r\n")),
		want);
}

static const struct tok_load_opts gpt2 = {.pretokenizer = "gpt2"};

FOLDER_TEST(a_pair_that_is_not_known_is_refused_unless_told)
{
	const struct tok_load_opts other = {.pretokenizer = "qwen2"};
	const char *path = put_pair(state, small_vocab_json(), small_merges);
	struct tok_error err;

	assert_refused(path, "are not recognised by content (known: gpt2)");
	assert_null(tok_vocab_load(path, &other, &err));
	assert_non_null(strstr(err.text, "pretokenizer \"qwen2\" is not implemented"));
	assert_loads(path); /* with the word */
}

FOLDER_TEST(an_entry_that_no_merge_makes_is_special_if_it_looks_so)
{
	json_t *vocab = small_vocab_json();
	struct tok_error err;
	struct tok_vocab *v;
	uint32_t len = 0;

	json_object_set_new(vocab, "<|user|>", json_integer(261));
	v = tok_vocab_load(put_pair(state, vocab, small_merges), &gpt2, &err);
	assert_non_null(v);
	assert_int_equal(tok_vocab_info(v).n_special, 2);
	assert_string_equal(tok_vocab_info(v).format, "vocab.json");
	assert_memory_equal(tok_vocab_token(v, 261, &len), "<|user|>", 8);
	tok_vocab_free(v);

	vocab = small_vocab_json();
	json_object_set_new(vocab, "hello", json_integer(261));
	assert_refused(put_pair(state, vocab, small_merges),
		"id 261 \"hello\" is made by no merge and does not look like a special token");
	vocab = small_vocab_json();
	json_object_set_new(vocab, "<|\xc4\xa0|>", json_integer(261));
	assert_refused(put_pair(state, vocab, small_merges), "is made by no merge");
}

FOLDER_TEST(an_entry_that_a_merge_makes_is_not_special_whatever_it_looks_like)
{
	static const char *const parts[] = {"<|", "|>", "<|a", "<|a|>"};
	json_t *vocab = small_vocab_json();
	struct tok_error err;
	struct tok_vocab *v;

	for (size_t i = 0; i < 4; i++)
		json_object_set_new(vocab, parts[i], json_integer((json_int_t)(261 + i)));
	v = tok_vocab_load(
		put_pair(state, vocab, "h e\nl l\nhe ll\n\xc4\xa0 w\n< |\n| >\n<| a\n<|a |>\n"),
		&gpt2, &err);
	assert_non_null(v);
	assert_int_equal(tok_vocab_info(v).n_special, 1);
	tok_vocab_free(v);
}

FOLDER_TEST(bad_merges_are_refused_with_their_line)
{
	static const struct {
		const char *merges, *says;
	} rows[] = {
		{"#version: 0.2\nh e\nl l x\n", "merges.txt line 3: expected two fields, found 3"},
		{"h e\nll\n", "merges.txt line 2: expected two fields, found 1"},
		{"h e\n\nl l\n", "merges.txt line 2: expected two fields, found 0"},
		{"h e\nl  l\n", "merges.txt line 2: expected two fields, found 3"},
		{" he\n", "merges.txt line 1: \"\" is not byte-level text"},
		{"h e\n\xff l\n", "merges.txt line 2: \"?\" is not byte-level text"},
		{"h e\nl zz\n", "merges.txt line 2: \"zz\" is not in the vocabulary"},
		{"h e\nl e\n", "merges.txt line 2: its result is not in the vocabulary"},
		{"h e\nl l\nhe ll\n\xc4\xa0 w\nh e\n", "merges 0 and 4 join the same two tokens"},
		{"h e\nl l\nhe ll\n", "id 259 \" w\" is made by no merge"},
		{"", "id 256 \"he\" is made by no merge"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_refused_as(
			put_pair(state, small_vocab_json(), rows[i].merges), "gpt2", rows[i].says);
	}
}

FOLDER_TEST(more_merges_than_tokens_are_refused)
{
	char *merges = malloc(4 * 400 + 1), *at = merges;
	const char *path;

	assert_non_null(merges);
	for (int i = 0; i < 400; i++)
		at += sprintf(at, "h e\n");
	path = put_pair(state, small_vocab_json(), merges);
	free(merges);
	assert_refused(path, "merges.txt line 262: more merges than the 261 tokens");
}
