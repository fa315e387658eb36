/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tokenizer.json and vocab.json: a JSON object of byte-level text to id. */
#pragma once

#include <jansson.h>

#include "build/model_make.h"

/* Parse a file. On error NULL, and fills in *err. Duplicate keys are an error. */
json_t *tok_json_read(const char *path, struct tok_error *err);

/* An added token. */
struct tok_json_added {
	uint32_t id;
	uint32_t what;
	const char *text;
};

/*
 * Find the largest id + 1, and the total bytes of text. False: an id is invalid, or a text has more
 * than `most` bytes.
 */
bool tok_json_measure(const char *file, json_t *vocab, size_t most, uint32_t *n_ids, size_t *bytes,
	struct tok_error *err);

/*
 * Create m's tokens from the object `vocab`, with room for n_merges. Add the tokens of added[] that
 * are special, or not in the object as byte-level text. `file` is named in errors.
 */
bool tok_json_tokens(const char *file, const json_t *vocab, const struct tok_json_added *added,
	size_t n_added, uint32_t n_merges, struct tok_model *m, struct tok_error *err);

/* Append the merge "left right". `where` is named in errors. */
bool tok_json_merge(struct tok_model *m, const struct tok_index *x, const char *where,
	const char *left, size_t left_len, const char *right, size_t right_len,
	struct tok_error *err);
