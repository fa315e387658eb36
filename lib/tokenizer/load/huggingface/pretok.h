/* SPDX-License-Identifier: BSD-3-Clause */
/* The normalizer and the pretokenizer of a tokenizer.json. Set-up only. */
#pragma once

#include <jansson.h>

#include "build/model.h"

/* None, or form C. */
bool tok_json_normalizer(const char *file, json_t *root, bool *nfc, struct tok_error *err);

/* Which pretokenizer; one that is not known is refused by name. */
bool tok_json_pretok(const char *file, json_t *root, enum tok_pretok *kind, struct tok_error *err);
