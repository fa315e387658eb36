/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer.json of a SentencePiece BPE model (Llama 2, Gemma). Set-up only. */
#pragma once

#include "load/json_rules.h"

/* Is the model BPE on characters, with byte_fallback? */
bool tok_json_is_pieces(const struct tok_json *root);

/* Check all components except the tokens. Fills in m->pretok and m->metaspace. */
bool tok_json_pieces(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);
