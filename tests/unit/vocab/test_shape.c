/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates around a text, truncation and padding: what a tokenizer.json says of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

struct change {
	const char *at, *value; /* see set_at() */
	const char *says;
};
#define N(rows) (sizeof(rows) / sizeof(rows[0]))

static const char text[] = "hell w";
static const uint32_t text_ids[] = {258, 259};

#define SPECIAL(name) "{\"SpecialToken\": {\"id\": \"" name "\", \"type_id\": 0}}"
#define TEXT(which) "{\"Sequence\": {\"id\": \"" which "\", \"type_id\": 0}}"
#define TOKEN(name, ids) "\"" name "\": {\"id\": \"" name "\", \"ids\": " ids ", \"tokens\": []}"
#define TEMPLATE(single, tokens)                                                                   \
	"{\"type\": \"TemplateProcessing\", \"single\": [" single                                  \
	"], \"pair\": [" TEXT("A") ", " TEXT("B") "], \"special_tokens\": {" tokens "}}"
#define BYTES "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": false}"
#define BERT(cls, sep)                                                                             \
	"{\"type\": \"BertProcessing\", \"sep\": [\"s\", " sep "], \"cls\": [\"c\", " cls "]}"
#define ROBERTA                                                                                    \
	"{\"type\": \"RobertaProcessing\", \"sep\": [\"s\", 8], \"cls\": [\"c\", 7],"              \
	" \"trim_offsets\": true, \"add_prefix_space\": false}"
#define SEQUENCE(list) "{\"type\": \"Sequence\", \"processors\": [" list "]}"

static struct tok_vocab *
load_with(void **state, const char *at, const char *value)
{
	json_t *document = small_tokenizer_json();
	struct tok_error err;
	struct tok_vocab *v;

	set_at(document, at, value);
	v = tok_vocab_load(put_json(state, "tokenizer.json", document), NULL, &err);
	if (v == NULL)
		fail_msg("%s: %s", value, err.text);
	return v;
}

struct around {
	const char *post_processor;
	uint32_t n_before, before[3], n_after, after[3];
};

static void
assert_ids(const uint32_t *got, size_t n, const struct around *want)
{
	assert_int_equal(n, want->n_before + 2 + want->n_after);
	assert_memory_equal(got, want->before, want->n_before * sizeof(*got));
	assert_memory_equal(got + want->n_before, text_ids, sizeof(text_ids));
	assert_memory_equal(got + want->n_before + 2, want->after, want->n_after * sizeof(*got));
}

/* Byte by byte, into as little room as may be, and once more where it was too little. */
static void
assert_streamed(const struct tok_vocab *v, const struct around *want)
{
	struct tok_stream s;
	uint32_t ids[64], part[TOK_STREAM_HELD_MAX];
	size_t n = 0, at = 0;
	struct tok_result r;

	tok_stream_init(&s, v, NULL, TOK_TEMPLATE);
	do {
		const bool last = at + 1 == sizeof(text) - 1;
		const size_t room = tok_stream_bound(&s, 1);

		assert_in_range(room, 1, TOK_STREAM_HELD_MAX);
		r = tok_stream_feed(&s, text + at, 1, last, part, room - 1);
		if (r.status == TOK_MORE) {
			assert_in_range(r.produced, 0, room - 1);
			memcpy(ids + n, part, r.produced * sizeof(*ids));
			n += r.produced;
			r = tok_stream_feed(&s, text + at, 1, last, part, room);
		}
		assert_int_equal(r.status, TOK_OK);
		memcpy(ids + n, part, r.produced * sizeof(*ids));
		n += r.produced;
		if (at == 0)
			assert_in_range(
				n, want->n_before, want->n_before + 1); /* at the first call */
	} while (++at < sizeof(text) - 1);
	assert_int_equal(tok_stream_bound(&s, 0), 0);
	assert_ids(ids, n, want);
}

FOLDER_TEST(a_template_is_put_around_a_text)
{
	static const struct around rows[] = {
		{"null", 0, {0}, 0, {0}},
		{BYTES, 0, {0}, 0, {0}},
		{TEMPLATE(SPECIAL("a") ", " TEXT("A") ", " SPECIAL("b"),
			 TOKEN("a", "[260]") ", " TOKEN("b", "[3, 4]")),
			1, {260}, 2, {3, 4}},
		{TEMPLATE(TEXT("A") ", " SPECIAL("a"), TOKEN("a", "[260]")), 0, {0}, 1, {260}},
		{BERT("7", "8"), 1, {7}, 1, {8}},
		{ROBERTA, 1, {7}, 1, {8}},
		{SEQUENCE(BYTES ", " TEMPLATE(SPECIAL("a") ", " TEXT("A"), TOKEN("a", "[260]"))), 1,
			{260}, 0, {0}},
		{SEQUENCE(BYTES ", " SEQUENCE(ROBERTA) ", " BYTES), 1, {7}, 1, {8}},
		{SEQUENCE(""), 0, {0}, 0, {0}},
	};

	for (size_t i = 0; i < N(rows); i++) {
		struct tok_vocab *v = load_with(state, "post_processor", rows[i].post_processor);
		const struct tok_template *t = &tok_vocab_shape(v)->around;
		const struct around none = {0};
		uint32_t ids[64];
		struct tok_result r;

		assert_int_equal(t->n_before, rows[i].n_before);
		assert_int_equal(t->n_after, rows[i].n_after);
		assert_int_equal(tok_encode_bound(v, 5, TOK_TEMPLATE),
			tok_encode_bound(v, 5, 0) + t->n_before + t->n_after);
		r = tok_encode(v, NULL, text, sizeof(text) - 1, TOK_TEMPLATE, ids, 64);
		assert_int_equal(r.status, TOK_OK);
		assert_ids(ids, r.produced, &rows[i]);
		r = tok_encode(v, NULL, "", 0, TOK_TEMPLATE, ids, t->n_before + t->n_after);
		assert_int_equal(r.status, TOK_OK);
		assert_int_equal(r.produced, t->n_before + t->n_after);
		r = tok_encode(v, NULL, text, sizeof(text) - 1, 0, ids, 64);
		assert_ids(ids, r.produced, &none);
		assert_streamed(v, &rows[i]);
		tok_vocab_free(v);
	}
}

/* Those of the text are the same without a template, and only the right ids have any. */
FOLDER_TEST(ids_of_a_template_have_no_bytes)
{
	struct tok_vocab *v = load_with(state, "post_processor",
		TEMPLATE(SPECIAL("a") ", " TEXT("A") ", " SPECIAL("b"),
			TOKEN("a", "[260, 5]") ", " TOKEN("b", "[3]")));
	static const struct tok_range want[] = {{0, 0}, {0, 0}, {0, 4}, {4, 6}, {0, 0}};
	uint32_t ids[] = {260, 5, 258, 259, 3};
	const size_t n = sizeof(text) - 1;
	struct tok_range range[N(ids)];

	assert_true(tok_offsets(v, text, n, TOK_TEMPLATE, ids, N(ids), range, NULL));
	assert_memory_equal(range, want, sizeof(want));
	assert_true(tok_offsets(v, text, n, 0, ids + 2, 2, range, NULL));
	assert_memory_equal(range, want + 2, 2 * sizeof(*want));
	assert_false(tok_offsets(v, text, n, 0, ids, N(ids), range, NULL));
	assert_false(tok_offsets(v, text, n, TOK_TEMPLATE, ids, N(ids) - 1, range, NULL));
	assert_false(tok_offsets(v, text, n, TOK_TEMPLATE, ids + 1, N(ids) - 1, range, NULL));
	assert_false(tok_offsets(v, text, n, TOK_TEMPLATE, ids, 2, range, NULL));
	for (size_t i = 0; i < N(ids); i++) {
		const uint32_t right = ids[i];

		ids[i] = 7;
		assert_false(tok_offsets(v, text, n, TOK_TEMPLATE, ids, N(ids), range, NULL));
		ids[i] = right;
	}
	ids[2] = ids[4];
	assert_true(tok_offsets(v, "", 0, TOK_TEMPLATE, ids, 3, range, NULL));
	assert_memory_equal(range + 2, want + 4, sizeof(*want));
	tok_vocab_free(v);
}

FOLDER_TEST(a_template_is_not_in_the_checksum)
{
	struct tok_vocab *with = load_with(state, "post_processor", BERT("7", "8"));
	struct tok_vocab *without = load_with(state, "post_processor", "null");

	assert_int_equal(tok_vocab_info(with).checksum, tok_vocab_info(without).checksum);
	tok_vocab_free(with);
	tok_vocab_free(without);
}

#define SEVENTEEN "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]"
#define SIXTEEN "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]"

FOLDER_TEST(the_limit_of_a_template_is_16_ids_on_each_side)
{
	struct tok_vocab *v = load_with(state, "post_processor",
		TEMPLATE(SPECIAL("a") ", " TEXT("A") ", " SPECIAL("a"), TOKEN("a", SIXTEEN)));

	assert_int_equal(tok_vocab_shape(v)->around.n_before, 16);
	assert_int_equal(tok_vocab_shape(v)->around.n_after, 16);
	tok_vocab_free(v);
}

FOLDER_TEST(what_is_no_template_is_refused_by_name)
{
	static const struct change rows[] = {
		{"post_processor", "1",
			"post_processor \"\" is not implemented (implemented: Byte"},
		{"post_processor", "{\"type\": \"Odd\"}",
			"post_processor \"Odd\" is not implemented"},
		{"post_processor", SEQUENCE("{\"type\": \"Odd\"}"),
			"post_processor.processors \"Odd\" is not implemented"},
		{"post_processor", "{\"type\": \"Sequence\", \"processors\": 1}",
			"processors is not a list"},
		{"post_processor", "{\"type\": \"Sequence\"}",
			"post_processor.processors is missing"},
		{"post_processor", "{\"type\": \"TemplateProcessing\"}",
			"post_processor.single is missing"},
		{"post_processor", TEMPLATE("", ""), "single: expected Sequence A once, and no B"},
		{"post_processor", TEMPLATE(TEXT("A") ", " TEXT("A"), ""),
			"expected Sequence A once"},
		{"post_processor", TEMPLATE(TEXT("A") ", " TEXT("B"), ""),
			"expected Sequence A once"},
		{"post_processor", TEMPLATE(TEXT("C"), ""), "single: expected a list of Sequence"},
		{"post_processor", TEMPLATE("1", ""), "single: expected a list of Sequence"},
		{"post_processor", TEMPLATE(SPECIAL("a") ", " TEXT("A"), ""),
			"special_tokens has no ids of \"a\", which is in single"},
		{"post_processor", TEMPLATE(SPECIAL("a") ", " TEXT("A"), TOKEN("a", "[]")),
			"special_tokens has no ids of \"a\""},
		{"post_processor", TEMPLATE(SPECIAL("a") ", " TEXT("A"), TOKEN("a", "[261]")),
			"post_processor: 261 is not an id of the vocabulary"},
		{"post_processor", TEMPLATE(SPECIAL("a") ", " TEXT("A"), TOKEN("a", "[\"x\"]")),
			"post_processor: -1 is not an id of the vocabulary"},
		{"post_processor", TEMPLATE(SPECIAL("a") ", " TEXT("A"), TOKEN("a", SEVENTEEN)),
			"more than 16 ids before or after a text"},
		{"post_processor", SEQUENCE(BERT("1", "2") ", " ROBERTA),
			"processors: two that add ids are not implemented"},
		{"post_processor", BERT("1", "261"), "post_processor: 261 is not an id"},
		{"post_processor", BERT("-5", "1"), "post_processor: -5 is not an id"},
		{"post_processor", "{\"type\": \"BertProcessing\", \"sep\": [1], \"cls\": [2]}",
			"post_processor: expected sep and cls, each a token and its id"},
		{"post_processor",
			"{\"type\": \"BertProcessing\", \"sep\": 1, \"cls\": 2, \"trim_offsets\": true}",
			"post_processor.trim_offsets is not implemented"},
	};

	for (size_t i = 0; i < N(rows); i++) {
		json_t *document = small_tokenizer_json();

		set_at(document, rows[i].at, rows[i].value);
		assert_refused(put_json(state, "tokenizer.json", document), rows[i].says);
	}
}

#define TRUNCATION                                                                                 \
	"{\"direction\": \"Left\", \"max_length\": 512, \"strategy\": \"LongestFirst\","           \
	" \"stride\": 3}"
#define PADDING                                                                                    \
	"{\"strategy\": {\"Fixed\": 128}, \"direction\": \"Left\", \"pad_to_multiple_of\": 8,"     \
	" \"pad_id\": 260, \"pad_type_id\": 1, \"pad_token\": \"x\"}"

FOLDER_TEST(truncation_and_padding_are_kept_for_the_caller)
{
	struct tok_vocab *v = load_with(state, "truncation", TRUNCATION);
	const struct tok_truncation *t = &tok_vocab_shape(v)->truncation;
	const struct tok_padding *p;

	assert_true(t->on && t->left && !t->pairs_only && t->max_length == 512 && t->stride == 3);
	assert_false(tok_vocab_shape(v)->padding.on);
	tok_vocab_free(v);
	v = load_with(state, "padding", PADDING);
	p = &tok_vocab_shape(v)->padding;
	assert_true(p->on && p->left && p->fixed && p->length == 128 && p->multiple_of == 8 &&
		    p->id == 260 && p->type_id == 1);
	assert_false(tok_vocab_shape(v)->truncation.on);
	tok_vocab_free(v);
	v = load_with(state, "padding",
		"{\"strategy\": \"BatchLongest\", \"direction\": \"Right\", \"pad_to_multiple_of\": "
		"null, \"pad_id\": 0, \"pad_type_id\": 0, \"pad_token\": \"x\"}");
	p = &tok_vocab_shape(v)->padding;
	assert_true(p->on && !p->left && !p->fixed && p->multiple_of == 0);
	tok_vocab_free(v);
}

FOLDER_TEST(other_truncation_and_padding_are_refused_by_name)
{
	static const struct change rows[] = {
		{"truncation.direction", "\"Up\"",
			"truncation.direction \"Up\" is not implemented"},
		{"truncation.max_length", "-1",
			"truncation.max_length: expected a number from 0 to"},
		{"truncation.max_length", NULL, "truncation.max_length is missing"},
		{"truncation.strategy", "\"DoNot\"", "truncation.strategy \"DoNot\" is not"},
		{"truncation.stride", "\"x\"", "truncation.stride: expected a number"},
		{"truncation.odd", "1", "truncation.odd is not implemented"},
		{"truncation", "1", "truncation is missing or not an object"},
		{"padding.strategy", "\"Longest\"", "padding.strategy is not implemented"},
		{"padding.strategy", "{\"Fixed\": 1, \"x\": 1}",
			"padding.strategy is not implemented"},
		{"padding.strategy", "{\"Fixed\": -1}",
			"padding.strategy.Fixed: expected a number"},
		{"padding.direction", "1", "padding.direction 1 is not implemented"},
		{"padding.pad_id", "4294967296", "padding.pad_id: expected a number from 0 to"},
		{"padding.pad_token", "1", "padding.pad_token is not a text"},
		{"padding.pad_to_multiple_of", "\"8\"", "pad_to_multiple_of: expected a number"},
		{"padding.odd", "1", "padding.odd is not implemented"},
	};

	for (size_t i = 0; i < N(rows); i++) {
		json_t *document = small_tokenizer_json();

		set_at(document, "truncation", TRUNCATION);
		set_at(document, "padding", PADDING);
		set_at(document, rows[i].at, rows[i].value);
		assert_refused(put_json(state, "tokenizer.json", document), rows[i].says);
	}
}
