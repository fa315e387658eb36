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

/* Tokens side by side: a list by places. */
struct parts {
	int32_t key[TOK_MERGE_MAX];
	uint32_t token[TOK_MERGE_MAX];
	uint8_t next[TOK_MERGE_MAX + 1], prev[TOK_MERGE_MAX + 1];
};

/* The family whose first merge makes this token, or TOK_REPEATS_MAX. */
static inline uint32_t
family_of(const struct tok_vocab *v, uint32_t token)
{
	uint32_t i = 0;

	while (i < v->n_repeats && v->repeat[i].low != token)
		i++;
	return i < v->n_repeats ? i : TOK_REPEATS_MAX;
}

/* What the token at place `at` and its right neighbour, if there is one, merge to. */
static inline int32_t
key_at(const struct tok_vocab *v, const struct parts *x, uint32_t at, uint32_t n)
{
	const uint32_t right = x->next[at];

	return right < n ? key_of(tok_pair(v, x->token[at], x->token[right]), at) : NO_MERGE;
}

/* All units from `at` on become what the family makes of such a run. */
static void
merge_run(const struct tok_vocab *v, uint32_t family, struct parts *x, uint32_t at, uint32_t n)
{
	const struct tok_repeat_runs *runs = &v->repeat_runs[family];
	const uint32_t unit = v->repeat[family].unit;
	uint32_t units = 0, right = at;
	uint8_t place[TOK_MERGE_MAX];

	for (; right < n && x->token[right] == unit; right = x->next[right]) {
		place[units++] = (uint8_t)right;
		x->key[right] = NO_MERGE;
	}
	/* The tokens of the run, from the last to the first. */
	while (units > 0) {
		const uint32_t last = runs->last[units], begin = place[units - last];

		x->token[begin] = runs->rank[last];
		x->next[begin] = (uint8_t)right;
		x->prev[right] = (uint8_t)begin;
		x->key[begin] = key_at(v, x, begin, n);
		right = begin;
		units -= last;
	}
}

uint32_t
tok_bpe_merge(const struct tok_vocab *v, const uint8_t *p, uint32_t n, uint32_t *out)
{
	struct parts x;
	uint32_t i, n_out = 0;

	for (i = 0; i < TOK_MERGE_MAX; i++)
		x.key[i] = NO_MERGE;
	for (i = 0; i < n; i++) {
		x.token[i] = p[i];
		x.next[i] = (uint8_t)(i + 1);
		x.prev[i] = (uint8_t)(i - 1);
	}
	for (i = 0; i + 1 < n; i++)
		x.key[i] = key_of(v->byte_pair[(uint32_t)p[i] << 8 | p[i + 1]], i);
	for (;;) {
		int32_t best = NO_MERGE;
		uint32_t at, right, family;

		/* All of them, however many there are: without a branch, by vectors. */
		for (i = 0; i < TOK_MERGE_MAX; i++)
			best = x.key[i] < best ? x.key[i] : best;
		if (best == NO_MERGE)
			break;
		at = (uint32_t)best & ((1u << PLACE_BITS) - 1);
		family = family_of(v, (uint32_t)best >> PLACE_BITS);
		if (family < TOK_REPEATS_MAX) {
			merge_run(v, family, &x, at, n);
		} else {
			x.token[at] = (uint32_t)best >> PLACE_BITS;
			right = x.next[at];
			x.key[right] = NO_MERGE;
			right = x.next[right];
			x.next[at] = (uint8_t)right;
			x.prev[right] = (uint8_t)at;
			x.key[at] = key_at(v, &x, at, n);
		}
		if (at > 0)
			x.key[x.prev[at]] = key_at(v, &x, x.prev[at], n);
	}
	for (i = 0; i < n; i = x.next[i])
		out[n_out++] = x.token[i];
	return n_out;
}
