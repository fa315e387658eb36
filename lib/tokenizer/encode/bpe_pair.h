/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "bpe.h"
#include "cache.h"

/* tok_bpe_pair_stands() with all merges, using the thread's cache. */
static inline bool
tok_bpe_stands(struct tok_cache *c, const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	uint64_t key = (uint64_t)left << 21 | right, *slot;
	bool stands;

	if (c == NULL)
		return tok_bpe_pair_stands(v, left, right, TOK_NO_TOKEN);
	slot = tok_cache_pair(c, left, right);
	/* Free slots hold 0, which is also the key of two zero bytes: that pair is never cached. */
	if (*slot >> 1 == key && key != 0)
		return *slot & 1;
	stands = tok_bpe_pair_stands(v, left, right, TOK_NO_TOKEN);
	*slot = key << 1 | stands;
	return stands;
}
