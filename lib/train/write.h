/* SPDX-License-Identifier: BSD-3-Clause */
/* Write a trained vocabulary as a tokenizer.json, as Hugging Face's save does. */
#pragma once

#include "merge.h"

/* On error returns false and fills in *err; an existing file is then unchanged. */
bool train_write(const struct tok_train_options *o, const struct train_tokens *t,
	const struct train_merges *merges, const char *out, struct tok_error *err);
