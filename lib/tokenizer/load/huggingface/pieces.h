/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer.json of SentencePiece's BPE (Llama 2, Gemma), for load/huggingface/tokenizer_json.c.
 * Set-up only.
 */
#ifndef TOK_JSON_PIECES_H
#define TOK_JSON_PIECES_H

#include "load/json_rules.h"

/* Is the model BPE in characters, which fall back to bytes? */
bool tok_json_is_pieces(const json_t *root);

/* Check all components but the tokens: m->pretok and m->metaspace. */
bool tok_json_pieces(const char *file, json_t *root, struct tok_model *m, struct tok_error *err);

#endif
