/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fill in tok_vocab.byte_runs. The last token of a run of n bytes is the one that stands behind the
 * last token of the run without it; there is exactly one (doc/internals/streaming.md). Set-up only.
 */
#include "encode/bpe.h"
#include "parts.h"

#define WORTH_IT 4 /* bytes of the longest token: shorter ones are checked in few steps */

/* Tokens that are a run of `byte`, by length; TOK_NO_TOKEN: none. Returns the longest length, or 0:
 * it is above TOK_BYTE_RUN_MAX. */
static uint32_t
find_tokens(const struct tok_vocab *v, uint8_t byte, uint32_t *token)
{
	const struct tok_node *node = &v->node[0];
	uint32_t longest = 0;

	for (uint32_t n = 1; node->child[byte >> 6] >> (byte & 63) & 1; n++) {
		if (n > TOK_BYTE_RUN_MAX)
			return 0;
		node = &v->node[tok_child(node, byte)];
		token[n] = node->token;
		longest = token[n] != TOK_NO_TOKEN ? n : longest;
	}
	return longest;
}

static bool
is_last(const struct tok_vocab *v, const uint32_t *token, const uint8_t *last, uint32_t n,
	uint32_t len)
{
	return len <= n && token[len] != TOK_NO_TOKEN &&
	       (len == n || tok_bpe_pair_stands(v, token[last[n - len]], token[len], TOK_NO_TOKEN));
}

/* False: some run has no last token, as only tables that contradict each other say. */
static bool
fill(const struct tok_vocab *v, const uint32_t *token, uint32_t longest, uint8_t *last)
{
	last[0] = 0;
	for (uint32_t n = 1; n <= 2 * longest; n++) {
		uint32_t len = last[n - 1] + 1u; /* most of the time one more byte */

		if (len > longest || !is_last(v, token, last, n, len))
			for (len = longest; len > 0 && !is_last(v, token, last, n, len);)
				len--;
		if (len == 0)
			return false;
		last[n] = (uint8_t)len;
	}
	return true;
}

void
tok_byte_runs_fill(struct tok_vocab *v)
{
	struct tok_byte_runs *runs = &v->byte_runs;
	uint32_t token[TOK_BYTE_RUN_MAX + 1], used = 0;

	for (uint32_t byte = 0; byte < TOK_BYTES; byte++) {
		const uint32_t longest = find_tokens(v, (uint8_t)byte, token);

		runs->from[byte] = TOK_BYTE_RUN_NONE;
		if (longest < WORTH_IT ||
			used + 2 * longest + 2 * TOK_BYTE_RUN_MAX >= sizeof(runs->last) ||
			!fill(v, token, longest, runs->last + used))
			continue;
		runs->from[byte] = (uint16_t)used;
		used += 2 * longest + 1;
	}
}
