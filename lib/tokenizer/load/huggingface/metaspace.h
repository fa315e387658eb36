/* SPDX-License-Identifier: BSD-3-Clause */
/* The component Metaspace of a tokenizer.json. Set-up only. */
#pragma once

#include "load/json_rules.h"

#define TOK_JSON_METASPACE_MARK "\"\u2581\""

/* Check a Metaspace, pretokenizer or decoder. `what`: its path. *split: split before each blank. */
bool tok_json_metaspace(const char *file, const char *what, const struct tok_json *component,
	enum tok_prefix *prefix, bool *split, struct tok_error *err);
