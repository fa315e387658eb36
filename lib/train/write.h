/* SPDX-License-Identifier: BSD-3-Clause */
/* What was trained to a tokenizer.json, as Hugging Face's own save writes it. */
#ifndef TOK_TRAIN_WRITE_H
#define TOK_TRAIN_WRITE_H

#include "merge.h"

/* False with *err filled in; there is no file then, or the one that was there. */
bool train_write(const struct tok_train_options *o, const struct train_tokens *t,
	const struct train_merges *merges, const char *out, struct tok_error *err);

#endif
