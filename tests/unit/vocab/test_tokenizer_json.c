/* SPDX-License-Identifier: BSD-3-Clause */
/* tokenizer.json: what is implemented loads, and everything else is refused by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

struct change {
	const char *at, *value; /* see set_at() */
	const char *says;
};
#define N(rows) (sizeof(rows) / sizeof(rows[0]))

static void
assert_all_refused(void **state, const struct change *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *document = small_tokenizer_json();

		set_at(document, rows[i].at, rows[i].value);
		assert_refused(put_json(state, "tokenizer.json", document), rows[i].says);
	}
}

FOLDER_TEST(what_says_the_same_in_other_words_loads)
{
	static const struct change same[] = {
		{"version", NULL, NULL},
		{"truncation", NULL, NULL},
		{"normalizer", NULL, NULL},
		{"post_processor", "null", NULL},
		{"post_processor", NULL, NULL},
		{"pre_tokenizer.trim_offsets", "false", NULL},
		{"pre_tokenizer.use_regex", NULL, NULL},
		{"model.type", NULL, NULL},
		{"model.dropout", "0", NULL},
		{"model.dropout", "0.0", NULL},
		{"model.continuing_subword_prefix", "null", NULL},
		{"model.end_of_word_suffix", "null", NULL},
		{"model.ignore_merges", NULL, NULL},
		{"model.merges",
			"[[\"h\", \"e\"], [\"l\", \"l\"], [\"he\", \"ll\"], [\"\xc4\xa0\", \"w\"]]",
			NULL},
	};
	uint32_t want = assert_loads(put_json(state, "tokenizer.json", small_tokenizer_json()));

	for (size_t i = 0; i < N(same); i++) {
		json_t *document = small_tokenizer_json();

		set_at(document, same[i].at, same[i].value);
		assert_int_equal(assert_loads(put_json(state, "tokenizer.json", document)), want);
	}
}

FOLDER_TEST(the_checksum_tells_apart_what_gives_other_ids)
{
	uint32_t whole = assert_loads(put_json(state, "tokenizer.json", small_tokenizer_json()));
	json_t *document = small_tokenizer_json();

	set_at(document, "model.merges", "[\"l l\", \"h e\", \"he ll\", \"\xc4\xa0 w\"]");
	assert_int_not_equal(assert_loads(put_json(state, "tokenizer.json", document)), whole);
	document = small_tokenizer_json();
	set_at(document, "added_tokens", "[]");
	set_at(document, "model.vocab." SMALL_SPECIAL, NULL);
	assert_int_not_equal(assert_loads(put_json(state, "tokenizer.json", document)), whole);
}

#define BYTES "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}"
#define GPT2_BYTES "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"
#define SEQUENCE(list) "{\"type\": \"Sequence\", \"pretokenizers\": [" list "]}"
#define DIGITS(each) "{\"type\": \"Digits\", \"individual_digits\": " each "}"
#define TRIPLES(regex)                                                                             \
	"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex                                  \
	"\"}, \"behavior\": \"Isolated\", \"invert\": false}"
#define BEHIND_BYTES(i) "pre_tokenizer.pretokenizers[" #i "]: after ByteLevel, where characters"
#define SPLIT_ALONE SEQUENCE("{\"type\": \"Split\"}")
#define SPLIT(regex, behavior, invert)                                                             \
	SEQUENCE("{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex                         \
		 "\"}, \"behavior\": \"" behavior "\", \"invert\": " invert "}, " BYTES)

FOLDER_TEST(components_that_are_not_implemented_are_refused_by_name)
{
	static const struct change rows[] = {
		{"normalizer", "{\"type\": \"Nmt\"}",
			"normalizer \"Nmt\" is not implemented (implemented: NFC, NFD"},
		{"normalizer", "{\"type\": \"NFC\", \"odd\": 1}",
			"normalizer.odd is not implemented"},
		{"normalizer", "{\"type\": \"Sequence\", \"normalizers\": [1, 2]}",
			"normalizer.normalizers[0] 1 is not implemented"},
		{"version", "\"2.0\"", "version \"2.0\" is not implemented (implemented: \"1.0\")"},
		{"version", "{\"type\": \"1.0\"}", "version \"1.0\" is not implemented"},
		{"pre_tokenizer", "null", "pre_tokenizer null is not implemented"},
		{"pre_tokenizer", NULL, "pre_tokenizer is missing"},
		{"pre_tokenizer", "[]", "pre_tokenizer [] is not implemented"},
		{"pre_tokenizer", "{\"type\": \"Sequence\", \"pretokenizers\": []}",
			"pre_tokenizer \"Sequence\" of 0 is not implemented (implemented: up to 7"},
		{"pre_tokenizer", SPLIT_ALONE,
			"pre_tokenizer.pretokenizers[0] \"Split\" is not implemented (implemented: "
			"\"ByteLevel\")"},
		{"pre_tokenizer", SEQUENCE(GPT2_BYTES ", " BYTES), BEHIND_BYTES(1)},
		{"pre_tokenizer", SEQUENCE(GPT2_BYTES ", " DIGITS("true")), BEHIND_BYTES(1)},
		{"pre_tokenizer", SEQUENCE(GPT2_BYTES ", " TRIPLES("[0-9][0-9][0-9]")),
			BEHIND_BYTES(1)},
		{"pre_tokenizer", SEQUENCE(GPT2_BYTES ", " DIGITS("false") ", " TRIPLES("[0-9]+")),
			BEHIND_BYTES(2)},
		{"pre_tokenizer", SEQUENCE(GPT2_BYTES ", " DIGITS("false") ", " DIGITS("false")),
			BEHIND_BYTES(2)},
		{"pre_tokenizer", SEQUENCE(BYTES), "use_regex false without a split is not"},
		{"pre_tokenizer", SEQUENCE("{\"type\": \"Whitespace\"}, " BYTES),
			"pre_tokenizer.pretokenizers[0] \"Whitespace\" is not implemented"},
		{"pre_tokenizer", SPLIT("a", "Kept", "false"),
			"pre_tokenizer.pretokenizers[0].behavior \"Kept\" is not known"},
		{"pre_tokenizer", SPLIT("^a", "Isolated", "false"),
			"at byte 0, \"^a\": the start of a line is not implemented"},
		{"pre_tokenizer", SPLIT("\\\\s+", "Removed", "false"),
			"regular expression 1 of 1 removes text (behavior \"Removed\")"},
		{"pre_tokenizer", SPLIT("\\\\S+", "Removed", "true"),
			"regular expression 1 of 1 removes text (behavior \"Removed\")"},
		{"pre_tokenizer", SPLIT("\\\\s+", "Isolated", "1"),
			"pre_tokenizer.pretokenizers[0].invert 1 is not implemented"},
		{"pre_tokenizer.add_prefix_space", "1",
			"pre_tokenizer.add_prefix_space 1 is not implemented"},
		{"pre_tokenizer.add_prefix_space", NULL,
			"pre_tokenizer.add_prefix_space is missing"},
		{"pre_tokenizer.use_regex", "false",
			"pre_tokenizer.use_regex false without a split is not"},
		{"pre_tokenizer.use_regex", "1", "pre_tokenizer.use_regex 1 is not"},
		{"decoder", "null", "decoder null is not implemented"},
		{"decoder", NULL, "decoder is missing"},
		{"pre_tokenizer.trim_offsets", "\"yes\"", "trim_offsets"},
		{"decoder", "{\"type\": \"WordPiece\"}",
			"decoder \"WordPiece\" is not implemented"},
		{"model", NULL, "model is missing"},
		{"model", "[]", "model is missing or not an object"},
		{"model.type", "\"Words\"",
			"model \"Words\" is not implemented (implemented: \"BPE\", \"WordPiece\""},
		{"model.dropout", "0.5", "model.dropout 0.5 is not implemented"},
		{"model.unk_token", "\"<unk>\"", "model.unk_token \"<unk>\" is not implemented"},
		{"model.continuing_subword_prefix", "\"##\"",
			"continuing_subword_prefix \"##\" is"},
		{"model.end_of_word_suffix", "\"@@\"", "end_of_word_suffix \"@@\" is not"},
		{"model.fuse_unk", "true", "model.fuse_unk true is not implemented"},
		{"model.byte_fallback", "true",
			"pre_tokenizer \"ByteLevel\" is not implemented (implemented: \"Metaspace\")"},
		{"model.ignore_merges", "1", "model.ignore_merges 1 is not implemented"},
	};

	assert_all_refused(state, rows, N(rows));
}

FOLDER_TEST(keys_that_are_not_known_are_refused_by_name)
{
	static const struct change rows[] = {
		{"surprise", "1", "surprise is not implemented: the key is not known"},
		{"model.surprise", "1", "model.surprise is not implemented"},
		{"pre_tokenizer.surprise", "1", "pre_tokenizer.surprise is not implemented"},
		{"post_processor.surprise", "1", "post_processor.surprise is not implemented"},
		{"decoder.surprise", "1", "decoder.surprise is not implemented"},
		{"added_tokens",
			"[{\"id\": 260, \"content\": \"<|endoftext|>\", \"special\": true, \"odd\": 1}]",
			"added_tokens[0].odd is not implemented"},
		{"line\nbreak", "1", "line?break is not implemented"},
	};

	assert_all_refused(state, rows, N(rows));
}

FOLDER_TEST(added_tokens_have_the_ids_that_the_reference_gives_them)
{
	static const struct change rows[] = {
		{"added_tokens", "{}", "added_tokens is not a list"},
		{"added_tokens", "[1]", "added_tokens[0] is missing or not an object"},
		{"added_tokens", "[{\"id\": 261, \"special\": true}]",
			"added_tokens[0].content is"},
		{"added_tokens", "[{\"id\": \"x\", \"content\": \"<x>\", \"special\": true}]",
			"added_tokens[0]: expected a content and an id from 0 to 2097151"},
		{"added_tokens", "[{\"id\": 2097152, \"content\": \"<x>\", \"special\": true}]",
			"id from 0 to 2097151"},
		{"added_tokens", "[{\"id\": 300, \"content\": \"<x>\", \"special\": true}]",
			"\"<x>\" has id 300, but tokenizers gives it 261"},
		{"added_tokens", "[{\"id\": 261, \"content\": \"hell\", \"special\": true}]",
			"\"hell\" has id 261, but tokenizers gives it 258"},
		{"added_tokens", "[{\"id\": 258, \"content\": \"hell\", \"special\": true}]",
			"merge 2: its result is not in the vocabulary, or is special"},
		{"added_tokens",
			"[{\"id\": 261, \"content\": \"<x>\", \"special\": true},"
			" {\"id\": 262, \"content\": \"<x>\", \"special\": true}]",
			"\"<x>\" occurs twice"},
		{"added_tokens", "[{\"id\": 261, \"content\": \"\", \"special\": true}]",
			"added token 261 has 0 bytes"},
	};

	assert_all_refused(state, rows, N(rows));
}

FOLDER_TEST(a_special_token_that_is_not_in_the_model_decodes_to_its_text)
{
	json_t *document = small_tokenizer_json();
	struct tok_error err;
	struct tok_vocab *v;
	uint32_t len = 0;

	set_at(document, "added_tokens",
		"[{\"id\": 260, \"content\": \"<|endoftext|>\", \"special\": true},"
		" {\"id\": 261, \"content\": \"<a \xc3\xa9>\", \"special\": true},"
		/* All of its characters are byte-level letters: the reference's decoder reads them
		   so. */
		" {\"id\": 262, \"content\": \"\xc4\xa0\xc3\xa9\", \"special\": true}]");
	v = tok_vocab_load(put_json(state, "tokenizer.json", document), NULL, &err);
	assert_non_null(v);
	assert_int_equal(tok_vocab_info(v).n_special, 3);
	assert_int_equal(tok_vocab_info(v).n_ids, 263);
	assert_memory_equal(tok_vocab_token(v, 261, &len), "<a \xc3\xa9>", 6);
	assert_int_equal(len, 6);
	assert_memory_equal(tok_vocab_token(v, 262, &len), " \xe9", 2);
	assert_int_equal(len, 2);
	tok_vocab_free(v);
}

FOLDER_TEST(a_vocabulary_that_is_not_sound_is_refused)
{
	static const struct change rows[] = {
		{"model.vocab", "[]", "not an object of tokens to ids"},
		{"model.vocab", "{}", "tokenizers gives it 0"},
		{"model.vocab.he", "1", "id 1 has two tokens"},
		{"model.vocab.he", "-1", "id of \"he\" is not a number from 0 to 2097151"},
		{"model.vocab.he", "2097152", "id of \"he\" is not a number from 0 to 2097151"},
		{"model.vocab.he", "256.0", "id of \"he\" is not a number"},
		{"model.vocab.he", "null", "id of \"he\" is not a number"},
		{"model.vocab.he", NULL, "merge 0: its result is not in the vocabulary"},
		{"model.vocab.a", NULL, "no token for the byte 0x61"},
		{"model.vocab.b b", "261", "token 261 \"b b\" is not byte-level text"},
		{"model.vocab.\xe4\xb8\xad", "261", "is not byte-level text"},
		{"model.vocab.", "261", "token 261 \"\" is not byte-level text"},
	};

	assert_all_refused(state, rows, N(rows));
}

FOLDER_TEST(merges_that_are_not_sound_are_refused)
{
	static const struct change rows[] = {
		{"model.merges", "{}", "model.merges is not a list"},
		{"model.merges", "[\"he\"]", "merge 0: expected two fields: \"he\""},
		{"model.merges", "[\"h e\", \"l l l\"]", "merge 1: expected two fields"},
		{"model.merges", "[\"h \"]", "merge 0: \"\" is not byte-level text"},
		{"model.merges", "[[\"h\"]]", "merge 0: expected two strings"},
		{"model.merges", "[[\"h\", 1]]", "merge 0: expected two strings"},
		{"model.merges", "[[\"h\", \"e\", \"l\"]]", "merge 0: expected two strings"},
		{"model.merges", "[1]", "merge 0: expected two strings"},
		{"model.merges", "[\"h hh\"]",
			"merge 0: \"hh\" is not in the vocabulary, or is special: remove the merge"},
		{"model.merges", "[\"a b\"]", "merge 0: its result is not in the vocabulary"},
		{"model.merges", "[\"h e\", \"h e\"]", "merges 0 and 1 join the same two tokens"},
	};

	assert_all_refused(state, rows, N(rows));
}

/* A byte is written as one or two bytes of UTF-8: both ways a token of 1024 bytes fits. */
FOLDER_TEST(the_longest_token_is_1024_bytes)
{
	static const char *const unit[] = {"a", "\xc4\xa0"};

	for (size_t u = 0; u < N(unit); u++) {
		json_t *document = small_tokenizer_json();
		json_t *model = json_object_get(document, "model");
		json_t *vocab = json_object_get(model, "vocab"), *merges = json_array();
		char text[2052] = "", left[2052], pair[4200];
		size_t size = strlen(unit[u]);

		strcpy(text, unit[u]);
		for (int id = 261; strlen(text) < 1024 * size; id++) {
			strcpy(left, text);
			strcat(text, left);
			snprintf(pair, sizeof(pair), "%s %s", left, left);
			json_object_set_new(vocab, text, json_integer(id));
			json_array_append_new(merges, json_string(pair));
		}
		json_object_set_new(model, "merges", merges);
		json_object_set_new(vocab, "he", json_integer(256));
		json_incref(document);
		assert_loads(put_json(state, "tokenizer.json", document));
		strcat(text, unit[u]);
		json_object_set_new(vocab, text, json_integer(300));
		assert_refused(put_json(state, "tokenizer.json", document),
			size == 1 ? "token 300 has 1025 bytes, the limit is 1024"
				  : "token 300 has 2050 bytes of text, the limit is 2048");
	}
}

FOLDER_TEST(bad_json_is_refused_with_its_line)
{
	char deep[20001];

	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_refused(put_text(state, "a.json", ""), "a.json\" line 1:");
	assert_refused(put_text(state, "a.json", "{\n\"model\": x}"), "a.json\" line 2:");
	assert_refused(put_text(state, "a.json", "[]"), "expected a JSON object");
	assert_refused(put_text(state, "a.json", "{\"a\": 1, \"a\": 2}"), "duplicate");
	assert_refused(put_text(state, "a.json", deep), "depth");
	assert_refused(put_file(state, "a.json", "{\"\0\": 1}", 9), "line 1:");
	assert_refused(put_text(state, "a.json", "{\"\xff\": 1}"), "line 1:");
}

/* A file with this vocabulary and these merges, from line 3 on. */
static const char *
put_parts(void **state, const char *vocab, const char *merges)
{
	static char text[4096];
	json_t *document = small_tokenizer_json();
	char *rest;

	set_at(document, "model.vocab", NULL);
	set_at(document, "model.merges", NULL);
	set_at(document, "added_tokens", "[]");
	rest = json_dumps(document, JSON_COMPACT);
	json_decref(document);
	assert_memory_equal(rest + strlen(rest) - 2, "}}", 2);
	rest[strlen(rest) - 2] = '\0';
	snprintf(text, sizeof(text), "%s,\n\"vocab\":\n%s,\n\"merges\":\n%s}\n}", rest, vocab,
		merges);
	free(rest);
	return put_text(state, "a.json", text);
}

/* The vocabulary and the merges have a reader of their own. */
FOLDER_TEST(bad_json_in_the_large_parts_is_refused_with_its_line)
{
	static const char *const rows[][3] = {
		{"{\"a\" 1}", "[]", "line 3: expected a colon"},
		{"{\"a\": 1\n\"b\": 2}", "[]", "line 4: expected a comma"},
		{"{\"a\": 1,}", "[]", "line 3: expected a string"},
		{"{\"\\x\": 1}", "[]", "line 3: invalid escape sequence"},
		{"{\"\\u00e\": 1}", "[]", "line 3: invalid escape sequence"},
		{"{\"\\u0000\": 1}", "[]", "line 3: \\u0000 is not allowed"},
		{"{\"\\ud83d\": 1}", "[]", "line 3: invalid escape sequence"},
		{"{\"\\ude00\": 1}", "[]", "line 3: invalid escape sequence"},
		{"{\"\t\": 1}", "[]", "line 3: a control character in a string"},
		{"{\"\xff\": 1}", "[]", "line 3: a string is not UTF-8"},
		{"{\"a\": 01}", "[]", "id of \"a\" is not a number"},
		{"{\"a\": 1, \"\\u0061\": 2}", "[]", "token \"a\" occurs twice"},
		{"{", "[]", "line 6: expected a comma"}, /* no end: nothing is cut out */
	};
	static const char ids[] = "{\"a\":0}";

	for (size_t i = 0; i < N(rows); i++)
		assert_refused(put_parts(state, rows[i][0], rows[i][1]), rows[i][2]);
	assert_refused(put_parts(state, ids, "[\n[\"a\" \"a\"]]"), "line 6: expected a comma");
}

/* Escaped or not, it is the same text. */
FOLDER_TEST(escapes_in_the_large_parts_are_decoded)
{
	json_t *document = small_tokenizer_json();
	uint32_t want = assert_loads(put_json(state, "tokenizer.json", json_incref(document)));
	char *text = json_dumps(document, JSON_ENSURE_ASCII);

	assert_non_null(strstr(text, "\\u0120")); /* of a blank */
	assert_int_equal(assert_loads(put_text(state, "a.json", text)), want);
	free(text);
	json_decref(document);
}

TEST(a_text_in_memory_loads_as_its_file)
{
	json_t *document = small_tokenizer_json();
	char *text = json_dumps(document, 0);
	struct tok_added_info added;
	struct tok_merge merge;
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load_memory("memory", text, strlen(text), NULL, &err);

	assert_non_null(v);
	assert_string_equal(tok_vocab_info(v).path, "memory");
	assert_true(tok_vocab_merge(v, 2, &merge)); /* "he" and "ll" */
	assert_int_equal(merge.left, 256);
	assert_int_equal(merge.right, 257);
	assert_int_equal(merge.result, 258);
	assert_false(tok_vocab_merge(v, 4, &merge));
	assert_true(tok_vocab_added(v, 0, &added));
	assert_int_equal(added.id, 260);
	assert_true(added.special);
	assert_false(tok_vocab_added(v, 1, &added));
	assert_non_null(tok_vocab_regex(v, 0));
	assert_null(tok_vocab_regex(v, 1));
	tok_vocab_free(v);

	assert_null(tok_vocab_load_memory("memory", text, strlen(text) - 1, NULL, &err));
	assert_non_null(strstr(err.text, "vocab \"memory\" line 1: "));
	assert_null(tok_vocab_load_memory("memory", "", 0, NULL, &err));
	assert_null(tok_vocab_load_memory("memory", text, (size_t)1 << 40, NULL, &err));
	assert_non_null(strstr(err.text, "the limit of a vocabulary file is 268435456"));
	free(text);
	json_decref(document);
}

#define REPLACE(from, to)                                                                          \
	"{\"type\": \"Replace\", \"pattern\": {\"String\": \"" from "\"}, \"content\": \"" to "\"}"
#define LOWER "{\"type\": \"Lowercase\"}"
#define STRIP(left) "{\"type\": \"Strip\", \"strip_left\": " left ", \"strip_right\": true}"
#define NORMALIZERS(list) "{\"type\": \"Sequence\", \"normalizers\": [" list "]}"

/* Clients and appliances of different builds compare it. */
FOLDER_TEST(the_checksum_is_of_each_step_of_a_normalizer_and_of_nothing_else)
{
	static const char *const rows[] = {
		NORMALIZERS(
			LOWER ", " REPLACE("a", "xy") ", " REPLACE("ab", "c") ", " STRIP("true")),
		NORMALIZERS(
			LOWER ", " REPLACE("b", "xy") ", " REPLACE("ab", "c") ", " STRIP("true")),
		NORMALIZERS(
			LOWER ", " REPLACE("a", "xz") ", " REPLACE("ab", "c") ", " STRIP("true")),
		NORMALIZERS(
			LOWER ", " REPLACE("a", "xy") ", " REPLACE("abc", "c") ", " STRIP("true")),
		NORMALIZERS(
			LOWER ", " REPLACE("a", "xy") ", " REPLACE("ab", "") ", " STRIP("true")),
		NORMALIZERS(
			LOWER ", " REPLACE("a", "xy") ", " REPLACE("ab", "c") ", " STRIP("false")),
		NORMALIZERS(
			REPLACE("a", "xy") ", " LOWER ", " REPLACE("ab", "c") ", " STRIP("true")),
		NORMALIZERS(LOWER ", " REPLACE("a", "xy") ", " STRIP("true")),
	};
	uint32_t sum[N(rows)];

	for (size_t i = 0; i < N(rows); i++) {
		json_t *document = small_tokenizer_json();

		set_at(document, "normalizer", rows[i]);
		sum[i] = assert_loads(put_json(state, "tokenizer.json", document));
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(sum[i], sum[k]);
	}
	assert_int_equal(sum[0], 0xfaff8ee7);
}

FOLDER_TEST(a_normalizer_that_makes_too_much_of_a_character_is_refused_with_the_limit)
{
	static const char says[] = "the normalizer makes too much of U+0061: the limits are 64 "
				   "characters and 63 bytes";
	static const char *const rows[] = {
		NORMALIZERS(REPLACE("a", "bbbbbbbbbbbbbbb") ", " REPLACE("b", "ccccc")),
		NORMALIZERS(REPLACE("a", "bbbbbbbbbbbbbbb") ", " REPLACE(
			"b", "\xe4\xb8\xad\xe4\xb8\xad")),
	};

	for (size_t i = 0; i < N(rows); i++) {
		json_t *document = small_tokenizer_json();

		set_at(document, "normalizer", rows[i]);
		assert_refused(put_json(state, "tokenizer.json", document), says);
	}
}

/* If no merge before makes a part, all bytes of the token are merged. */
FOLDER_TEST(many_long_tokens_with_parts_that_no_merge_makes_are_refused)
{
	enum { TOKENS = 1100, LEN = 1000 }; /* their squares are above the limit, 2^30 */
	json_t *document = small_tokenizer_json();
	json_t *vocab = json_object_get(json_object_get(document, "model"), "vocab");
	json_t *merges = json_object_get(json_object_get(document, "model"), "merges");

	for (int t = 0; t < TOKENS; t++) {
		char part[LEN], token[LEN + 1], merge[LEN + 2];

		for (int i = 0; i < LEN - 1; i++)
			part[i] = (char)('a' + (t >> i % 11 & 1));
		part[LEN - 1] = '\0';
		snprintf(token, sizeof(token), "%sc", part);
		snprintf(merge, sizeof(merge), "%s c", part);
		json_object_set_new(vocab, part, json_integer(SMALL_RANKS + 1 + 2 * t));
		json_object_set_new(vocab, token, json_integer(SMALL_RANKS + 2 + 2 * t));
		json_array_append_new(merges, json_string(merge));
	}
	assert_refused(put_json(state, "tokenizer.json", document),
		"its tokens are too long: the squares of their bytes");
}
