/* SPDX-License-Identifier: BSD-3-Clause */
#include "bpe.h"

uint32_t
tok_bpe_merge(const struct tok_vocab *v, const uint8_t *p, uint32_t n, uint32_t *out)
{
	/* sym[i] is a token, rank[i] what it and its right neighbour merge to. A merge's rank id
	 * is its priority, so the least of rank[] is the merge that comes next; among equals the
	 * leftmost, as in the reference. */
	uint32_t rank[TOK_MERGE_MAX];
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = p[i];
	for (i = 0; i + 1 < n; i++)
		rank[i] = v->byte_pair[(uint32_t)p[i] << 8 | p[i + 1]];
	while (n > 1) {
		uint32_t best = rank[0], at = 0;

		for (i = 1; i < n - 1; i++) {
			bool less = rank[i] < best;

			best = less ? rank[i] : best;
			at = less ? i : at;
		}
		if (best == TOK_NO_TOKEN)
			break;
		out[at] = best;
		n--;
		for (i = at + 1; i < n; i++)
			out[i] = out[i + 1];
		for (i = at; i + 1 < n; i++)
			rank[i] = rank[i + 1];
		if (at + 1 < n)
			rank[at] = tok_pair(v, best, out[at + 1]);
		if (at > 0)
			rank[at - 1] = tok_pair(v, out[at - 1], best);
	}
	return n;
}
