/* SPDX-License-Identifier: BSD-3-Clause */
#include "bpe.h"

/*
 * A key: the rank id that a token and its right neighbour merge to, shifted above the token's
 * place. A lower rank id means an earlier merge, so the least key is the next merge; among equal
 * ranks it is the leftmost, as in the reference.
 */
#define PLACE_BITS 5
#define NO_MERGE INT32_MAX
static_assert(TOK_MERGE_MAX <= 1 << PLACE_BITS, "a place fits its bits");

static inline int32_t
key_of(uint32_t result, uint32_t at)
{
	/* Rank ids have 21 bits at most (struct tok_vocab, pair). */
	return (int32_t)((result << PLACE_BITS | at) | -(result >> 31)) & INT32_MAX;
}

/*
 * The tokens of a word as a doubly linked list of places. One extra place, BEFORE, stands for what
 * comes before the first token.
 */
#define BEFORE TOK_MERGE_MAX
struct parts {
	int32_t key[TOK_MERGE_MAX + 1];
	uint32_t token[TOK_MERGE_MAX + 1];
	uint8_t next[TOK_MERGE_MAX + 1], prev[TOK_MERGE_MAX + 1];
	uint32_t n; /* bytes */
	struct tok_bpe_word *word;
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

/* Set the key of a place. */
static inline void
find_key(const struct tok_vocab *v, struct parts *x, uint32_t at)
{
	const uint32_t right = x->next[at];
	const int32_t key = key_of(tok_pair(v, x->token[at], x->token[right]), at);

	x->key[at] = right < x->n ? key : NO_MERGE;
}

/* Replace the run of units from `at` on by the tokens that the family makes of it. */
static void
merge_run(const struct tok_vocab *v, uint32_t family, struct parts *x, uint32_t at)
{
	const struct tok_repeat_runs *runs = &v->repeat_runs[family];
	const uint32_t unit = v->repeat[family].unit;
	uint32_t units = 0, right = at;
	uint8_t place[TOK_MERGE_MAX];

	for (; right < x->n && x->token[right] == unit; right = x->next[right]) {
		place[units++] = (uint8_t)right;
		x->key[right] = NO_MERGE;
	}
	/* The tokens of the run, from the last to the first. */
	while (units > 0) {
		const uint32_t last = runs->last[units], begin = place[units - last];

		x->token[begin] = runs->rank[last];
		x->next[begin] = (uint8_t)right;
		x->prev[right] = (uint8_t)begin;
		find_key(v, x, begin);
		right = begin;
		units -= last;
	}
}

static void
open_word(const struct tok_vocab *v, struct parts *x, struct tok_bpe_word *w)
{
	const uint8_t *p = w->p;
	uint32_t i;

	x->word = w;
	x->n = w->n;
	for (i = 0; i < TOK_MERGE_MAX; i++) {
		x->key[i] = NO_MERGE;
		x->next[i] = (uint8_t)(i + 1);
		x->prev[i] = (uint8_t)(i - 1);
	}
	for (i = 0; i < w->n; i++)
		x->token[i] = p[i];
	x->token[w->n] = x->token[BEFORE] = 0; /* read, but without effect */
	x->prev[0] = BEFORE;
	x->next[BEFORE] = 0;
	for (i = 0; i + 1 < w->n; i++)
		x->key[i] = key_of(v->byte_pair[(uint32_t)p[i] << 8 | p[i + 1]], i);
}

/* Apply the next merge. False: there is none left. */
static inline bool
merge_next(const struct tok_vocab *v, struct parts *x)
{
	int32_t best = NO_MERGE;
	uint32_t at, right, family;

	/* The least of all keys, with a fixed count: without branches, vectorized. */
	for (uint32_t i = 0; i < TOK_MERGE_MAX; i++)
		best = x->key[i] < best ? x->key[i] : best;
	if (best == NO_MERGE)
		return false;
	at = (uint32_t)best & ((1u << PLACE_BITS) - 1);
	family = family_of(v, (uint32_t)best >> PLACE_BITS);
	if (family < TOK_REPEATS_MAX) {
		merge_run(v, family, x, at);
	} else {
		x->token[at] = (uint32_t)best >> PLACE_BITS;
		right = x->next[at];
		x->key[right] = NO_MERGE;
		right = x->next[right];
		x->next[at] = (uint8_t)right;
		x->prev[right] = (uint8_t)at;
	}
	find_key(v, x, at);
	find_key(v, x, x->prev[at]);
	return true;
}

static void
close_word(const struct parts *x)
{
	struct tok_bpe_word *w = x->word;

	w->n_out = 0;
	for (uint32_t i = 0; i < x->n; i = x->next[i])
		w->out[w->n_out++] = x->token[i];
}

/*
 * Merge several words at a time, interleaved. A merge needs the result of the merge before it, so
 * a single word would spend most of its time waiting for table look-ups.
 */
#define LANES 4

void
tok_bpe_merge(const struct tok_vocab *v, struct tok_bpe_word *w, uint32_t n)
{
	struct parts parts[LANES], *lane[LANES];
	uint32_t lanes = 0, begun = 0;

	while (lanes < LANES && begun < n) {
		lane[lanes] = &parts[lanes];
		open_word(v, lane[lanes++], &w[begun++]);
	}
	while (lanes > 0) {
		for (uint32_t i = 0; i < lanes; i++) {
			if (merge_next(v, lane[i]))
				continue;
			close_word(lane[i]);
			if (begun < n)
				open_word(v, lane[i], &w[begun++]);
			else
				lane[i] = lane[--lanes];
		}
	}
}
