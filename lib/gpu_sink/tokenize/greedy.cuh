/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Longest match within pretokens: what encode/greedy.c of lib/tokenizer does, with many threads.
 * Each byte gets the longest token that begins there, and so the byte where the next token would
 * begin. The bytes where tokens do begin are those reached from the beginnings of pretokens. They
 * are marked by pointer jumping: round k marks those up to 2^k tokens from there, so the rounds are
 * few also for a text that is one pretoken.
 */
#pragma once

#include "pretokens.cuh"

/* The longest token at `at`, within the pretoken: its id to *id. Returns where it ends. */
TOKG_DEV uint32_t
tokg_longest_at(const struct tok_vocab *v, const struct tokg_text *t, const struct tokg_arrays *a,
	uint32_t at, uint32_t *id)
{
	const struct tok_longest *const l = &v->longest;
	uint32_t node = TOK_LONGEST_GO_ON, end = at;

	do {
		uint32_t token;

		node = tok_longest_child(&l->node[node], t->bytes[at++]);
		if (node == TOK_NO_TOKEN)
			break;
		token = tok_longest_token(l, node);
		if (token != TOK_NO_TOKEN) {
			*id = token;
			end = at;
		}
	} while (at < t->n && !tokg_listed(a, at));
	return end;
}

/*
 * One round: marks a leap after each marked byte, and the leaps of the next round, which are twice
 * as long. Returns how many marks this thread made.
 */
TOKG_DEV uint32_t
tokg_leap(tokg_block *b, uint32_t n, const uint32_t *leap, uint32_t *next, uint8_t *marked)
{
	uint32_t made = 0;

	for (uint32_t i = b->tid; i < n; i += b->n) {
		const uint32_t to = leap[i];

		if (to < n && marked[i] && !marked[to]) {
			marked[to] = 1; /* by all who do: the same */
			made++;
		}
		next[i] = to < n ? leap[to] : n;
	}
	return made;
}

/* All pretokens, whose borders are found. */
TOKG_DEV void
tokg_greedy_words(tokg_block *b, const struct tok_vocab *v, const struct tokg_text *t,
	const struct tokg_arrays *a)
{
	uint8_t *const marked = a->of_class; /* the pretokens do not need it any more */
	uint32_t *leap = a->key, *next = (uint32_t *)(void *)a->word;

	for (uint32_t i = b->tid; i < t->n; i += b->n) {
		leap[i] = tokg_longest_at(v, t, a, i, &a->id[i]);
		marked[i] = tokg_listed(a, i);
	}
	tokg_sync(b);
	while (tokg_sum(b, tokg_leap(b, t->n, leap, next, marked)) > 0) {
		uint32_t *const was = leap;

		leap = next;
		next = was;
	}
	for (uint32_t i = b->tid; i < t->n; i += b->n) {
		if (!marked[i])
			a->id[i] = TOK_NO_TOKEN;
	}
	tokg_sync(b);
}
