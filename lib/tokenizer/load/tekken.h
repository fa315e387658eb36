/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistral's tekken.json. Set-up only. */
#pragma once

#include "build/model.h"
#include "json_tree.h"

bool tok_is_tekken(const struct tok_json *root);

/* Like the loaders in model.h, but the file has been parsed already. */
bool tok_load_tekken(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);
