/* SPDX-License-Identifier: BSD-3-Clause */
/* BERT's vocabularies: vocab.txt and tokenizer.json, what loads and what is refused by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static const char small[] =
	"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\n##ll\n##o\n.\nhello\nn't\ndo not\n";
#define SMALL_IDS 12

struct change {
	const char *at, *value; /* see set_at() */
	const char *says;
};
#define N(rows) (sizeof(rows) / sizeof(rows[0]))

static json_t *
small_json(void)
{
	json_t *document = json_loads(
		"{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,"
		" \"added_tokens\": [{\"id\": 0, \"content\": \"[PAD]\", \"special\": true},"
		"   {\"id\": 1, \"content\": \"[UNK]\", \"special\": true}],"
		" \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true,"
		"   \"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": true},"
		" \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"
		" \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3],"
		"   \"cls\": [\"[CLS]\", 2]},"
		" \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true},"
		" \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\","
		"   \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100,"
		"   \"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3,"
		"     \"[MASK]\": 4, \"he\": 5, \"##ll\": 6, \"##o\": 7, \".\": 8, \"hello\": 9,"
		"     \"n't\": 10, \"do not\": 11}}}",
		0, NULL);

	assert_non_null(document);
	return document;
}

static struct tok_vocab *
load(const char *path, const char *pretokenizer)
{
	const struct tok_load_opts opts = {.pretokenizer = pretokenizer};
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(path, &opts, &err);

	if (v == NULL)
		fail_msg("%s", err.text);
	return v;
}

static uint32_t
checksum_of(const char *path, const char *pretokenizer)
{
	struct tok_vocab *v = load(path, pretokenizer);
	uint32_t checksum = tok_vocab_info(v).checksum;

	tok_vocab_free(v);
	return checksum;
}

static void
assert_ids(const struct tok_vocab *v, const char *text, const uint32_t *want, size_t n)
{
	uint32_t ids[512];
	struct tok_result r = tok_encode(v, NULL, text, strlen(text), 0, ids, 512);

	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.produced, n);
	assert_memory_equal(ids, want, n * sizeof(*want));
}

/* [CLS] and [SEP], which of vocab.txt are known by their text. */
static void
assert_template(const struct tok_vocab *v)
{
	static const uint32_t want[] = {2, 9, 3};
	uint32_t ids[17];
	struct tok_result r = tok_encode(v, NULL, "hello", 5, TOK_TEMPLATE, ids, 17);

	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.produced, 3);
	assert_memory_equal(ids, want, sizeof(want));
}

FOLDER_TEST(both_formats_are_the_same_vocabulary)
{
	static const uint32_t want[] = {9, 8, 5, 6, 5, 7, 1};
	const char *file[] = {put_text(state, "vocab.txt", small),
		put_json(state, "tokenizer.json", small_json())};

	for (size_t i = 0; i < N(file); i++) {
		struct tok_vocab *v = load(file[i], NULL);
		struct tok_vocab_info info = tok_vocab_info(v);

		assert_string_equal(info.format, i == 0 ? "vocab.txt" : "tokenizer.json");
		assert_string_equal(info.pretokenizer, "bert");
		assert_int_equal(info.n_ids, SMALL_IDS);
		assert_int_equal(info.n_special, i == 0 ? 5 : 2);
		assert_int_equal(info.n_merges, 0);
		assert_template(v);
		assert_ids(v, "H\xc3\xa9llo. hell heo\xe4\xb8\xad", want, 7);
		tok_vocab_free(v);
	}
	assert_int_equal(checksum_of(file[0], NULL), checksum_of(file[1], NULL));
}

FOLDER_TEST(what_ends_a_line_does_not_count)
{
	static const char *const same[] = {
		"[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nhe\r\n##ll\r\n##o\r\n.\r\nhello\r\nn't"
		"\r\ndo not\r\n",
		"[PAD] \n[UNK]\t\n[CLS]\xc2\xa0\n[SEP]\xe3\x80\x80\n[MASK]\nhe\n##ll\n##o\n.\nhello"
		"\nn't\ndo not",
	};
	uint32_t want = checksum_of(put_text(state, "vocab.txt", small), NULL);

	for (size_t i = 0; i < N(same); i++)
		assert_int_equal(checksum_of(put_text(state, "vocab.txt", same[i]), NULL), want);
}

FOLDER_TEST(of_equal_lines_the_last_is_the_token)
{
	static const uint32_t want[] = {4, 5};
	struct tok_vocab *v = load(put_text(state, "vocab.txt", "[UNK]\na\n\na\na\n[UNK]\n"), NULL);
	uint32_t len;

	assert_ids(v, "A b", want, 2);
	assert_null(tok_vocab_token(v, 0, &len));
	assert_null(tok_vocab_token(v, 1, &len));
	assert_null(tok_vocab_token(v, 2, &len));
	assert_non_null(tok_vocab_token(v, 4, &len));
	tok_vocab_free(v);
}

FOLDER_TEST(what_is_no_vocabulary_is_refused)
{
	static char many[1100 + 8] = "[UNK]\n";

	assert_refused(put_text(state, "vocab.txt", ""), "0 lines or more, expected 1 to");
	assert_refused(put_text(state, "vocab.txt", "a\n"), "no line is [UNK]");
	assert_refused(put_text(state, "vocab.txt", "[UNK]\n\xff\n"), "not UTF-8 at byte 6");
	assert_refused(put_text(state, "vocab.txt", "[UNK]\n\xe4\xb8"), "not UTF-8 at byte 6");
	memset(many + 6, 'a', 1025);
	assert_refused(put_text(state, "vocab.txt", many),
		"line 2: a token of 1025 bytes, the limit is 1024");
	many[6 + 1024] = '\0';
	tok_vocab_free(load(put_text(state, "vocab.txt", many), NULL));
	assert_refused_as(put_text(state, "vocab.txt", small), "gpt2",
		"pretokenizer \"gpt2\" is not implemented for a vocab.txt (implemented: "
		"bert-uncased, bert-cased)");
	assert_refused(put_text(state, "merges.txt", small), "the format is not implemented");
}

FOLDER_TEST(a_cased_vocabulary_has_to_be_called_so)
{
	static const uint32_t cased[] = {1, 0}, uncased[] = {0, 2};
	const char *path = put_text(state, "vocab.txt", "[UNK]\nHe\nhe\n[unusedA]\n");
	struct tok_vocab *v;

	assert_refused(path, "line 2: \"He\" has upper case");
	v = load(path, "bert-cased");
	assert_ids(v, "He H\xc3\xa9", cased, 2);
	tok_vocab_free(v);
	v = load(path, "bert-uncased");
	assert_ids(v, "x H\xc3\xa9", uncased, 2);
	tok_vocab_free(v);
	assert_int_not_equal(checksum_of(path, "bert-cased"), checksum_of(path, "bert-uncased"));
}

FOLDER_TEST(a_name_or_a_folder_is_enough)
{
	const struct tok_load_opts opts = {.search_path = *state};
	char folder[300];
	struct tok_vocab *v;

	put_text(state, "one.txt", small);
	put_text(state, "two/vocab.txt", small);
	for (const char *const *name = (const char *const[]){"one", "two", NULL}; *name; name++) {
		v = tok_vocab_load(*name, &opts, NULL);
		assert_non_null(v);
		tok_vocab_free(v);
	}
	snprintf(folder, sizeof(folder), "%s/two", (const char *)*state);
	tok_vocab_free(load(folder, NULL));
}

FOLDER_TEST(components_that_are_not_implemented_are_refused_by_name)
{
	static const struct change rows[] = {
		{"normalizer.type", "\"Nmt\"", "normalizer \"Nmt\" is not implemented"},
		{"normalizer.lowercase", NULL, "normalizer.lowercase is missing"},
		{"normalizer.strip_accents", "1", "normalizer.strip_accents 1 is not implemented"},
		{"normalizer.odd", "1", "normalizer.odd is not implemented: the key is not known"},
		{"pre_tokenizer.type", "\"Split\"",
			"pre_tokenizer.type \"Split\" is not implemented"},
		{"pre_tokenizer.odd", "1", "pre_tokenizer.odd is not implemented"},
		{"decoder", "null", "decoder null is not implemented"},
		{"decoder.prefix", "\"@@\"", "decoder.prefix \"@@\" is not implemented"},
		{"decoder.cleanup", NULL, "decoder.cleanup is missing"},
		{"model.continuing_subword_prefix", "\"@@\"",
			"model.continuing_subword_prefix \"@@\" is not implemented"},
		{"model.max_input_chars_per_word", "0",
			"max_input_chars_per_word: expected a number from 1 to 500"},
		{"model.max_input_chars_per_word", "501", "expected a number from 1 to 500"},
		{"model.max_input_chars_per_word", "\"100\"", "expected a number from 1 to 500"},
		{"model.unk_token", "\"<unk>\"", "unk_token \"<unk>\" is not in model.vocab"},
		{"model.unk_token", "null", "unk_token \"\" is not in model.vocab"},
		{"model.odd", "1", "model.odd is not implemented"},
		{"model.vocab", "[]", "model.vocab is not an object"},
		{"model.vocab.he", "9", "id 9 has two tokens"},
		{"model.vocab.he", "-1", "id of \"he\" is not a number from 0 to 2097151"},
		{"model.vocab.he", "2097152", "id of \"he\" is not a number from 0"},
		{"added_tokens", "[{\"id\": 30, \"content\": \"x\", \"special\": true}]",
			"has id 30, but tokenizers gives it 12"},
		{"surprise", "1", "surprise is not implemented"},
	};

	for (size_t i = 0; i < N(rows); i++) {
		json_t *document = small_json();

		set_at(document, rows[i].at, rows[i].value);
		assert_refused(put_json(state, "tokenizer.json", document), rows[i].says);
	}
}

FOLDER_TEST(what_decides_no_ids_is_not_in_the_checksum)
{
	static const struct change same[] = {{"normalizer.strip_accents", "true", NULL},
		{"normalizer.strip_accents", NULL, NULL}, {"post_processor", "null", NULL},
		{"post_processor", NULL, NULL}, {"post_processor.cls", "[\"[MASK]\", 4]", NULL},
		{"decoder.cleanup", "false", NULL}, {"added_tokens", "[]", NULL},
		{"added_tokens", NULL, NULL}};
	static const struct change other[] = {{"normalizer.strip_accents", "false", NULL},
		{"normalizer.lowercase", "false", NULL}, {"normalizer.clean_text", "false", NULL},
		{"normalizer.handle_chinese_chars", "false", NULL},
		{"model.max_input_chars_per_word", "99", NULL},
		{"model.unk_token", "\"[PAD]\"", NULL}, {"model.vocab.##o", "12", NULL}};
	uint32_t want = checksum_of(put_json(state, "tokenizer.json", small_json()), NULL);

	for (size_t i = 0; i < N(same) + N(other); i++) {
		const struct change *c = i < N(same) ? &same[i] : &other[i - N(same)];
		json_t *document = small_json();
		uint32_t got;

		set_at(document, c->at, c->value);
		got = checksum_of(put_json(state, "tokenizer.json", document), NULL);
		assert_true((got == want) == (i < N(same)));
	}
}

FOLDER_TEST(a_special_token_outside_the_model_is_never_encoded_to)
{
	static const uint32_t want[] = {9, 1};
	json_t *document = small_json();
	struct tok_vocab *v;
	uint32_t len;

	/* "hello" is special, but the model has it, and special tokens are text. */
	set_at(document, "added_tokens",
		"[{\"id\": 9, \"content\": \"hello\", \"special\": true},"
		" {\"id\": 12, \"content\": \"mask\", \"special\": true}]");
	v = load(put_json(state, "tokenizer.json", document), NULL);
	assert_ids(v, "hello mask", want, 2);
	assert_memory_equal(tok_vocab_token(v, 12, &len), "mask", 4);
	tok_vocab_free(v);
}

FOLDER_TEST(decoding_joins_words_as_the_reference_does)
{
	static const uint32_t ids[] = {6, 5, 6, 7, 8, 10, 11, 99};
	/* The first token as it is; the others after a blank, joined, or cleaned up one by one. */
	static const char want[] = "##ll hello.n't don't";
	struct tok_vocab *v = load(put_text(state, "vocab.txt", small), NULL);
	struct tok_decode_stream d;
	struct tok_result r;
	uint8_t out[64];
	size_t n = 0;

	r = tok_decode(v, ids, 7, out, sizeof(out));
	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.produced, strlen(want));
	assert_memory_equal(out, want, r.produced);
	r = tok_decode(v, ids, 8, out, sizeof(out));
	assert_int_equal(r.error, TOK_ERROR_ID);
	assert_int_equal(r.consumed, 7);
	r = tok_decode(v, ids, 7, out, 6);
	assert_int_equal(r.status, TOK_MORE);
	assert_int_equal(r.consumed, 1);
	tok_decode_stream_init(&d, v);
	for (uint32_t i = 0; i <= 7; i++) {
		r = tok_decode_stream_feed(
			&d, ids + i, i < 7, i == 7, out + n, tok_vocab_info(v).max_token_bytes + 3);
		assert_int_equal(r.status, TOK_OK);
		n += r.produced;
	}
	assert_int_equal(n, strlen(want));
	assert_memory_equal(out, want, n);
	tok_vocab_free(v);
}
