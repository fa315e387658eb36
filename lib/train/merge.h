/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge the most frequent pair until the vocabulary is large enough. */
#pragma once

#include "tokens.h"

/* Merges in the order in which they are applied: ids of tokens. */
struct train_merges {
	uint64_t *merge; /* left << 32 | right */
	uint32_t n;
};

/*
 * Make tokens of pairs, add them to `t`, and list the merges; the caller frees the list. The words
 * are freed once they are read. On error returns false and fills in *err.
 */
bool train_merge(const struct tok_train_options *o, struct train_words *words,
	const struct train_alphabet *a, struct train_tokens *t, struct train_merges *merges,
	struct tok_error *err);
