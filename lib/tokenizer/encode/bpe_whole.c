/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte pair encoding of a long whole pretoken, by longest match with backtracking.
 *
 * A list of tokens is the encoding of their bytes if every two neighbours stand side by side. Every
 * string has exactly one such list (doc/internals/streaming.md). So at each position the longest
 * token that stands after the previous one is taken. If there is none, the previous token was wrong
 * and is replaced by the next shorter one. The encoding of the bytes before a position is unique,
 * so a position that was left by backtracking is never tried again.
 *
 * Going back is rare in text. Some runs of one character are made of it, and the encoder of cut
 * text is faster for them, so the number of times has a limit.
 */
#include "bpe.h"

static_assert(TOK_WHOLE_MAX <= UINT16_MAX, "positions are 16 bits");

struct whole {
	struct tok_cache *cache;
	const struct tok_vocab *v;
	const uint8_t *p;
	uint32_t n_tokens;	       /* of the encoding so far */
	uint32_t token[TOK_WHOLE_MAX]; /* rank ids */
	bool dead[TOK_WHOLE_MAX + 1]; /* the encoding of the pretoken does not pass this position */
};

/*
 * The tokens that begin at `at` and have at most `most` bytes, shortest first; found[0] is a single
 * byte. Returns their number.
 */
static inline uint32_t
find_tokens(const struct whole *x, uint32_t at, uint32_t most, uint32_t *found)
{
	const struct tok_vocab *v = x->v;
	const uint8_t *p = x->p + at;
	const struct tok_node *node = &v->node[1 + p[0]]; /* the root has a child for every byte */
	uint32_t n = 1;

	found[0] = node->token;
	for (uint32_t i = 1; i < most; i++) {
		if (!tok_has_child(node, p[i]))
			break;
		node = &v->node[tok_child(node, p[i])];
		found[n] = node->token;
		n += node->token != TOK_NO_TOKEN;
	}
	return n;
}

/* Does a token stand next to the one before it, which ends at `at`? */
static inline bool
stands(const struct whole *x, uint32_t at, uint32_t token)
{
	const struct tok_byte_runs *runs = &x->v->byte_runs;
	const uint32_t before = x->token[x->n_tokens - 1];
	const uint8_t *p = x->p + at;

	if (p[-1] == p[0] && runs->from[p[0]] != TOK_BYTE_RUN_NONE) {
		const uint32_t len = x->v->len[token], n = x->v->len[before] + len;
		const uint8_t *first = p + len - n;

		if (memcmp(first, first + 1, n - 1) == 0) /* a run */
			return runs->last[runs->from[p[0]] + n] == len;
	}
	return tok_bpe_stands(x->cache, x->v, before, token);
}

/* The longest of n tokens that stands at `at` and ends at a position that is not dead, or
 * TOK_NO_TOKEN. */
static inline uint32_t
take_longest(const struct whole *x, uint32_t at, const uint32_t *found, uint32_t n)
{
	while (n-- > 0) {
		const uint32_t token = found[n];

		if (!x->dead[at + x->v->len[token]] && (x->n_tokens == 0 || stands(x, at, token)))
			return token;
	}
	return TOK_NO_TOKEN;
}

uint32_t *
tok_bpe_whole(
	struct tok_cache *c, const struct tok_vocab *v, const uint8_t *p, uint32_t n, uint32_t *ids)
{
	uint32_t found[TOK_MAX_TOKEN_BYTES + 1], at = 0, most = n, backs = n / 32 + 8;
	struct whole x;

	x.cache = c;
	x.v = v;
	x.p = p;
	x.n_tokens = 0;
	memset(x.dead, 0, n + 1); /* the other fields are large and need no zeroing */
	while (at < n) {
		const uint32_t token =
			take_longest(&x, at, found, find_tokens(&x, at, most, found));

		if (token != TOK_NO_TOKEN) {
			x.token[x.n_tokens++] = token;
			at += v->len[token];
			most = n - at;
		} else if (x.n_tokens == 0 || backs-- == 0) {
			return NULL; /* at the first token: tables that contradict each other */
		} else {	     /* go back to the previous token: a shorter one is tried */
			x.dead[at] = true;
			at -= v->len[x.token[--x.n_tokens]];
			most = v->len[x.token[x.n_tokens]] - 1u;
		}
	}
	for (uint32_t i = 0; i < x.n_tokens; i++)
		ids[i] = v->ext[x.token[i]];
	return ids + x.n_tokens;
}
