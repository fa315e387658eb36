/* SPDX-License-Identifier: BSD-3-Clause */
#include "bpe.h"

/*
 * What the token at place `at` and its right neighbour merge to, above the place: the least key is
 * the merge that comes next, since a result's rank id is its priority; among equals the leftmost,
 * as in the reference.
 */
#define PLACE_BITS 5
#define NO_MERGE INT32_MAX
static_assert(TOK_MERGE_MAX <= 1 << PLACE_BITS, "a place fits its bits");

static inline int32_t
key_of(uint32_t result, uint32_t at)
{
	/* Rank ids have 21 bits at most (struct tok_vocab, pair). */
	return result == TOK_NO_TOKEN ? NO_MERGE : (int32_t)(result << PLACE_BITS | at);
}

uint32_t
tok_bpe_merge(const struct tok_vocab *v, const uint8_t *p, uint32_t n, uint32_t *out)
{
	int32_t key[TOK_MERGE_MAX];
	uint32_t token[TOK_MERGE_MAX];
	uint8_t next[TOK_MERGE_MAX + 1], prev[TOK_MERGE_MAX + 1];
	uint32_t i, n_out = 0;

	for (i = 0; i < TOK_MERGE_MAX; i++)
		key[i] = NO_MERGE;
	for (i = 0; i < n; i++) {
		token[i] = p[i];
		next[i] = (uint8_t)(i + 1);
		prev[i] = (uint8_t)(i - 1);
	}
	for (i = 0; i + 1 < n; i++)
		key[i] = key_of(v->byte_pair[(uint32_t)p[i] << 8 | p[i + 1]], i);
	for (;;) {
		int32_t best = NO_MERGE;
		uint32_t at, right;

		/* All of them, however many there are: without a branch, by vectors. */
		for (i = 0; i < TOK_MERGE_MAX; i++)
			best = key[i] < best ? key[i] : best;
		if (best == NO_MERGE)
			break;
		at = (uint32_t)best & ((1u << PLACE_BITS) - 1);
		token[at] = (uint32_t)best >> PLACE_BITS;
		right = next[at];
		key[right] = NO_MERGE;
		right = next[right];
		next[at] = (uint8_t)right;
		prev[right] = (uint8_t)at;
		key[at] = right < n ? key_of(tok_pair(v, token[at], token[right]), at) : NO_MERGE;
		if (at > 0) {
			uint32_t left = prev[at];

			key[left] = key_of(tok_pair(v, token[left], token[at]), left);
		}
	}
	for (i = 0; i < n; i = next[i])
		out[n_out++] = token[i];
	return n_out;
}
