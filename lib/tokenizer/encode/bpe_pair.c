/* SPDX-License-Identifier: BSD-3-Clause */
/* Do two tokens stand side by side? doc/internals/streaming.md has the proof. Hot path. */
#include "bpe.h"

/* Would two tokens of a family be joined? All merges of the family are below `limit`. */
static inline bool
repeats_join(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit, bool *both)
{
	for (uint32_t i = 0; i < v->n_repeats; i++) {
		const uint32_t l = tok_repeat_units(&v->repeat[i], left);
		const uint32_t r = tok_repeat_units(&v->repeat[i], right);

		if (l == 0 || r == 0 || limit < v->repeat[i].high)
			continue;
		*both = true;
		return !(v->repeat_runs[i].stands[l] >> r & 1);
	}
	return false;
}

/* Do two tokens merge before the merge with rank id `limit`? */
static inline bool
merge_before(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit)
{
	/* Most checks end with two bytes, and the lines of common ones stay in the CPU's cache. */
	if ((left | right) < TOK_BYTES)
		return v->byte_pair[left << 8 | right].merge < limit;
	return tok_pair_may_be(v, left, right) && tok_pair(v, left, right) < limit;
}

bool
tok_bpe_pair_stands(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit)
{
	/* Undo the merges of both tokens, latest first. At each point the two tokens next to the
	 * border are what stood there when all merges before `limit` had been applied: if they
	 * themselves merge earlier than that, BPE would have joined them. */
	for (;;) {
		bool both = false;

		if (merge_before(v, left, right, limit) ||
			(left < v->repeats_end && right < v->repeats_end &&
				repeats_join(v, left, right, limit, &both)))
			return false;
		if (both)
			return true;
		if (left > right) {
			/* left came later. A merge of equal rank across the border lies to the
			 * right of it and would have come after it. */
			if (left < TOK_BYTES)
				return true;
			limit = left < limit ? left : limit;
			left = v->split[left].right;
		} else {
			/* right came later, or both have the same rank and left was first. A
			 * merge of equal rank across the border would have come before it. */
			if (right < TOK_BYTES)
				return true;
			limit = right < limit ? right + 1 : limit;
			right = v->split[right].left;
		}
	}
}
