/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer.json whose model is WordPiece, for load/huggingface/tokenizer_json.c. */
#ifndef TOK_LOAD_BERT_JSON_H
#define TOK_LOAD_BERT_JSON_H

#include "load/json_vocab.h"

bool tok_json_is_bert(const json_t *root);

/* Are all components what BERT's are? */
bool tok_json_bert_check(const char *file, json_t *root, struct tok_error *err);

/* The model, of a file that was checked; added[] has room for all added tokens. */
bool tok_json_bert_read(const char *file, json_t *root, struct tok_json_added *added,
	struct tok_model *m, struct tok_error *err);

#endif
