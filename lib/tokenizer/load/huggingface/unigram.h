/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer.json with a Unigram model: XLM-R, multilingual E5, T5. Set-up only. */
#pragma once

#include "load/json_vocab.h"

bool tok_json_is_unigram(const struct tok_json *root);

/* Components that are not implemented are refused; what the others say goes to *m. */
bool tok_json_unigram_check(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/* The model of a file; added[] has room for its added tokens. */
bool tok_json_unigram_read(const struct tok_json_file *f, struct tok_json_added *added,
	struct tok_model *m, struct tok_error *err);
