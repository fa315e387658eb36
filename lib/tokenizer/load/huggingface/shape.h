/* SPDX-License-Identifier: BSD-3-Clause */
/* post_processor, truncation and padding of a tokenizer.json: m->shape. Set-up only. */
#ifndef TOK_JSON_SHAPE_H
#define TOK_JSON_SHAPE_H

#include <jansson.h>

#include "build/model.h"

/* Of a model whose tokens are there: the ids of a template must be among them. */
bool tok_json_shape(const char *file, json_t *root, struct tok_model *m, struct tok_error *err);

#endif
