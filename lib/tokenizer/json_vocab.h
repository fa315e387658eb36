/* SPDX-License-Identifier: BSD-3-Clause */
/* What tokenizer.json and vocab.json have in common: a JSON object of byte-level text to id. */
#ifndef TOK_JSON_VOCAB_H
#define TOK_JSON_VOCAB_H

#include <jansson.h>

#include "model_make.h"

/* Parse a file; NULL with *err filled in. Duplicate keys are refused. */
json_t *tok_json_read(const char *path, struct tok_error *err);

/* A special token: its id and text. */
struct tok_json_special {
	uint32_t id;
	const char *text;
};

/* Largest id + 1, and bytes of text of all entries, each at most `most`; false if one is no id. */
bool tok_json_measure(const char *file, json_t *vocab, size_t most, uint32_t *n_ids, size_t *bytes,
	struct tok_error *err);

/*
 * Make the tokens of `m` from the object `vocab`, and those of special[] as their text, with room
 * for n_merges. An entry whose id is special may be written as plain text. `file` names it in
 * errors.
 */
bool tok_json_tokens(const char *file, const json_t *vocab, const struct tok_json_special *special,
	size_t n_special, uint32_t n_merges, struct tok_model *m, struct tok_error *err);

/*
 * The list of added tokens, all special, to special[], which has room for them. `vocab` is the
 * model's: it decides their ids.
 */
bool tok_json_added(const char *file, json_t *added, const json_t *vocab,
	struct tok_json_special *special, struct tok_error *err);

/* Append the merge "left right"; `where` names it in errors. */
bool tok_json_merge(struct tok_model *m, const struct tok_index *x, const char *where,
	const char *left, size_t left_len, const char *right, size_t right_len,
	struct tok_error *err);

#endif
