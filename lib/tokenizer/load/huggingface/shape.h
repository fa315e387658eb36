/* SPDX-License-Identifier: BSD-3-Clause */
/* The post_processor, truncation and padding of a tokenizer.json. Set-up only. */
#pragma once

#include "build/model.h"
#include "load/json_tree.h"

/* Fill in m->shape. The model must have its tokens: a template's ids must be among them. */
bool tok_json_shape(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);
