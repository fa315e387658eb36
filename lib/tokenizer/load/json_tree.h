/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A JSON text as a tree of values (RFC 8259). Duplicate keys, nesting beyond TOK_JSON_DEPTH_MAX and
 * integers beyond 64 bits are rejected. What reads a value takes NULL and values of any kind, so
 * that callers check once, at the end of a path. Set-up only.
 */
#pragma once

#include <string.h>

#include "json_text.h"

#define TOK_JSON_DEPTH_MAX 100u

enum tok_json_kind {
	TOK_JSON_NULL,
	TOK_JSON_FALSE,
	TOK_JSON_TRUE,
	TOK_JSON_INTEGER,
	TOK_JSON_REAL,
	TOK_JSON_STRING,
	TOK_JSON_ARRAY,
	TOK_JSON_OBJECT,
};

struct tok_json {
	enum tok_json_kind kind;
	uint32_t n;	 /* bytes of a string or real; elements of an array; members of an object */
	const char *key; /* of an object's member */
	union {
		int64_t integer;
		const char *text; /* a string, decoded, then a NUL; a real as it is written */
		const struct tok_json **item; /* an object's members are sorted by key */
	};
	struct tok_json *next; /* while it is read: the one before it */
};

/* A tree owns its values. The text they point into is its maker's. */
struct tok_json_tree {
	const struct tok_json *root;
	struct tok_json_chunk *chunk;
};

/*
 * Read the `size` bytes at `text`, which end with a NUL that is not counted. Strings are decoded
 * where they lie. *tree is zeroed, or that of another text, whose values are gone. False: *at has
 * the place and why; nothing to free.
 */
bool tok_json_tree_read(
	struct tok_json_tree *tree, char *text, size_t size, struct tok_json_text *at);
void tok_json_tree_free(struct tok_json_tree *tree);

/* The value of an object's key, or NULL. */
const struct tok_json *tok_json_get(const struct tok_json *object, const char *key);

#define TOK_JSON_IS(name, what)                                                                    \
	static inline bool tok_json_is_##name(const struct tok_json *value)                        \
	{                                                                                          \
		return value != NULL && value->kind == (what);                                     \
	}
TOK_JSON_IS(null, TOK_JSON_NULL)
TOK_JSON_IS(false, TOK_JSON_FALSE)
TOK_JSON_IS(true, TOK_JSON_TRUE)
TOK_JSON_IS(integer, TOK_JSON_INTEGER)
TOK_JSON_IS(string, TOK_JSON_STRING)
TOK_JSON_IS(array, TOK_JSON_ARRAY)
TOK_JSON_IS(object, TOK_JSON_OBJECT)
#undef TOK_JSON_IS

/* Elements of an array; 0: it is none. */
static inline size_t
tok_json_array_size(const struct tok_json *array)
{
	return tok_json_is_array(array) ? array->n : 0;
}

/* Members of an object; 0: it is none. */
static inline size_t
tok_json_object_size(const struct tok_json *object)
{
	return tok_json_is_object(object) ? object->n : 0;
}

/* An element, or NULL. */
static inline const struct tok_json *
tok_json_at(const struct tok_json *array, size_t i)
{
	return i < tok_json_array_size(array) ? array->item[i] : NULL;
}

/* A string, or NULL. */
static inline const char *
tok_json_string_value(const struct tok_json *value)
{
	return tok_json_is_string(value) ? value->text : NULL;
}

static inline size_t
tok_json_string_length(const struct tok_json *value)
{
	return tok_json_is_string(value) ? value->n : 0;
}

/* An integer; 0: it is none. */
static inline int64_t
tok_json_integer_value(const struct tok_json *value)
{
	return tok_json_is_integer(value) ? value->integer : 0;
}

#define tok_json_array_foreach(array, i, value)                                                    \
	for (i = 0; ((value) = tok_json_at(array, i)) != NULL; i++)
