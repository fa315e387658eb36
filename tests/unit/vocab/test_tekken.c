/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistral's tekken.json: ranks behind special tokens. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

#define TEKKEN_REGEX                                                                                 \
	"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|" \
	"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|" \
	"\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char base64_letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static json_t *
rank(json_int_t number, const char *base64)
{
	return json_pack("{sIsssn}", "rank", number, "token_bytes", base64, "token_str");
}

/* 256 bytes, "he" and one that is not in use, behind three special tokens. */
static json_t *
small_tekken(void)
{
	json_t *vocab = json_array();

	for (unsigned int b = 0; b < 256; b++) {
		char text[] = {
			base64_letters[b >> 2], base64_letters[(b & 3) << 4], '=', '=', '\0'};

		json_array_append_new(vocab, rank(b, text));
	}
	json_array_append_new(vocab, rank(256, "aGU="));
	json_array_append_new(vocab, rank(257, "aGVs"));
	return json_pack("{s{sssisiss}so}", "config", "pattern", TEKKEN_REGEX, "default_vocab_size",
		3 + 257, "default_num_special_tokens", 3, "version", "v3", "vocab", vocab);
}

FOLDER_TEST(special_tokens_come_first)
{
	static const uint32_t want[] = {3 + 256, 3 + 'l', 3 + '1', 3 + '2'};
	uint32_t ids[64], len;
	struct tok_error err;
	struct tok_vocab *v =
		tok_vocab_load(put_json(state, "tekken.json", small_tekken()), NULL, &err);

	if (v == NULL)
		fail_msg("%s", err.text);
	assert_int_equal(tok_vocab_info(v).n_ids, 260);
	assert_string_equal(tok_vocab_info(v).pretokenizer, "tekken");
	assert_string_equal(tok_vocab_info(v).format, "tekken.json");
	assert_int_equal(tok_encode(v, NULL, "hel12", 5, 0, ids, 64).produced, 4);
	assert_memory_equal(ids, want, sizeof(want));
	assert_memory_equal(tok_vocab_token(v, 1, &len), "<s>", 3);
	tok_vocab_free(v);
}

FOLDER_TEST(it_is_found_in_a_folder_and_by_the_folders_name)
{
	struct tok_load_opts opts = {0};
	struct tok_error err;
	char *folder = *state, *slash = strrchr(folder, '/'), above[4096];
	struct tok_vocab *v;
	uint32_t first;

	put_json(state, "tekken.json", small_tekken());
	assert_loads(folder);
	snprintf(above, sizeof(above), "%.*s", (int)(slash - folder), folder);
	opts.search_path = above;
	v = tok_vocab_load(slash + 1, &opts, &err);
	if (v == NULL)
		fail_msg("%s", err.text);
	assert_string_equal(tok_vocab_info(v).format, "tekken.json");
	tok_vocab_free(v);
	first = assert_loads(put_json(state, "tokenizer.json", small_tokenizer_json()));
	assert_int_equal(assert_loads(folder), first);
}

FOLDER_TEST(special_tokens_may_be_listed_and_others_are_filled_in)
{
	json_t *document = small_tekken();
	struct tok_vocab *v;
	uint32_t len;

	set_at(document, "special_tokens",
		"[{\"rank\": 2, \"token_str\": \"<x>\", \"is_control\": true}]");
	v = tok_vocab_load(put_json(state, "tekken.json", document), NULL, NULL);
	assert_non_null(v);
	assert_memory_equal(tok_vocab_token(v, 2, &len), "<x>", 3);
	assert_memory_equal(tok_vocab_token(v, 0, &len), "<SPECIAL_0>", 11);
	tok_vocab_free(v);
}

FOLDER_TEST(what_is_not_sound_is_refused_by_name)
{
	static const struct {
		const char *path, *value, *says;
	} rows[] = {
		{"config.pattern", "\"\\\\w+\"", "config.pattern \\w+ is not known (implemented"},
		{"config.pattern", "1", "config.pattern  is not known"},
		{"config.default_vocab_size", "9999",
			"config.default_vocab_size: expected a number from 259 to 261"},
		{"config.default_vocab_size", "\"260\"", "config.default_vocab_size: expected"},
		{"config.default_num_special_tokens", "-1",
			"config.default_num_special_tokens: expected a number from 0"},
		{"config.odd", "1", "config.odd is not implemented"},
		{"odd", "1", "odd is not implemented: the key is not known"},
		{"special_tokens", "{}", "special_tokens is not a list"},
		{"special_tokens", "[{\"rank\": 3, \"token_str\": \"a\"}]",
			"special_tokens[0]: expected a rank from 0 to 2"},
		{"special_tokens", "[{\"rank\": 1}]", "special_tokens[0]: expected a rank"},
		{"special_tokens", "[{\"rank\": 1, \"token_str\": \"\"}]", "special token 1 \"\""},
		{"special_tokens",
			"[{\"rank\": 1, \"token_str\": \"a\"}, {\"rank\": 1, \"token_str\": \"b\"}]",
			"special token 1 \"b\": expected 1 to 64 bytes, and each rank once"},
		{"vocab", "[]", "vocab has 0 tokens, expected 256"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *document = small_tekken();

		set_at(document, rows[i].path, rows[i].value);
		assert_refused(put_json(state, "tekken.json", document), rows[i].says);
	}
}

FOLDER_TEST(ranks_that_are_not_sound_are_refused_with_their_number)
{
	static const char expected[] = "vocab[256]: expected rank 256 and token_bytes, 1 to 1024";
	json_t *bad[] = {rank(7, "aGU="), rank(256, "aG="), rank(256, ""), json_object(),
		json_string("aGU=")};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *document = small_tekken();

		json_array_set_new(json_object_get(document, "vocab"), 256, bad[i]);
		assert_refused(put_json(state, "tekken.json", document), expected);
	}
}

/* A string with NUL in it is for tekken.json alone, where nobody reads it. */
FOLDER_TEST(nul_in_other_files_is_refused)
{
	json_t *tekken = small_tekken(), *other = small_tokenizer_json();

	json_object_set_new(json_array_get(json_object_get(tekken, "vocab"), 0), "token_str",
		json_stringn("\0", 1));
	assert_loads(put_json(state, "tekken.json", tekken));
	json_object_set_new(other, "version", json_stringn("1.0\0", 4));
	assert_refused(put_json(state, "tokenizer.json", other), "\\u0000 is not allowed");
}
