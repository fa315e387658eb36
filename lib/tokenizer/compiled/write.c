/* SPDX-License-Identifier: BSD-3-Clause */
/* Write a vocabulary's tables to a file. Set-up only. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unicode/bert_tables.h"
#include "tables/crc32.h"
#include "compiled.h"
#include "unicode/grapheme.h"
#include "build/model_make.h"
#include "build/vocab_table.h"

uint32_t
tok_compiled_constants(void)
{
	uint32_t crc = tok_crc32(0, tok_unicode_runs, tok_unicode_n_runs * sizeof(uint32_t));

	crc = tok_crc32(crc, tok_bert_classes, tok_bert_classes_n * sizeof(uint32_t));
	crc = tok_crc32(crc, tok_grapheme_runs, tok_grapheme_n_runs * sizeof(uint32_t));
	return tok_crc32(crc, tok_bert_lower, tok_bert_lower_n * sizeof(struct tok_bert_lower));
}

/* ---- header ---- */

static bool
describe_source(struct tok_compiled_source *s, const char *path, struct tok_error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
	size_t n;
	char *text;

	if (strlen(name) >= sizeof(s->name))
		return tok_fail(err, "%s: a name of %zu bytes, the limit is %zu",
			tok_shown_path(path), strlen(name), sizeof(s->name) - 1);
	text = tok_read_file(path, &n, err);
	if (text == NULL)
		return false;
	strcpy(s->name, name);
	s->bytes = n;
	s->crc = tok_crc32(0, text, n);
	free(text);
	return true;
}

static bool
make_header(struct tok_compiled_header *h, const struct tok_vocab *v, const char *const *paths,
	uint32_t n, struct tok_error *err)
{
	uint64_t off[TOK_N_TABLES];

	memcpy(h->magic, TOK_COMPILED_MAGIC, sizeof(h->magic));
	h->order = TOK_COMPILED_ORDER;
	h->version = TOK_COMPILED_VERSION;
	h->header_bytes = sizeof(*h);
	h->n_tables = TOK_N_TABLES;
	h->file_bytes = tok_vocab_layout(v->table_bytes, sizeof(*h), off);
	h->constants = tok_compiled_constants();
	snprintf(h->format, sizeof(h->format), "%s", v->info.format);
	if (h->file_bytes > TOK_COMPILED_MAX)
		return tok_fail(err, "its tables have %llu bytes, the limit is %llu",
			(unsigned long long)h->file_bytes, (unsigned long long)TOK_COMPILED_MAX);
	for (uint32_t i = 0; i < n; i++) {
		if (!describe_source(&h->source[i], paths[i], err))
			return false;
	}
#define KEEP(number_, field) h->number[TOK_NUMBER_##number_] = (uint32_t)v->field;
	TOK_NUMBERS(KEEP)
#undef KEEP
	memcpy(h->before, v->shape.around.before, sizeof(h->before));
	memcpy(h->after, v->shape.around.after, sizeof(h->after));
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		struct tok_compiled_table *to = &h->table[t];

		strcpy(to->name, tok_table_places[t].name);
		to->off = off[t];
		to->bytes = v->table_bytes[t];
		to->element = tok_table_places[t].element;
	}
	return true;
}

/* ---- file ---- */

/* The whole file in memory, with its checksums. The caller frees it. NULL: no memory. */
static uint8_t *
make_image(struct tok_compiled_header *h, const struct tok_vocab *v)
{
	uint8_t *image = calloc(1, h->file_bytes);

	if (image == NULL)
		return NULL;
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		if (h->table[t].bytes > 0)
			memcpy(image + h->table[t].off, tok_vocab_table(v, t), h->table[t].bytes);
	}
	h->data_sum = tok_compiled_sum(image + sizeof(*h), h->file_bytes - sizeof(*h));
	h->header_crc = tok_crc32(0, h, offsetof(struct tok_compiled_header, header_crc));
	memcpy(image, h, sizeof(*h));
	return image;
}

bool
tok_compiled_write(const struct tok_vocab *v, const char *const *paths, uint32_t n, const char *out,
	struct tok_error *err)
{
	struct tok_compiled_header h = {0};
	struct tok_whole_file file;
	uint8_t *image;
	bool ok;

	if (!make_header(&h, v, paths, n, err))
		return false;
	image = make_image(&h, v);
	ok = image != NULL || tok_fail(err, "out of memory for a file of %llu bytes",
				      (unsigned long long)h.file_bytes);
	ok = ok && tok_whole_file_begin(&file, out, err) &&
	     tok_whole_file_end(&file, tok_whole_file_put(&file, image, h.file_bytes), err);
	free(image);
	return ok;
}
