/* SPDX-License-Identifier: BSD-3-Clause */
/* Normalizers of a tokenizer.json as steps. Set-up only. */
#pragma once

#include "load/json_rules.h"

/* What tok_json_step takes, for errors. */
#define TOK_JSON_STEPS                                                                             \
	"NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, BertNormalizer, Sequence"

/* Of a component that has a type alone, of Strip, and of Replace. */
extern const struct tok_json_rule tok_json_type_rules[1];
extern const struct tok_json_rule tok_json_strip_rules[3], tok_json_replace_rules[3];

/* Append the steps of one normalizer, or of a Sequence. `what`: its path in the file. */
bool tok_json_step(const char *file, const char *what, const struct tok_json *normalizer,
	struct tok_model_norm *norm, struct tok_error *err);
