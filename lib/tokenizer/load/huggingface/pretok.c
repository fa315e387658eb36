/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "pretokenize/names.h"

static const struct tok_json_rule sequence_rules[] = {
	{"type", "\"Sequence\"", NULL, true},
	{"pretokenizers", NULL, NULL, true},
};

static const struct tok_json_rule split_rules[] = {
	{"type", "\"Split\"", NULL, true},
	{"pattern", NULL, NULL, true},
	{"behavior", NULL, NULL, true},
	{"invert", "true, false", NULL, true},
};

static const struct tok_json_rule pattern_rules[] = {
	{"Regex", NULL, NULL, false},
	{"String", NULL, NULL, false},
};

static const struct tok_json_rule digits_rules[] = {
	{"type", "\"Digits\"", NULL, true},
	{"individual_digits", "true, false", NULL, true},
};

static const struct tok_json_rule punctuation_rules[] = {
	{"type", "\"Punctuation\"", NULL, true},
	{"behavior", NULL, NULL, false}, /* absent: "Isolated" */
};

/* Behind all of these. With use_regex, or without the key, it splits as GPT-2 does. */
static const struct tok_json_rule bytes_rules[] = {
	{"type", "\"ByteLevel\"", NULL, true},
	{"add_prefix_space", "true, false", NULL, true},
	{"trim_offsets", "true, false", NULL, false}, /* concerns offsets alone */
	{"use_regex", "true, false", NULL, false},
};

/* ---- splits ---- */

#define BEHAVIORS "Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous"

/* Matches and gaps change places with `invert`. */
static bool
read_behavior(const char *file, const char *what, const struct tok_json *component,
	enum tok_behavior *behavior, struct tok_error *err)
{
	static const struct {
		const char *name;
		enum tok_behavior plain, inverted;
	} names[] = {
		{"Isolated", TOK_SPLIT_ISOLATED, TOK_SPLIT_ISOLATED},
		{"Contiguous", TOK_SPLIT_CONTIGUOUS, TOK_SPLIT_CONTIGUOUS},
		{"MergedWithPrevious", TOK_SPLIT_WITH_PREVIOUS, TOK_SPLIT_WITH_NEXT},
		{"MergedWithNext", TOK_SPLIT_WITH_NEXT, TOK_SPLIT_WITH_PREVIOUS},
		{"Removed", TOK_SPLIT_REMOVED, TOK_SPLIT_REMOVED_GAPS},
	};
	const struct tok_json *value = tok_json_get(component, "behavior");
	const bool invert = tok_json_is_true(tok_json_get(component, "invert"));
	const char *name = value == NULL ? names[0].name : tok_json_string_value(value);

	for (size_t i = 0; name != NULL && i < N(names); i++) {
		if (strcmp(name, names[i].name) == 0) {
			*behavior = invert ? names[i].inverted : names[i].plain;
			return true;
		}
	}
	return tok_fail(err, "%s: %s.behavior \"%.60s\" is not known (known: " BEHAVIORS ")", file,
		what, name == NULL ? "" : name);
}

/* A text as a regular expression that matches it. NULL: out of memory. */
static char *
quoted(const char *text)
{
	char *regex = malloc(2 * strlen(text) + 1), *to = regex;

	for (; regex != NULL && *text != '\0'; text++) {
		if (strchr("\\^$.|?*+()[]{}", *text) != NULL)
			*to++ = '\\';
		*to++ = *text;
	}
	if (regex != NULL)
		*to = '\0';
	return regex;
}

static char *
read_pattern(
	const char *file, const char *what, const struct tok_json *split, struct tok_error *err)
{
	const struct tok_json *pattern = tok_json_get(split, "pattern");
	const char *regex = tok_json_string_value(tok_json_get(pattern, "Regex"));
	const char *text = tok_json_string_value(tok_json_get(pattern, "String"));
	char where[80], *kept;

	snprintf(where, sizeof(where), "%s.pattern", what);
	if (!tok_json_check(file, where, pattern, pattern_rules, N(pattern_rules), err))
		return NULL;
	if ((regex == NULL) == (text == NULL)) {
		tok_fail(err, "%s: %s is neither a Regex nor a String", file, where);
		return NULL;
	}
	kept = regex != NULL ? strdup(regex) : quoted(text);
	if (kept == NULL)
		tok_fail(err, "out of memory");
	return kept;
}

/* One component that splits becomes split i of the model. */
static bool
read_split(const char *file, const char *what, const struct tok_json *component,
	struct tok_model *m, size_t i, struct tok_error *err)
{
	const bool each = tok_json_is_true(tok_json_get(component, "individual_digits"));

	if (tok_json_is_type(component, "Digits")) {
		if (!tok_json_check(file, what, component, digits_rules, N(digits_rules), err))
			return false;
		m->regex[i] = strdup(TOK_REGEX_NUMERIC);
		m->behavior[i] = each ? TOK_SPLIT_ISOLATED : TOK_SPLIT_CONTIGUOUS;
	} else if (tok_json_is_type(component, "Punctuation")) {
		if (!tok_json_check(
			    file, what, component, punctuation_rules, N(punctuation_rules), err) ||
			!read_behavior(file, what, component, &m->behavior[i], err))
			return false;
		m->regex[i] = strdup(TOK_REGEX_PUNCTUATION);
	} else {
		if (!tok_json_is_type(component, "Split"))
			return tok_json_refuse(file, what, component,
				"\"Split\", \"Digits\", \"Punctuation\", and last \"ByteLevel\"",
				err);
		if (!tok_json_check(file, what, component, split_rules, N(split_rules), err) ||
			!read_behavior(file, what, component, &m->behavior[i], err))
			return false;
		m->regex[i] = read_pattern(file, what, component, err);
		return m->regex[i] != NULL;
	}
	return m->regex[i] != NULL || tok_fail(err, "out of memory");
}

/* ByteLevel, after n splits, which may split as well. */
static bool
read_bytes(const char *file, const char *what, const struct tok_json *bytes, struct tok_model *m,
	size_t n, struct tok_error *err)
{
	if (!tok_json_check_component(
		    file, what, bytes, "ByteLevel", bytes_rules, N(bytes_rules), err))
		return false;
	if (tok_json_is_true(tok_json_get(bytes, "add_prefix_space"))) {
		if (n > 0)
			return tok_fail(err,
				"%s: %s.add_prefix_space true after a split is not implemented: "
				"each piece would get a blank",
				file, what);
		m->metaspace = (struct tok_metaspace){
			.stage = TOK_METASPACE_PREFIX, .prefix = TOK_PREFIX_EACH};
	}
	if (tok_json_is_false(tok_json_get(bytes, "use_regex")))
		return n > 0 ||
		       tok_fail(err, "%s: %s.use_regex false without a split is not implemented",
			       file, what);
	m->regex[n] = strdup(TOK_REGEX_GPT2);
	return m->regex[n] != NULL || tok_fail(err, "out of memory");
}

/*
 * Behind ByteLevel a split sees bytes, each as a character (unicode/bytelevel.h). Digits separates
 * bytes also inside characters: no merge joins them (tok_vocab.digits_apart). A Split by three
 * digits, which are ASCII, is the same in the text. No other split is known to be.
 */
static bool
read_behind_bytes(const char *file, const char *what, const struct tok_json *component,
	struct tok_model *m, size_t n, struct tok_error *err)
{
	static const char triple[] = "[0-9][0-9][0-9]";
	enum tok_behavior behavior;
	char *regex;

	if (!m->digits_apart && tok_json_is_type(component, "Digits") &&
		!tok_json_is_true(tok_json_get(component, "individual_digits"))) {
		m->digits_apart = true;
		return tok_json_check(file, what, component, digits_rules, N(digits_rules), err);
	}
	if (m->digits_apart && tok_json_is_type(component, "Split")) {
		if (!tok_json_check(file, what, component, split_rules, N(split_rules), err) ||
			!read_behavior(file, what, component, &behavior, err))
			return false;
		regex = read_pattern(file, what, component, err);
		if (regex == NULL)
			return false;
		m->regex[n] = regex;
		if (strcmp(regex, triple) == 0 && behavior == TOK_SPLIT_ISOLATED)
			return true;
	}
	return tok_fail(err,
		"%s: %s: after ByteLevel, where characters are bytes, this is not implemented "
		"(implemented: Digits with individual_digits false, then Split by \"%s\", Isolated)",
		file, what, triple);
}

/* Expressions that have a name are scanned by vectors; what is removed must be nothing. */
static void
name_regexes(struct tok_model *m)
{
	const char *regex[TOK_SPLITS_MAX] = {NULL};
	size_t n = 0;
	bool isolated = true;

	for (; n < TOK_SPLITS_MAX && m->regex[n] != NULL; n++) {
		regex[n] = m->regex[n];
		isolated = isolated && (m->behavior[n] == TOK_SPLIT_ISOLATED ||
					       m->behavior[n] == TOK_SPLIT_REMOVED_GAPS);
	}
	m->pretok = isolated ? tok_pretok_by_regex(regex, n) : TOK_PRETOK_NONE;
	if (m->pretok == TOK_PRETOK_NONE) {
		m->pretok = TOK_PRETOK_REGEX;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		free(m->regex[i]);
		m->regex[i] = NULL;
	}
}

bool
tok_json_pretok(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *pretok = tok_json_get(root, "pre_tokenizer");
	const struct tok_json *list = tok_json_get(pretok, "pretokenizers");
	size_t n = tok_json_array_size(list), splits = 0;
	bool bytes = false, ok = true;
	char what[64] = "pre_tokenizer";

	if (!tok_json_is_type(pretok, "Sequence")) {
		if (!read_bytes(file, what, pretok, m, 0, err))
			return false;
		name_regexes(m);
		return true;
	}
	if (!tok_json_check(file, what, pretok, sequence_rules, N(sequence_rules), err))
		return false;
	if (n < 1 || n > TOK_SPLITS_MAX)
		return tok_fail(err,
			"%s: pre_tokenizer \"Sequence\" of %zu is not implemented (implemented: up "
			"to %u of \"Split\", \"Digits\", \"Punctuation\", then \"ByteLevel\")",
			file, n, TOK_SPLITS_MAX - 1);
	for (size_t i = 0; ok && i < n; i++) {
		const struct tok_json *component = tok_json_at(list, i);

		snprintf(what, sizeof(what), "pre_tokenizer.pretokenizers[%zu]", i);
		if (bytes)
			ok = read_behind_bytes(file, what, component, m, splits, err);
		else if (i == n - 1 || tok_json_is_type(component, "ByteLevel"))
			ok = bytes = read_bytes(file, what, component, m, splits, err);
		else
			ok = read_split(file, what, component, m, splits, err);
		splits += m->regex[splits] != NULL;
	}
	if (ok)
		name_regexes(m);
	return ok;
}
