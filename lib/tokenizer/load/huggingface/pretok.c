/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "pretok.h"
#include "load/json_rules.h"
#include "pretokenize/names.h"

static const struct tok_json_rule sequence_rules[] = {
	{"type", "\"Sequence\"", NULL, true},
	{"pretokenizers", NULL, NULL, true},
};

static const struct tok_json_rule normalizers_rules[] = {
	{"type", "\"Sequence\"", NULL, true},
	{"normalizers", NULL, NULL, true},
};

static const struct tok_json_rule nfc_rules[] = {
	{"type", "\"NFC\"", NULL, true},
};

static const struct tok_json_rule split_rules[] = {
	{"type", "\"Split\"", NULL, true},
	{"pattern", NULL, NULL, true},
	{"behavior", "\"Isolated\"", NULL, true},
	{"invert", "false", NULL, true},
};

static const struct tok_json_rule pattern_rules[] = {
	{"Regex", NULL, NULL, true},
};

static const struct tok_json_rule digits_rules[] = {
	{"type", "\"Digits\"", NULL, true},
	{"individual_digits", "true, false", NULL, true},
};

/* After splits. With use_regex, or without the key, it splits as GPT-2 does. */
static const struct tok_json_rule bytes_rules[] = {
	{"type", "\"ByteLevel\"", NULL, true},
	{"add_prefix_space", "false", "put the space in front of the text yourself", true},
	{"trim_offsets", "true, false", NULL, false}, /* concerns offsets alone */
	{"use_regex", "true, false", NULL, false},
};

/* By itself. */
static const struct tok_json_rule gpt2_rules[] = {
	{"type", "\"ByteLevel\"", NULL, true},
	{"add_prefix_space", "false", "put the space in front of the text yourself", true},
	{"trim_offsets", "true, false", NULL, false},
	{"use_regex", "true", NULL, false}, /* absent: true */
};

#define N(rules) (sizeof(rules) / sizeof(rules[0]))

bool
tok_json_normalizer(const char *file, json_t *root, bool *nfc, struct tok_error *err)
{
	json_t *normalizer = json_object_get(root, "normalizer"), *list;

	*nfc = false;
	if (tok_json_is_type(normalizer, "Sequence")) { /* of none, or of one */
		list = json_object_get(normalizer, "normalizers");
		if (!tok_json_check(file, "normalizer", normalizer, normalizers_rules,
			    N(normalizers_rules), err))
			return false;
		if (!json_is_array(list) || json_array_size(list) > 1)
			return tok_fail(err,
				"%s: normalizer \"Sequence\" of %zu is not implemented "
				"(implemented: none, or one \"NFC\")",
				file, json_array_size(list));
		normalizer = json_array_get(list, 0);
	}
	*nfc = normalizer != NULL && !json_is_null(normalizer);
	return !*nfc || tok_json_check_component(file, "normalizer", normalizer, "NFC", nfc_rules,
				N(nfc_rules), err);
}

/* The regular expression of one Split, or of Digits. */
static bool
read_split(const char *file, size_t i, json_t *split, const char **regex, struct tok_error *err)
{
	json_t *pattern = json_object_get(split, "pattern");
	char what[64];

	snprintf(what, sizeof(what), "pre_tokenizer.pretokenizers[%zu]", i);
	if (tok_json_is_type(split, "Digits")) {
		*regex = json_is_true(json_object_get(split, "individual_digits")) ? "\\p{N}"
										   : "\\p{N}+";
		return tok_json_check(file, what, split, digits_rules, N(digits_rules), err);
	}
	if (!tok_json_check_component(file, what, split, "Split", split_rules, N(split_rules), err))
		return false;
	snprintf(what, sizeof(what), "pre_tokenizer.pretokenizers[%zu].pattern", i);
	if (!tok_json_check(file, what, pattern, pattern_rules, N(pattern_rules), err))
		return false;
	*regex = json_string_value(json_object_get(pattern, "Regex"));
	return *regex != NULL || tok_fail(err, "%s: %s.Regex is not a string", file, what);
}

/* Keep regular expressions that have no name. */
static bool
keep_regexes(const char *const *regex, size_t n, struct tok_model *m, struct tok_error *err)
{
	m->pretok = TOK_PRETOK_REGEX;
	for (size_t i = 0; i < n; i++) {
		m->regex[i] = strdup(regex[i]);
		if (m->regex[i] == NULL)
			return tok_fail(err, "out of memory");
	}
	return true;
}

/* Splits by regular expressions, and ByteLevel, which may split as well. */
static bool
read_sequence(const char *file, json_t *sequence, struct tok_model *m, struct tok_error *err)
{
	json_t *list = json_object_get(sequence, "pretokenizers"), *bytes;
	const char *regex[TOK_SPLITS_MAX];
	size_t n = json_array_size(list), n_regex;
	char what[64];

	if (!tok_json_check(
		    file, "pre_tokenizer", sequence, sequence_rules, N(sequence_rules), err))
		return false;
	if (n < 2 || n > TOK_SPLITS_MAX)
		return tok_fail(err,
			"%s: pre_tokenizer \"Sequence\" of %zu is not implemented (implemented: "
			"1 to %u of \"Split\" or \"Digits\", then \"ByteLevel\")",
			file, n, TOK_SPLITS_MAX - 1);
	n_regex = n - 1;
	for (size_t i = 0; i < n_regex; i++) {
		if (!read_split(file, i, json_array_get(list, i), &regex[i], err))
			return false;
	}
	snprintf(what, sizeof(what), "pre_tokenizer.pretokenizers[%zu]", n - 1);
	bytes = json_array_get(list, n - 1);
	if (!tok_json_check_component(
		    file, what, bytes, "ByteLevel", bytes_rules, N(bytes_rules), err))
		return false;
	if (!json_is_false(json_object_get(bytes, "use_regex")))
		regex[n_regex++] = TOK_REGEX_GPT2;
	m->pretok = tok_pretok_by_regex(regex, n_regex);
	return m->pretok != TOK_PRETOK_NONE || keep_regexes(regex, n_regex, m, err);
}

bool
tok_json_pretok(const char *file, json_t *root, struct tok_model *m, struct tok_error *err)
{
	json_t *pretok = json_object_get(root, "pre_tokenizer");

	if (tok_json_is_type(pretok, "Sequence"))
		return read_sequence(file, pretok, m, err);
	m->pretok = TOK_PRETOK_GPT2;
	return tok_json_check_component(
		file, "pre_tokenizer", pretok, "ByteLevel", gpt2_rules, N(gpt2_rules), err);
}
