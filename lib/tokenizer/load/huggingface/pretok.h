/* SPDX-License-Identifier: BSD-3-Clause */
/* The pretokenizer of a tokenizer.json. Set-up only. */
#pragma once

#include "build/model.h"
#include "load/json_tree.h"

/* The pretokenizer: one with a name, or its regular expressions. */
bool tok_json_pretok(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);
