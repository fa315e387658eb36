/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tokenizers` does with the ids of a text: ids around it (processors/), a largest number of
 * ids (utils/truncation.rs), padding to a smallest one (utils/padding.rs).
 */
#include <string.h>

#include "parts.h"

/* ---- post_processor ---- */

/* All fields concern offsets. */
static const struct tok_json_rule byte_level_rules[] = {
	{"type", NULL, NULL, true},
	{"add_prefix_space", "true, false", NULL, false},
	{"trim_offsets", "true, false", NULL, false},
	{"use_regex", "true, false", NULL, false},
};

static const struct tok_json_rule template_rules[] = {
	{"type", NULL, NULL, true},
	{"single", NULL, NULL, true},
	{"pair", NULL, NULL, true},
	{"special_tokens", NULL, NULL, true},
};

static const struct tok_json_rule cls_sep_rules[] = {
	{"type", NULL, NULL, true},
	{"sep", NULL, NULL, true},
	{"cls", NULL, NULL, true},
	{"trim_offsets", "true, false", NULL, false},
	{"add_prefix_space", "true, false", NULL, false},
};
#define BERT_RULES (N(cls_sep_rules) - 2) /* RobertaProcessing has all */

static const struct tok_json_rule sequence_rules[] = {
	{"type", NULL, NULL, true},
	{"processors", NULL, NULL, true},
};

static bool
add_id(const char *file, const struct tok_json *id, bool behind, const struct tok_model *m,
	struct tok_template *t, struct tok_error *err)
{
	const int64_t value = tok_json_integer_value(id);

	if (!tok_json_is_integer(id) || value < 0 || value >= m->n_tokens - m->n_parts ||
		m->token[value].len == 0)
		return tok_fail(err, "%s: post_processor: %lld is not an id of the vocabulary",
			file, (long long)(tok_json_is_integer(id) ? value : -1));
	if ((behind ? t->n_after : t->n_before) == TOK_TEMPLATE_MAX)
		return tok_fail(err,
			"%s: post_processor puts more than %u ids before or after a text: not "
			"implemented",
			file, TOK_TEMPLATE_MAX);
	if (behind)
		t->after[t->n_after++] = (uint32_t)value;
	else
		t->before[t->n_before++] = (uint32_t)value;
	return true;
}

/* How often a list has each text. */
struct texts {
	uint32_t a, b;
};

/* Read one entry of a list: {"Sequence": {"id": "A"}}, or {"SpecialToken": {"id": its name}}. */
static bool
read_piece(const char *file, const char *list, const struct tok_json *piece,
	const struct tok_json *special, const struct tok_model *m, struct tok_template *t,
	struct texts *texts, struct tok_error *err)
{
	const char *text =
		tok_json_string_value(tok_json_get(tok_json_get(piece, "Sequence"), "id"));
	const char *name =
		tok_json_string_value(tok_json_get(tok_json_get(piece, "SpecialToken"), "id"));
	const struct tok_json *ids = tok_json_get(tok_json_get(special, name ? name : ""), "ids");
	const struct tok_json *id;
	size_t i;

	if (tok_json_object_size(piece) == 1 && text != NULL &&
		(strcmp(text, "A") == 0 || strcmp(text, "B") == 0)) {
		*(text[0] == 'A' ? &texts->a : &texts->b) += 1;
		return true;
	}
	if (tok_json_object_size(piece) != 1 || name == NULL)
		return tok_fail(err,
			"%s: post_processor.%s: expected a list of Sequence, A or B, and SpecialToken",
			file, list);
	if (tok_json_array_size(ids) == 0)
		return tok_fail(err,
			"%s: post_processor.special_tokens has no ids of \"%.60s\", which is in %s",
			file, name, list);
	tok_json_array_foreach (ids, i, id) {
		if (!add_id(file, id, texts->a + texts->b > 0, m, t, err))
			return false;
	}
	return true;
}

/* Collect the ids of a list in *t. */
static bool
read_list(const char *file, const char *list, const struct tok_json *post,
	const struct tok_model *m, struct tok_template *t, struct texts *texts,
	struct tok_error *err)
{
	const struct tok_json *pieces = tok_json_get(post, list);
	const struct tok_json *piece;
	size_t i;

	*texts = (struct texts){0};
	if (!tok_json_is_array(pieces))
		return tok_fail(err, "%s: post_processor.%s is not a list", file, list);
	tok_json_array_foreach (pieces, i, piece) {
		if (!read_piece(file, list, piece, tok_json_get(post, "special_tokens"), m, t,
			    texts, err))
			return false;
	}
	return true;
}

static bool
read_template(const char *file, const struct tok_json *post, const struct tok_model *m,
	struct tok_template *t, struct tok_error *err)
{
	struct tok_template of_pair = {0}; /* checked only: no pairs are encoded */
	struct texts texts;

	if (!read_list(file, "pair", post, m, &of_pair, &texts, err) ||
		!read_list(file, "single", post, m, t, &texts, err))
		return false;
	return (texts.a == 1 && texts.b == 0) ||
	       tok_fail(err, "%s: post_processor.single: expected Sequence A once, and no B", file);
}

static bool
read_cls_sep(const char *file, const struct tok_json *post, const struct tok_model *m,
	struct tok_template *t, struct tok_error *err)
{
	const struct tok_json *cls = tok_json_get(post, "cls"), *sep = tok_json_get(post, "sep");

	if (tok_json_array_size(cls) != 2 || tok_json_array_size(sep) != 2)
		return tok_fail(err,
			"%s: post_processor: expected sep and cls, each a token and its id", file);
	return add_id(file, tok_json_at(cls, 1), false, m, t, err) &&
	       add_id(file, tok_json_at(sep, 1), true, m, t, err);
}

static bool read_processor(const char *file, const char *what, const struct tok_json *post,
	const struct tok_model *m, struct tok_template *t, struct tok_error *err);

/*
 * Only one of the processors may add ids. A second one would put its ids around each of the texts
 * that TemplateProcessing made.
 */
static bool
read_sequence(const char *file, const struct tok_json *post, const struct tok_model *m,
	struct tok_template *t, struct tok_error *err)
{
	const struct tok_json *list = tok_json_get(post, "processors");
	const struct tok_json *one;
	size_t i;

	if (!tok_json_is_array(list))
		return tok_fail(err, "%s: post_processor.processors is not a list", file);
	tok_json_array_foreach (list, i, one) {
		struct tok_template by = {0};

		if (!read_processor(file, "post_processor.processors", one, m, &by, err))
			return false;
		if (by.n_before + by.n_after == 0)
			continue;
		if (t->n_before + t->n_after > 0)
			return tok_fail(err,
				"%s: post_processor.processors: two that add ids are not implemented "
				"(implemented: one)",
				file);
		*t = by;
	}
	return true;
}

static bool
read_processor(const char *file, const char *what, const struct tok_json *post,
	const struct tok_model *m, struct tok_template *t, struct tok_error *err)
{
	const char *type = tok_json_string_value(tok_json_get(post, "type"));

	type = type == NULL ? "" : type;
	if (strcmp(type, "ByteLevel") == 0)
		return tok_json_check(file, what, post, byte_level_rules, N(byte_level_rules), err);
	if (strcmp(type, "TemplateProcessing") == 0)
		return tok_json_check(file, what, post, template_rules, N(template_rules), err) &&
		       read_template(file, post, m, t, err);
	if (strcmp(type, "BertProcessing") == 0)
		return tok_json_check(file, what, post, cls_sep_rules, BERT_RULES, err) &&
		       read_cls_sep(file, post, m, t, err);
	if (strcmp(type, "RobertaProcessing") == 0)
		return tok_json_check(file, what, post, cls_sep_rules, N(cls_sep_rules), err) &&
		       read_cls_sep(file, post, m, t, err);
	if (strcmp(type, "Sequence") == 0)
		return tok_json_check(file, what, post, sequence_rules, N(sequence_rules), err) &&
		       read_sequence(file, post, m, t, err);
	return tok_fail(err,
		"%s: %s \"%.60s\" is not implemented (implemented: ByteLevel, TemplateProcessing, "
		"BertProcessing, RobertaProcessing, Sequence)",
		file, what, type);
}

/* ---- truncation, padding ---- */

static const struct tok_json_rule truncation_rules[] = {
	{"direction", "\"Left\", \"Right\"", NULL, false},
	{"max_length", NULL, NULL, true},
	{"strategy", "\"LongestFirst\", \"OnlyFirst\", \"OnlySecond\"", NULL, true},
	{"stride", NULL, NULL, true},
};

static const struct tok_json_rule padding_rules[] = {
	{"strategy", NULL, NULL, true},
	{"direction", "\"Left\", \"Right\"", NULL, true},
	{"pad_to_multiple_of", NULL, NULL, false},
	{"pad_id", NULL, NULL, true},
	{"pad_type_id", NULL, NULL, true},
	{"pad_token", NULL, NULL, true},
};

static bool
read_number(const char *file, const char *what, const char *key, const struct tok_json *value,
	uint32_t *n, struct tok_error *err)
{
	if (!tok_json_is_integer(value) || tok_json_integer_value(value) < 0 ||
		tok_json_integer_value(value) > UINT32_MAX)
		return tok_fail(err, "%s: %s.%s: expected a number from 0 to %u", file, what, key,
			UINT32_MAX);
	*n = (uint32_t)tok_json_integer_value(value);
	return true;
}

static bool
is_text(const struct tok_json *object, const char *key, const char *text)
{
	const char *value = tok_json_string_value(tok_json_get(object, key));

	return value != NULL && strcmp(value, text) == 0;
}

static bool
read_truncation(const char *file, const struct tok_json *object, struct tok_truncation *t,
	struct tok_error *err)
{
	if (tok_json_is_absent(object))
		return true;
	t->on = true;
	t->left = is_text(object, "direction", "Left");
	t->pairs_only = is_text(object, "strategy", "OnlySecond");
	return tok_json_check(
		       file, "truncation", object, truncation_rules, N(truncation_rules), err) &&
	       read_number(file, "truncation", "max_length", tok_json_get(object, "max_length"),
		       &t->max_length, err) &&
	       read_number(file, "truncation", "stride", tok_json_get(object, "stride"), &t->stride,
		       err);
}

static bool
read_padding(const char *file, const struct tok_json *object, struct tok_padding *p,
	struct tok_error *err)
{
	const struct tok_json *strategy = tok_json_get(object, "strategy");
	const struct tok_json *multiple = tok_json_get(object, "pad_to_multiple_of");

	if (tok_json_is_absent(object))
		return true;
	p->on = true;
	p->left = is_text(object, "direction", "Left");
	if (!tok_json_check(file, "padding", object, padding_rules, N(padding_rules), err))
		return false;
	p->fixed = tok_json_object_size(strategy) == 1 && tok_json_get(strategy, "Fixed") != NULL;
	if (!p->fixed && !is_text(object, "strategy", "BatchLongest"))
		return tok_fail(err,
			"%s: padding.strategy is not implemented (implemented: \"BatchLongest\", "
			"{\"Fixed\": ...})",
			file);
	return (!p->fixed || read_number(file, "padding", "strategy.Fixed",
				     tok_json_get(strategy, "Fixed"), &p->length, err)) &&
	       (tok_json_is_absent(multiple) || read_number(file, "padding", "pad_to_multiple_of",
							multiple, &p->multiple_of, err)) &&
	       read_number(
		       file, "padding", "pad_id", tok_json_get(object, "pad_id"), &p->id, err) &&
	       read_number(file, "padding", "pad_type_id", tok_json_get(object, "pad_type_id"),
		       &p->type_id, err) &&
	       (tok_json_is_string(tok_json_get(object, "pad_token")) ||
		       tok_fail(err, "%s: padding.pad_token is not a text", file));
}

bool
tok_json_shape(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *post = tok_json_get(root, "post_processor");

	return (tok_json_is_absent(post) ||
		       read_processor(file, "post_processor", post, m, &m->shape.around, err)) &&
	       read_truncation(file, tok_json_get(root, "truncation"), &m->shape.truncation, err) &&
	       read_padding(file, tok_json_get(root, "padding"), &m->shape.padding, err);
}
