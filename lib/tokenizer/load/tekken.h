/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistral's tekken.json. Set-up only. */
#pragma once

#include <jansson.h>

#include "build/model.h"

bool tok_is_tekken(const json_t *root);

/* Like the loaders in model.h, but the file has been parsed already. */
bool tok_load_tekken(const char *file, json_t *root, struct tok_model *m, struct tok_error *err);
