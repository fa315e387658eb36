/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_rules.h"

#define NAME_MAX_BYTES 64 /* most bytes of a value shown in an error */

static bool
is_allowed(const char *allowed, const char *value)
{
	size_t len = strlen(value);

	for (const char *p = allowed; p != NULL; p = strstr(p, ", ")) {
		p += *p == ',' ? 2 : 0;
		if (strncmp(p, value, len) == 0 && (p[len] == '\0' || p[len] == ','))
			return true;
	}
	return false;
}

/* Name a value in an error: by its type if it is an object that has one, else the value itself. */
static void
name_value(const struct tok_json *value, char *out)
{
	static const char *const words[] = {[TOK_JSON_NULL] = "null",
		[TOK_JSON_FALSE] = "false",
		[TOK_JSON_TRUE] = "true",
		[TOK_JSON_ARRAY] = "[]",
		[TOK_JSON_OBJECT] = "{}"};
	const char *type = tok_json_string_value(tok_json_get(value, "type"));

	if (value == NULL) {
		snprintf(out, NAME_MAX_BYTES, "null");
		return;
	}
	if (type != NULL) {
		snprintf(out, NAME_MAX_BYTES, "\"%.60s\"", type);
		return;
	}
	switch (value->kind) {
	case TOK_JSON_STRING:
		snprintf(out, NAME_MAX_BYTES, "\"%.60s\"", value->text);
		break;
	case TOK_JSON_INTEGER:
		snprintf(out, NAME_MAX_BYTES, "%" PRId64, value->integer);
		break;
	case TOK_JSON_REAL:
		snprintf(out, NAME_MAX_BYTES, "%.*s", (int)(value->n < 60 ? value->n : 60),
			value->text);
		break;
	default:
		snprintf(out, NAME_MAX_BYTES, "%s",
			value->n > 0 ? "a list or an object" : words[value->kind]);
	}
}

static const struct tok_json_rule *
find_rule(const struct tok_json_rule *rules, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rules[i].key, key) == 0)
			return &rules[i];
	}
	return NULL;
}

bool
tok_json_is_type(const struct tok_json *component, const char *type)
{
	const char *has = tok_json_string_value(tok_json_get(component, "type"));

	return has != NULL && strcmp(has, type) == 0;
}

bool
tok_json_check(const char *file, const char *what, const struct tok_json *object,
	const struct tok_json_rule *rules, size_t n, struct tok_error *err)
{
	const char *dot = what[0] == '\0' ? "" : ".";

	if (!tok_json_is_object(object))
		return tok_fail(err, "%s: %s is missing or not an object", file, what);
	for (size_t i = 0; i < object->n; i++) {
		const struct tok_json *value = object->item[i];
		const char *key = value->key;
		const struct tok_json_rule *r = find_rule(rules, n, key);
		char name[NAME_MAX_BYTES];

		if (r == NULL)
			return tok_fail(err,
				"%s: %s%s%.60s is not implemented: the key is not known", file,
				what, dot, key);
		if (r->allowed == NULL)
			continue;
		name_value(value, name);
		if (tok_json_is_object(value) || tok_json_is_array(value) ||
			!is_allowed(r->allowed, name))
			return tok_fail(err,
				"%s: %s%s%s %s is not implemented (implemented: %s)%s%s", file,
				what, dot, key, name, r->allowed, r->remedy ? "; " : "",
				r->remedy ? r->remedy : "");
	}
	for (size_t i = 0; i < n; i++) {
		if (rules[i].required && tok_json_get(object, rules[i].key) == NULL)
			return tok_fail(
				err, "%s: %s%s%s is missing", file, what, dot, rules[i].key);
	}
	return true;
}

/* normalizer and pre_tokenizer: the model decides whether they must exist. */
static const struct tok_json_rule top_rules[] = {
	{"version", "\"1.0\"", "save the file with a current version of tokenizers", false},
	{"truncation", NULL, NULL, false},
	{"padding", NULL, NULL, false},
	{"added_tokens", NULL, NULL, false},
	{"normalizer", NULL, NULL, false},
	{"pre_tokenizer", NULL, NULL, false},
	{"post_processor", NULL, NULL, false},
	{"decoder", NULL, NULL, true},
	{"model", NULL, NULL, false},
};

bool
tok_json_check_top(const char *file, const struct tok_json *root, struct tok_error *err)
{
	/* First: a file without it is no tokenizer.json. */
	if (tok_json_is_object(root) && !tok_json_is_object(tok_json_get(root, "model")))
		return tok_fail(err, "%s: model is missing or not an object", file);
	return tok_json_check(
		file, "", root, top_rules, sizeof(top_rules) / sizeof(top_rules[0]), err);
}

bool
tok_json_check_component(const char *file, const char *what, const struct tok_json *object,
	const char *type, const struct tok_json_rule *rules, size_t n, struct tok_error *err)
{
	char only[NAME_MAX_BYTES];

	if (object == NULL)
		return tok_fail(err, "%s: %s is missing", file, what);
	if (tok_json_is_type(object, type))
		return tok_json_check(file, what, object, rules, n, err);
	snprintf(only, sizeof(only), "\"%s\"", type);
	return tok_json_refuse(file, what, object, only, err);
}

bool
tok_json_refuse(const char *file, const char *what, const struct tok_json *object,
	const char *implemented, struct tok_error *err)
{
	char name[NAME_MAX_BYTES];

	name_value(object, name);
	return tok_fail(err, "%s: %s %s is not implemented (implemented: %s)", file, what, name,
		implemented);
}
