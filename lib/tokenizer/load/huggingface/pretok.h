/* SPDX-License-Identifier: BSD-3-Clause */
/* The normalizer and the pretokenizer of a tokenizer.json. Set-up only. */
#pragma once

#include <jansson.h>

#include "build/model.h"

/* None, or form C. */
bool tok_json_normalizer(const char *file, json_t *root, bool *nfc, struct tok_error *err);

/* The pretokenizer: one with a name, or its regular expressions. */
bool tok_json_pretok(const char *file, json_t *root, struct tok_model *m, struct tok_error *err);
