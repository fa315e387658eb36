/* SPDX-License-Identifier: BSD-3-Clause */
/* The added tokens of a tokenizer.json. Set-up only. */
#pragma once

#include "load/json_vocab.h"

/*
 * Read the list `added_tokens` of a file to added[], which has room. `vocab` is the model's
 * vocabulary: ids depend on it.
 */
bool tok_json_added_read(const char *file, const struct tok_json *root,
	const struct tok_json_vocab *vocab, struct tok_json_added *added, struct tok_error *err);

/* Put the tokens of those that are not in the vocabulary into the model. */
bool tok_json_added_put(const char *file, const struct tok_json_vocab *vocab,
	const struct tok_json_added *added, size_t n, struct tok_model *m, struct tok_error *err);

/* Store them in the model, which has their tokens already. */
bool tok_json_added_keep(
	const struct tok_json_added *added, size_t n, struct tok_model *m, struct tok_error *err);
