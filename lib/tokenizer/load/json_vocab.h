/* SPDX-License-Identifier: BSD-3-Clause */
/* What tokenizer.json and vocab.json have in common: a JSON object of byte-level text to id. */
#ifndef TOK_JSON_VOCAB_H
#define TOK_JSON_VOCAB_H

#include <jansson.h>

#include "build/model_make.h"

/* Parse a file; NULL with *err filled in. Duplicate keys are refused. */
json_t *tok_json_read(const char *path, struct tok_error *err);

/* An added token: its id, enum tok_added_what, and text. */
struct tok_json_added {
	uint32_t id;
	uint32_t what;
	const char *text;
};

/* Largest id + 1, and bytes of text of all entries, each at most `most`; false if one is no id. */
bool tok_json_measure(const char *file, json_t *vocab, size_t most, uint32_t *n_ids, size_t *bytes,
	struct tok_error *err);

/*
 * Make the tokens of `m` from the object `vocab`, and those of added[] that it does not have as
 * byte-level text, or that are special, as their text; with room for n_merges. `file` names it in
 * errors.
 */
bool tok_json_tokens(const char *file, const json_t *vocab, const struct tok_json_added *added,
	size_t n_added, uint32_t n_merges, struct tok_model *m, struct tok_error *err);

/* Append the merge "left right"; `where` names it in errors. */
bool tok_json_merge(struct tok_model *m, const struct tok_index *x, const char *where,
	const char *left, size_t left_len, const char *right, size_t right_len,
	struct tok_error *err);

#endif
