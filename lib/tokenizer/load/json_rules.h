/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The supported contents of a tokenizer.json: the known keys of each object, and their supported
 * values. Anything else is rejected with an error that names it, never ignored.
 */
#pragma once

#include "build/model.h"
#include "json_tree.h"

struct tok_json_rule {
	const char *key;
	const char *allowed; /* JSON scalars, separated by ", "; NULL: any, or checked elsewhere */
	const char *remedy;  /* put at the end of the error; or NULL */
	bool required;
};

#define N(rules) (sizeof(rules) / sizeof(rules[0]))

static inline bool
tok_json_is_on(const struct tok_json *component, const char *key)
{
	return tok_json_is_true(tok_json_get(component, key));
}

/* Absent, or null, which means the same? */
static inline bool
tok_json_is_absent(const struct tok_json *value)
{
	return value == NULL || tok_json_is_null(value);
}

/* Is it a component of this "type"? */
bool tok_json_is_type(const struct tok_json *component, const char *type);

/* Check `object` against its n rules. `what`: its path in the file; "" for the top level. */
bool tok_json_check(const char *file, const char *what, const struct tok_json *object,
	const struct tok_json_rule *rules, size_t n, struct tok_error *err);

/* Check the top level: which components the file may have. */
bool tok_json_check_top(const char *file, const struct tok_json *root, struct tok_error *err);

/* Check a component whose "type" must be `type`; its other keys depend on the type. */
bool tok_json_check_component(const char *file, const char *what, const struct tok_json *object,
	const char *type, const struct tok_json_rule *rules, size_t n, struct tok_error *err);

/* Reject a component by its type. Always false. `implemented`: what may stand there. */
bool tok_json_refuse(const char *file, const char *what, const struct tok_json *object,
	const char *implemented, struct tok_error *err);
