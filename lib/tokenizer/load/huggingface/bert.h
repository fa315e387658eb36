/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer.json whose model is WordPiece. Set-up only. */
#pragma once

#include "load/json_vocab.h"

bool tok_json_is_bert(const struct tok_json *root);

/* Check all components. */
bool tok_json_bert_check(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/* Read the model of a file that has been checked. added[] has room for all added tokens. */
bool tok_json_bert_read(const struct tok_json_file *f, const struct tok_json_vocab *vocab,
	struct tok_json_added *added, struct tok_model *m, struct tok_error *err);
