/* SPDX-License-Identifier: BSD-3-Clause */
/* See json_tree.h. */
#include <stdlib.h>

#include "json_tree.h"

/* ---- memory ---- */

#define CHUNK_BYTES (64u << 10)

struct tok_json_chunk {
	struct tok_json_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

/* Zeroed memory that the tree frees; NULL: there is none. */
static void *
take(struct tok_json_tree *tree, size_t bytes)
{
	struct tok_json_chunk *c = tree->chunk;

	bytes = (bytes + 15) & ~(size_t)15;
	if (c == NULL || c->size - c->used < bytes) {
		const size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		c = calloc(1, sizeof(*c) + size);
		if (c == NULL)
			return NULL;
		c->next = tree->chunk;
		c->size = size;
		tree->chunk = c;
	}
	c->used += bytes;
	return c->bytes + c->used - bytes;
}

/* Keep one chunk, of the text that was read last, for the next. */
static void
reuse(struct tok_json_tree *tree)
{
	struct tok_json_chunk *c = tree->chunk;

	if (c == NULL)
		return;
	tree->chunk = c->next;
	tok_json_tree_free(tree);
	memset(c->bytes, 0, c->used);
	c->next = NULL;
	c->used = 0;
	tree->chunk = c;
}

void
tok_json_tree_free(struct tok_json_tree *tree)
{
	for (struct tok_json_chunk *c = tree->chunk, *next; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	*tree = (struct tok_json_tree){0};
}

/* ---- reading ---- */

static bool
fail(struct tok_json_text *t, const char *why)
{
	t->why = why;
	return false;
}

static const char *
skip_digits(const char *p)
{
	while (*p >= '0' && *p <= '9')
		p++;
	return p;
}

static bool
read_number(struct tok_json_text *t, struct tok_json *v)
{
	const char *begin = t->p, *digits = begin + (*begin == '-'), *p = skip_digits(digits);
	uint64_t value = 0;

	if (p == digits || (*digits == '0' && p > digits + 1))
		return fail(t, "invalid token");
	v->kind = TOK_JSON_INTEGER;
	if (*p == '.') {
		const char *fraction = p + 1;

		p = skip_digits(fraction);
		if (p == fraction)
			return fail(t, "invalid number");
		v->kind = TOK_JSON_REAL;
	}
	if (*p == 'e' || *p == 'E') {
		const char *exponent = p + 1 + (p[1] == '+' || p[1] == '-');

		p = skip_digits(exponent);
		if (p == exponent)
			return fail(t, "invalid number");
		v->kind = TOK_JSON_REAL;
	}
	t->p += p - begin;
	if (v->kind == TOK_JSON_REAL) {
		v->text = begin;
		v->n = (uint32_t)(p - begin);
		return true;
	}
	for (; digits < p; digits++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*digits - '0'), &value) ||
			value > INT64_MAX)
			return fail(t, "an integer is too large");
	}
	v->integer = *begin == '-' ? -(int64_t)value : (int64_t)value;
	return true;
}

static bool
read_word(struct tok_json_text *t, struct tok_json *v)
{
	static const struct {
		const char *word;
		enum tok_json_kind kind;
	} words[] = {{"null", TOK_JSON_NULL}, {"false", TOK_JSON_FALSE}, {"true", TOK_JSON_TRUE}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const size_t len = strlen(words[i].word);

		if (strncmp(t->p, words[i].word, len) == 0) {
			v->kind = words[i].kind;
			t->p += len;
			return true;
		}
	}
	return read_number(t, v);
}

static int
compare_keys(const void *a, const void *b)
{
	const struct tok_json *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* Make v's table of its n values, of which `last` was read last. */
static bool
close_list(struct tok_json_tree *tree, struct tok_json_text *t, struct tok_json *v, size_t n,
	struct tok_json *last)
{
	if (n > UINT32_MAX)
		return fail(t, "a list is too long");
	v->n = (uint32_t)n;
	v->item = take(tree, n * sizeof(*v->item));
	if (v->item == NULL)
		return fail(t, "out of memory");
	for (; n > 0; last = last->next)
		v->item[--n] = last;
	if (v->kind != TOK_JSON_OBJECT)
		return true;
	qsort(v->item, v->n, sizeof(*v->item), compare_keys);
	for (uint32_t i = 1; i < v->n; i++) {
		if (strcmp(v->item[i - 1]->key, v->item[i]->key) == 0)
			return fail(t, "duplicate object key");
	}
	return true;
}

static struct tok_json *read_value(
	struct tok_json_tree *tree, struct tok_json_text *t, uint32_t depth);

static bool
read_list(struct tok_json_tree *tree, struct tok_json_text *t, struct tok_json *v, uint32_t depth)
{
	const char close = v->kind == TOK_JSON_OBJECT ? '}' : ']';
	struct tok_json *last = NULL;
	size_t n = 0;
	bool first = true;

	if (depth == TOK_JSON_DEPTH_MAX)
		return fail(t, "nested beyond the depth of 100");
	t->p++;
	for (; tok_json_next(t, close, &first); n++) {
		struct tok_json_string key = {0};
		struct tok_json *one;

		if (close == '}' && (!tok_json_string(t, &key) || !tok_json_open(t, ':')))
			return false;
		one = read_value(tree, t, depth + 1);
		if (one == NULL)
			return false;
		one->key = key.p;
		one->next = last;
		last = one;
	}
	return t->why == NULL && close_list(tree, t, v, n, last);
}

static struct tok_json *
read_value(struct tok_json_tree *tree, struct tok_json_text *t, uint32_t depth)
{
	struct tok_json *v = take(tree, sizeof(*v));
	struct tok_json_string s;
	bool ok;

	if (v == NULL) {
		fail(t, "out of memory");
		return NULL;
	}
	t->p = tok_json_blanks(t->p);
	switch (*t->p) {
	case '{':
	case '[':
		v->kind = *t->p == '{' ? TOK_JSON_OBJECT : TOK_JSON_ARRAY;
		ok = read_list(tree, t, v, depth);
		break;
	case '"':
		ok = tok_json_string(t, &s);
		v->kind = TOK_JSON_STRING;
		v->text = s.p;
		v->n = ok ? s.len : 0;
		break;
	default:
		ok = read_word(t, v);
	}
	return ok ? v : NULL;
}

bool
tok_json_tree_read(struct tok_json_tree *tree, char *text, size_t size, struct tok_json_text *at)
{
	reuse(tree);
	at->p = text;
	at->why = NULL;
	tree->root = read_value(tree, at, 0);
	if (tree->root != NULL) {
		at->p = tok_json_blanks(at->p);
		if (at->p == text + size)
			return true;
		at->why = "expected the end of the file";
	}
	tok_json_tree_free(tree);
	return false;
}

/* ---- looking up ---- */

static int
key_order(const void *key, const void *member)
{
	return strcmp(key, (*(const struct tok_json *const *)member)->key);
}

const struct tok_json *
tok_json_get(const struct tok_json *object, const char *key)
{
	const struct tok_json **found = NULL;

	if (tok_json_object_size(object) > 0)
		found = bsearch(key, object->item, object->n, sizeof(*object->item), key_order);
	return found == NULL ? NULL : *found;
}
