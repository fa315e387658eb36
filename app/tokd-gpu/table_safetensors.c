/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * safetensors (https://github.com/huggingface/safetensors, "Format"): u64 length, a JSON object of
 * tensors, then their bytes. As the format requires, offsets must cover the bytes exactly, without
 * overlap or gap.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "load/json_tree.h"
#include "tables_inside.h"

#define HEADER_MAX (32u << 20) /* large models have some 100 KB */
#define AXES_MAX 8

/* Tensors of other types may be in the file; what they take is not checked against their shape. */
static const struct dtype {
	const char *name;
	uint32_t bytes;
	enum tokg_dtype ours;
} dtypes[] = {{"F32", 4, TOKG_F32}, {"F16", 2, TOKG_F16}, {"BF16", 2, TOKG_BF16}};

/* Names of the tables in models; each may have one of the prefixes. */
static const struct {
	enum tokg_part part;
	const char *name;
	uint32_t n_axes;
} known[] = {
	{TOKG_WORD, "wte.weight", 2}, /* GPT-2 */
	{TOKG_POSITION, "wpe.weight", 2},
	{TOKG_WORD, "embeddings.word_embeddings.weight", 2}, /* BERT */
	{TOKG_POSITION, "embeddings.position_embeddings.weight", 2},
	{TOKG_TYPE, "embeddings.token_type_embeddings.weight", 2},
	{TOKG_GAMMA, "embeddings.LayerNorm.weight", 1}, {TOKG_BETA, "embeddings.LayerNorm.bias", 1},
	{TOKG_GAMMA, "embeddings.LayerNorm.gamma", 1}, /* in the first BERT files */
	{TOKG_BETA, "embeddings.LayerNorm.beta", 1},
	{TOKG_WORD, "embed_tokens.weight", 2}, /* Llama, Mistral, Qwen */
};
static const char *const prefixes[] = {"", "transformer.", "bert.", "model."};

struct span {
	uint64_t begin, end;
	const char *name;
};

static const struct dtype *
dtype_of(const char *name)
{
	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		if (strcmp(dtypes[i].name, name) == 0)
			return &dtypes[i];
	}
	return NULL;
}

/* Index in `known`, or -1. */
static int
known_as(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
			const size_t n = strlen(prefixes[p]);

			if (strncmp(name, prefixes[p], n) == 0 &&
				strcmp(name + n, known[i].name) == 0)
				return (int)i;
		}
	}
	return -1;
}

static bool
non_negative(const struct tok_json *v, uint64_t *n)
{
	if (!tok_json_is_integer(v) || tok_json_integer_value(v) < 0)
		return false;
	*n = (uint64_t)tok_json_integer_value(v);
	return true;
}

/* Elements by the shape; false: not a shape, or beyond 2^64. */
static bool
elements_of(const struct tok_json *shape, uint64_t *elements)
{
	uint64_t n;

	*elements = 1;
	if (!tok_json_is_array(shape) || tok_json_array_size(shape) > AXES_MAX)
		return false;
	for (size_t i = 0; i < tok_json_array_size(shape); i++) {
		if (!non_negative(tok_json_at(shape, i), &n) ||
			__builtin_mul_overflow(*elements, n, elements))
			return false;
	}
	return true;
}

static bool
take_known(struct tokg_table_file *f, const char *name, int k, const struct tok_json *shape,
	const struct dtype *d, uint64_t offset, struct tokg_error *err)
{
	struct tokg_tensor *t = &f->part[known[k].part];
	const size_t n_axes = tok_json_array_size(shape);

	if (n_axes != known[k].n_axes)
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\" has %zu axes, must have %u", f->path, name,
			n_axes, known[k].n_axes);
	if (t->rows != 0)
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\" is a second table of its kind: keep one model "
			"per file",
			f->path, name);
	t->dtype = d->ours;
	t->offset = offset;
	t->rows = n_axes == 2 ? (uint64_t)tok_json_integer_value(tok_json_at(shape, 0)) : 1;
	t->dim = (uint64_t)tok_json_integer_value(tok_json_at(shape, n_axes - 1));
	if (t->rows == 0 || t->rows > TOKG_ROWS_MAX || t->dim == 0 || t->dim > TOKG_DIM_MAX)
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\" has %" PRIu64 " rows of %" PRIu64
			", must be 1 to %u of 1 to %u",
			f->path, name, t->rows, t->dim, TOKG_ROWS_MAX, TOKG_DIM_MAX);
	return true;
}

static bool
take_tensor(struct tokg_table_file *f, const char *name, const struct tok_json *v, uint64_t data,
	struct span *span, struct tokg_error *err)
{
	const struct tok_json *shape = tok_json_get(v, "shape");
	const struct tok_json *offsets = tok_json_get(v, "data_offsets");
	const char *dtype = tok_json_string_value(tok_json_get(v, "dtype"));
	const struct dtype *d = dtype != NULL ? dtype_of(dtype) : NULL;
	const int k = known_as(name);
	uint64_t bytes;

	if (dtype == NULL)
		return tokg_agent_wrong(
			err, "table %s: tensor \"%.64s\" has no dtype", f->path, name);
	if (d == NULL && k >= 0)
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\" is %.16s, must be F32, F16 or BF16: convert the "
			"model",
			f->path, name, dtype);
	if (!elements_of(shape, &bytes) ||
		(d != NULL && __builtin_mul_overflow(bytes, d->bytes, &bytes)))
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\": the shape must be at most %d sizes below 2^64",
			f->path, name, AXES_MAX);
	span->name = name;
	if (tok_json_array_size(offsets) != 2 ||
		!non_negative(tok_json_at(offsets, 0), &span->begin) ||
		!non_negative(tok_json_at(offsets, 1), &span->end))
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\": data_offsets must be two numbers", f->path,
			name);
	if (span->begin > span->end || span->end > f->bytes - data)
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\": data_offsets [%" PRIu64 ", %" PRIu64
			") exceed the %" PRIu64 " bytes of tensors",
			f->path, name, span->begin, span->end, f->bytes - data);
	if (d != NULL && span->end - span->begin != bytes)
		return tokg_agent_wrong(err,
			"table %s: tensor \"%.64s\" has %" PRIu64
			" bytes, its shape needs %" PRIu64,
			f->path, name, span->end - span->begin, bytes);
	return k < 0 || take_known(f, name, k, shape, d, data + span->begin, err);
}

static int
by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static bool
covers(const struct tokg_table_file *f, struct span *span, size_t n, uint64_t bytes,
	struct tokg_error *err)
{
	uint64_t at = 0;

	qsort(span, n, sizeof(*span), by_begin);
	for (size_t i = 0; i < n; i++) {
		if (span[i].begin < at)
			return tokg_agent_wrong(err,
				"table %s: tensors \"%.64s\" and \"%.64s\" overlap", f->path,
				span[i - 1].name, span[i].name);
		if (span[i].begin > at)
			return tokg_agent_wrong(err,
				"table %s: a gap of %" PRIu64 " bytes before tensor \"%.64s\"",
				f->path, span[i].begin - at, span[i].name);
		at = span[i].end;
	}
	if (at != bytes)
		return tokg_agent_wrong(err, "table %s: %" PRIu64 " bytes after the last tensor",
			f->path, bytes - at);
	return true;
}

static bool
take_tensors(struct tokg_table_file *f, const struct tok_json *root, uint64_t data,
	struct tokg_error *err)
{
	struct span *span = calloc(tok_json_object_size(root) + 1, sizeof(*span));
	size_t n = 0;
	bool good = true;

	if (span == NULL)
		return tokg_agent_wrong(err, "table %s: cannot allocate its header", f->path);
	for (uint32_t i = 0; i < root->n && good; i++) {
		const struct tok_json *v = root->item[i];

		if (strcmp(v->key, "__metadata__") != 0)
			good = take_tensor(f, v->key, v, data, &span[n++], err);
	}
	good = good && covers(f, span, n, f->bytes - data, err);
	free(span);
	return good;
}

bool
tokg_safetensors_find(struct tokg_table_file *f, struct tokg_error *err)
{
	struct tok_json_tree tree = {0};
	struct tok_json_text at = {0};
	uint64_t length;
	char *text;
	bool good;

	if (!tokg_file_read(f, 0, &length, sizeof(length), err))
		return false;
	length = le64toh(length);
	if (length < 2 || length > HEADER_MAX || length > f->bytes - sizeof(length))
		return tokg_agent_wrong(err,
			"table %s: neither .npy nor safetensors, or cut off: of a model give the "
			".safetensors file that has its embeddings",
			f->path);
	text = malloc(length + 1);
	if (text == NULL)
		return tokg_agent_wrong(err, "table %s: cannot allocate its header", f->path);
	good = tokg_file_read(f, sizeof(length), text, length, err);
	if (good) {
		text[length] = '\0';
		if (tok_json_tree_read(&tree, text, length, &at) && tok_json_is_object(tree.root))
			good = take_tensors(f, tree.root, sizeof(length) + length, err);
		else
			good = tokg_agent_wrong(err, "table %s: the safetensors header: %s",
				f->path, at.why != NULL ? at.why : "not a JSON object");
		tok_json_tree_free(&tree);
	}
	free(text);
	return good;
}
