/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "parts.h"
#include "unicode/utf8.h"

const struct tok_json_rule tok_json_type_rules[1] = {
	{"type", NULL, NULL, true},
};

static const struct tok_json_rule sequence_rules[] = {
	{"type", NULL, NULL, true},
	{"normalizers", NULL, NULL, true},
};

const struct tok_json_rule tok_json_strip_rules[3] = {
	{"type", NULL, NULL, true},
	{"strip_left", "true, false", NULL, true},
	{"strip_right", "true, false", NULL, true},
};

const struct tok_json_rule tok_json_replace_rules[3] = {
	{"type", NULL, NULL, true},
	{"pattern", NULL, NULL, true},
	{"content", NULL, NULL, true},
};

static const struct tok_json_rule bert_rules[] = {
	{"type", NULL, NULL, true},
	{"clean_text", "true, false", NULL, true},
	{"handle_chinese_chars", "true, false", NULL, true},
	{"strip_accents", "null, true, false", NULL, false},
	{"lowercase", "true, false", NULL, true},
};

static uint32_t
count(const struct tok_model_norm *norm, enum tok_norm_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < norm->n; i++)
		n += norm->step[i].kind == kind;
	return n;
}

/* A new step; `most`: as many as there may be of its kind. NULL, and *err filled in: too many. */
static struct tok_model_step *
add(const char *file, const char *what, struct tok_model_norm *norm, enum tok_norm_kind kind,
	uint32_t most, struct tok_error *err)
{
	if (count(norm, kind) == most || norm->n == TOK_NORMS_MAX) {
		tok_fail(err,
			"%s: %s is one too many of its kind: not implemented (implemented: %u)",
			file, what, most);
		return NULL;
	}
	norm->step[norm->n].kind = kind;
	return &norm->step[norm->n++];
}

/* An operation of the last step, if this is a map, or of a new one. */
static bool
add_op(const char *file, const char *what, struct tok_model_norm *norm, struct tok_map_op op,
	struct tok_error *err)
{
	struct tok_model_step *step = norm->n > 0 ? &norm->step[norm->n - 1] : NULL;

	if (step == NULL || step->kind != TOK_NORM_MAP || step->n_ops == TOK_MAP_OPS_MAX)
		step = add(file, what, norm, TOK_NORM_MAP, TOK_MAPS_MAX, err);
	if (step != NULL)
		step->op[step->n_ops++] = op;
	return step != NULL;
}

static bool
add_kind(const char *file, const char *what, struct tok_model_norm *norm, enum tok_map_op_kind kind,
	struct tok_error *err)
{
	return add_op(file, what, norm, (struct tok_map_op){.kind = kind}, err);
}

static bool
add_form(const char *file, const char *what, struct tok_model_norm *norm, bool compose, bool compat,
	struct tok_error *err)
{
	const uint32_t forms = count(norm, TOK_NORM_FORM_C) + count(norm, TOK_NORM_FORM_D);

	if (forms > 0)
		return tok_fail(
			err, "%s: %s: a second normalization form is not implemented", file, what);
	return (!compat || add_kind(file, what, norm, TOK_OP_COMPAT, err)) &&
	       add(file, what, norm, compose ? TOK_NORM_FORM_C : TOK_NORM_FORM_D, 1, err) != NULL;
}

static bool
add_strip(const char *file, const char *what, const struct tok_json *strip,
	struct tok_model_norm *norm, struct tok_error *err)
{
	const uint32_t sides = (tok_json_is_on(strip, "strip_left") ? TOK_STRIP_LEFT : 0) |
			       (tok_json_is_on(strip, "strip_right") ? TOK_STRIP_RIGHT : 0);
	struct tok_model_step *step;

	if (!tok_json_check(file, what, strip, tok_json_strip_rules, N(tok_json_strip_rules), err))
		return false;
	if (sides == 0)
		return true;
	step = add(file, what, norm, TOK_NORM_STRIP, 1, err);
	if (step != NULL)
		step->arg = sides;
	return step != NULL;
}

static bool
add_bert(const char *file, const char *what, const struct tok_json *bert,
	struct tok_model_norm *norm, struct tok_error *err)
{
	const bool lower = tok_json_is_on(bert, "lowercase");
	const struct tok_json *strip = tok_json_get(bert, "strip_accents");

	return tok_json_check(file, what, bert, bert_rules, N(bert_rules), err) &&
	       (!tok_json_is_on(bert, "clean_text") ||
		       add_kind(file, what, norm, TOK_OP_CLEAN, err)) &&
	       (!tok_json_is_on(bert, "handle_chinese_chars") ||
		       add_kind(file, what, norm, TOK_OP_AROUND, err)) &&
	       (!(tok_json_is_absent(strip) ? lower : tok_json_is_true(strip)) ||
		       (add_form(file, what, norm, false, false, err) &&
			       add_kind(file, what, norm, TOK_OP_ACCENTS, err))) &&
	       (!lower || add_kind(file, what, norm, TOK_OP_LOWER, err));
}

/* ---- Replace ---- */

static bool
add_squeeze(const char *file, const char *what, const char *regex, const char *content,
	struct tok_model_norm *norm, struct tok_error *err)
{
	static const struct {
		const char *regex;
		enum tok_squeeze what;
	} known[] = {{" {2,}", TOK_SQUEEZE_BLANKS}, {" +", TOK_SQUEEZE_BLANKS},
		{"\\s+", TOK_SQUEEZE_WHITE}, {"\\s{2,}|[\\n\\r\\t]", TOK_SQUEEZE_SEVERAL}};
	struct tok_model_step *step;

	for (size_t i = 0; i < N(known); i++) {
		if (strcmp(regex, known[i].regex) != 0 || strcmp(content, " ") != 0)
			continue;
		step = add(file, what, norm, TOK_NORM_SQUEEZE, 1, err);
		if (step != NULL)
			step->arg = known[i].what;
		return step != NULL;
	}
	return tok_fail(err,
		"%s: %s: Replace of the Regex \"%.60s\" by \"%.30s\" is not implemented "
		"(implemented: by a blank, of \" {2,}\", \"\\s+\" and \"\\s{2,}|[\\n\\r\\t]\")",
		file, what, regex, content);
}

/* One character is replaced in a map. */
static bool
add_text(const char *file, const char *what, const char *text, const char *content,
	struct tok_model_norm *norm, struct tok_error *err)
{
	const size_t n = strlen(text), n_to = strlen(content);
	const uint8_t *p = (const uint8_t *)text;
	struct tok_map_op op = {.kind = TOK_OP_CHAR, .n_to = (uint8_t)n_to};
	struct tok_model_step *step;
	bool ascii = true;

	for (size_t i = 0; i < n; i++)
		ascii = ascii && p[i] < 0x80;
	if (n == 0 || n_to > TOK_LITERAL_BYTES || (n > TOK_LITERAL_BYTES))
		return tok_fail(err,
			"%s: %s: Replace of %zu bytes by %zu is not implemented (implemented: 1 to %u "
			"by up to %u)",
			file, what, n, n_to, TOK_LITERAL_BYTES, TOK_LITERAL_BYTES);
	if (n == tok_utf8_length(*p)) {
		op.cp = tok_utf8_decode(p, (uint32_t)n);
		memcpy(op.to, content, n_to);
		return add_op(file, what, norm, op, err);
	}
	if (!ascii)
		return tok_fail(err,
			"%s: %s: Replace of \"%.60s\" is not implemented (implemented: one character, "
			"or ASCII)",
			file, what, text);
	step = add(file, what, norm, TOK_NORM_LITERAL, TOK_LITERALS_MAX, err);
	if (step == NULL)
		return false;
	step->literal.n = (uint8_t)n;
	step->literal.n_to = (uint8_t)n_to;
	memcpy(step->literal.text, text, n);
	memcpy(step->literal.to, content, n_to);
	return true;
}

static bool
add_replace(const char *file, const char *what, const struct tok_json *replace,
	struct tok_model_norm *norm, struct tok_error *err)
{
	const struct tok_json *pattern = tok_json_get(replace, "pattern");
	const char *regex = tok_json_string_value(tok_json_get(pattern, "Regex"));
	const char *text = tok_json_string_value(tok_json_get(pattern, "String"));
	const char *content = tok_json_string_value(tok_json_get(replace, "content"));

	if (!tok_json_check(
		    file, what, replace, tok_json_replace_rules, N(tok_json_replace_rules), err))
		return false;
	if ((regex == NULL) == (text == NULL) || content == NULL ||
		tok_json_object_size(pattern) != 1)
		return tok_fail(err, "%s: %s: expected a pattern, Regex or String, and a content",
			file, what);
	/* A line end is written as it is, or escaped. */
	if (regex != NULL && (strcmp(regex, "\\n") == 0 || strcmp(regex, "\n") == 0))
		text = "\n";
	return text != NULL ? add_text(file, what, text, content, norm, err)
			    : add_squeeze(file, what, regex, content, norm, err);
}

/* ---- all ---- */

static bool
add_sequence(const char *file, const char *what, const struct tok_json *sequence,
	struct tok_model_norm *norm, struct tok_error *err)
{
	const struct tok_json *list = tok_json_get(sequence, "normalizers");
	char part[120];
	const struct tok_json *one;
	size_t i;

	if (!tok_json_check(file, what, sequence, sequence_rules, N(sequence_rules), err))
		return false;
	if (!tok_json_is_array(list))
		return tok_fail(err, "%s: %s.normalizers is not a list", file, what);
	tok_json_array_foreach (list, i, one) {
		snprintf(part, sizeof(part), "%.60s.normalizers[%zu]", what, i);
		if (tok_json_is_type(one, "Sequence"))
			return tok_fail(err, "%s: %s: a Sequence in a Sequence is not implemented",
				file, part);
		if (!tok_json_step(file, part, one, norm, err))
			return false;
	}
	return true;
}

bool
tok_json_step(const char *file, const char *what, const struct tok_json *normalizer,
	struct tok_model_norm *norm, struct tok_error *err)
{
	static const struct {
		const char *type;
		bool compose, compat;
	} forms[] = {{"NFC", true, false}, {"NFD", false, false}, {"NFKC", true, true},
		{"NFKD", false, true}};
	static const struct {
		const char *type;
		enum tok_map_op_kind kind;
	} ops[] = {{"Lowercase", TOK_OP_LOWER}, {"StripAccents", TOK_OP_MARKS}};

	for (size_t i = 0; i < N(forms); i++) {
		if (tok_json_is_type(normalizer, forms[i].type))
			return tok_json_check(
				       file, what, normalizer, tok_json_type_rules, 1, err) &&
			       add_form(file, what, norm, forms[i].compose, forms[i].compat, err);
	}
	for (size_t i = 0; i < N(ops); i++) {
		if (tok_json_is_type(normalizer, ops[i].type))
			return tok_json_check(
				       file, what, normalizer, tok_json_type_rules, 1, err) &&
			       add_kind(file, what, norm, ops[i].kind, err);
	}
	if (tok_json_is_type(normalizer, "Strip"))
		return add_strip(file, what, normalizer, norm, err);
	if (tok_json_is_type(normalizer, "Replace"))
		return add_replace(file, what, normalizer, norm, err);
	if (tok_json_is_type(normalizer, "BertNormalizer"))
		return add_bert(file, what, normalizer, norm, err);
	if (tok_json_is_type(normalizer, "Sequence"))
		return add_sequence(file, what, normalizer, norm, err);
	return tok_json_refuse(file, what, normalizer, TOK_JSON_STEPS, err);
}
