/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact incremental byte pair encoding. doc/internals/streaming.md has the definitions and proofs;
 * in short:
 *
 * For each position p of the open pretoken, let last(p) be the last token of the encoding of
 * the bytes before p. The encoding of those bytes is last(p) preceded by the encoding of the bytes
 * before p - |last(p)|, so the positions form a tree, and last(p) is the one token t that is a
 * suffix of the bytes before p and stands next to last(p - |t|).
 *
 * A later byte can only bring a token that begins at the end itself, or at a position p from which
 * the bytes up to the end spell a proper prefix of some token that stands next to last(p). The
 * automaton's state and its failure links enumerate those positions. Every encoding of every
 * continuation passes through one of them, hence through their lowest common ancestor in the tree:
 * what lies before it is certain, and nothing else is.
 */
#include "bpe.h"

void
tok_bpe_open(struct tok_stream *s)
{
	s->unmerged_low = 0;
	s->unmerged_high = s->vocab->n_unmerged;
	s->node = 0;
	s->base = TOK_NO_TOKEN;
	s->n_pos = 0;
	s->n_run = 0;
	s->run_byte = 0;
}

/* First entry of unmerged[low .. high) whose byte at `depth` is >= byte. All share the bytes
 * before.
 */
static uint32_t
first_whole(const struct tok_vocab *v, uint32_t low, uint32_t high, uint32_t depth, uint32_t byte)
{
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct tok_span *span = &v->span[v->unmerged[middle]];

		if (span->len <= depth || v->bytes[span->off + depth] < byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Append n bytes at p: narrow down the tokens that the open pretoken can be as a whole. */
static void
follow_whole(struct tok_stream *s, const uint8_t *p, size_t n)
{
	const struct tok_vocab *v = s->vocab;

	/* While any are left, the whole pretoken is in pos[], and n_pos is its length. */
	for (size_t k = 0; k < n && s->unmerged_low < s->unmerged_high; k++) {
		uint32_t depth = s->n_pos + (uint32_t)k, low = s->unmerged_low;

		s->unmerged_low = first_whole(v, low, s->unmerged_high, depth, p[k]);
		s->unmerged_high = first_whole(v, low, s->unmerged_high, depth, p[k] + 1u);
	}
}

/* Id of the token that is the whole open pretoken but is made by no merge, or TOK_NO_TOKEN. */
static uint32_t
whole_id(const struct tok_stream *s)
{
	const struct tok_vocab *v = s->vocab;

	/* The shortest comes first. */
	if (s->unmerged_low == s->unmerged_high ||
		v->span[v->unmerged[s->unmerged_low]].len != s->n_pos)
		return TOK_NO_TOKEN;
	return v->unmerged[s->unmerged_low];
}

/* Count the equal bytes at the end. */
static inline void
follow_run(struct tok_stream *s, uint8_t byte)
{
	s->n_run = byte == s->run_byte && s->n_run < UINT16_MAX ? s->n_run + 1u : 1;
	s->run_byte = byte;
}

/* The table of runs of the last byte, if all of the last n bytes are equal; else NULL. */
static inline const uint8_t *
run_table(const struct tok_stream *s, uint32_t n)
{
	const struct tok_byte_runs *runs = &s->vocab->byte_runs;

	/* Only in tables that contradict each other a token is longer. */
	if (s->n_run < n || n > 2 * TOK_BYTE_RUN_MAX ||
		runs->from[s->run_byte] == TOK_BYTE_RUN_NONE)
		return NULL;
	return runs->last + runs->from[s->run_byte];
}

/* Is the token that ends with byte i of pos[], the last one so far, the last one of the encoding
 * up to there? */
static inline bool
is_last(const struct tok_stream *s, uint32_t token, uint32_t i)
{
	const uint32_t len = s->vocab->len[token];
	uint32_t before;

	if (len > i + 1)
		return false; /* begins before pos[0]: already released */
	before = len == i + 1 ? s->base : s->pos[i - len];
	if (before == TOK_NO_TOKEN)
		return true;
	if (s->n_run > len) {
		const uint32_t n = len + s->vocab->len[before];
		const uint8_t *last = run_table(s, n);

		if (last != NULL)
			return last[n] == len;
	}
	return tok_bpe_stands(s->cache, s->vocab, before, token);
}

#define FIRST_TRIES 2u

/*
 * Compute last(i + 1), given the automaton's state after byte i. Exactly one of the tokens that end
 * there stands next to the encoding before it, so any order of tests is correct. The order is: the
 * longest tokens; the cached guess; the token that begins where the last token one byte earlier
 * began; then the others. In runs, one of the two in the middle is usually right.
 */
static inline uint32_t
last_token(const struct tok_stream *s, uint32_t state, uint32_t i)
{
	const struct tok_vocab *v = s->vocab;
	const uint32_t before = i > 0 ? s->pos[i - 1] : s->base;
	uint32_t at = v->node[state].token != TOK_NO_TOKEN ? state : v->node[state].dict, same;
	const bool guesses = s->cache != NULL && before != TOK_NO_TOKEN;
	struct tok_cache_guess *guess;

	for (uint32_t tries = 0; tries < FIRST_TRIES || !guesses; tries++) {
		/* The shortest is a single byte. If no other is the last token, it is. */
		if (v->node[at].dict == 0 || is_last(s, v->node[at].token, i))
			return v->node[at].token;
		at = v->node[at].dict;
	}
	guess = tok_cache_guess(s->cache, before, state);
	if (guess->node == state && guess->before == before && is_last(s, guess->token, i))
		return guess->token;
	same = at;
	while (v->node[same].depth > v->len[before] + 1u)
		same = v->node[same].dict;
	if (v->node[same].depth == v->len[before] + 1u && is_last(s, v->node[same].token, i)) {
		at = same;
	} else {
		while (v->node[at].dict != 0 && !is_last(s, v->node[at].token, i))
			at = v->node[at].dict;
	}
	*guess = (struct tok_cache_guess){before, state, v->node[at].token};
	return v->node[at].token;
}

bool
tok_bpe_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t state = s->node;

	if (s->unmerged_low < s->unmerged_high)
		follow_whole(s, p, n);
	for (size_t k = 0; k < n; k++) {
		if (s->n_pos == TOK_CARRY_MAX) { /* nobody sees ids before the end of the piece */
			s->node = state;
			*ids = tok_bpe_release(s, *ids);
			if (s->n_pos == TOK_CARRY_MAX)
				return false;
		}
		state = tok_next_node(v, state, p[k], true);
		follow_run(s, p[k]);
		s->pos[s->n_pos] = last_token(s, state, s->n_pos);
		s->n_pos++;
	}
	s->node = state;
	return true;
}

/*
 * The position where the last token of the encoding up to `at` begins. A path of tables that
 * contradict each other (compiled/check_bpe.c) may leave pos[].
 */
static inline uint32_t
begin_of_last(const struct tok_stream *s, uint32_t at)
{
	const uint32_t len = s->vocab->len[s->pos[at - 1]];

	return at > len ? at - len : 0;
}

/* Write the tokens of the encoding that ends after byte `end - 1` of pos[]. */
static uint32_t *
give_out(const struct tok_stream *s, uint32_t end, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t n = 0, at;

	for (at = end; at > 0; at = begin_of_last(s, at))
		n++;
	for (at = end, ids += n; at > 0; at = begin_of_last(s, at))
		*--ids = v->ext[s->pos[at - 1]];
	return ids + n;
}

/* ---- which positions are live ---- */

/*
 * RELEASE_PAIRS: the most pairs of tokens that one release tests. After that, every position from
 * which a longer token exists is treated as live. RELEASE_ANYWAY: from this many waiting bytes on,
 * there is no such limit, because pos[] may become full.
 */
#define RELEASE_PAIRS 512
#define RELEASE_ANYWAY (TOK_CARRY_MAX * 3 / 4)

/* The stack of a depth-first search: ranges of sibling nodes, which are consecutive. */
#define SEARCH_DEPTH 256
struct search {
	uint32_t at[SEARCH_DEPTH], end[SEARCH_DEPTH];
};

/* Test one pair. *n_pairs: tests left; if 0, the pair is assumed to stand. */
static inline bool
look(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit, uint32_t *n_pairs)
{
	if (*n_pairs == 0)
		return true;
	--*n_pairs;
	return tok_bpe_pair_stands(v, left, right, limit);
}

/*
 * Can any token below `node` stand next to `left`? No, if a merge joins their common stem with
 * `left`, and this merge comes no later than the first merge that extends the stem.
 */
static bool
stem_stands(const struct tok_vocab *v, uint32_t left, uint32_t node, uint32_t *n_pairs)
{
	const uint32_t limit = v->node[node].limit;

	/* The merges of a family are applied together, so no limit can lie between them. */
	for (uint32_t i = 0; i < v->n_repeats; i++) {
		if (limit - v->repeat[i].low < v->repeat[i].high - v->repeat[i].low)
			return true;
	}
	return look(
		v, left, v->node[node].stem, limit == TOK_NO_TOKEN ? limit : limit + 1, n_pairs);
}

/*
 * Does any token below `node` stand next to `left`? Tokens that continue with byte `but` are left
 * out. If there are too many to test: true. Tokens one byte longer are tested first, then the nodes
 * below, except where stem_stands() excludes all tokens.
 */
#define NO_BYTE UINT32_MAX

static bool
some_token_stands(
	const struct tok_vocab *v, uint32_t left, uint32_t node, uint32_t but, uint32_t *n_pairs)
{
	const uint32_t skip = but != NO_BYTE ? tok_child(&v->node[node], (uint8_t)but) : 0;
	struct search x;
	uint32_t depth = 0;

	if (!stem_stands(v, left, node, n_pairs))
		return false;
	for (;;) {
		const uint32_t from = v->node[node].first;
		const uint32_t to = from + tok_children(&v->node[node]);

		for (uint32_t at = from; at < to; at++) {
			const uint32_t token = v->node[at].token;

			if (token != TOK_NO_TOKEN && at != skip &&
				look(v, left, token, TOK_NO_TOKEN, n_pairs))
				return true;
		}
		if (to == from + 1 && from != skip && v->node[from].token == TOK_NO_TOKEN) {
			node = from; /* it has the same tokens and the same stem */
			continue;
		}
		if (depth == SEARCH_DEPTH)
			return true;
		x.at[depth] = from;
		x.end[depth++] = to;
		/* The next node that may have such a token below it. */
		for (;;) {
			while (depth > 0 && x.at[depth - 1] == x.end[depth - 1])
				depth--;
			if (depth == 0)
				return false;
			node = x.at[depth - 1]++;
			if (v->node[node].extends && node != skip &&
				stem_stands(v, left, node, n_pairs))
				break;
		}
	}
}

/*
 * The same for a node that spells a run of `byte`, and for all longer runs: find the longest run
 * from which a token may grow. Lengths that the cache already excludes are not tested again.
 * last: the table of runs of this byte, if the token on the left is such a run too; else NULL.
 */
static void
look_along_run(const struct tok_vocab *v, uint32_t at, uint8_t byte, const uint8_t *last,
	struct tok_cache_growth *known, uint32_t *n_pairs)
{
	uint32_t run[TOK_MAX_TOKEN_BYTES + 1], n = 0, next = at;

	for (;;) {
		const struct tok_node *node = &v->node[run[n++] = next];

		if (!tok_has_child(node, byte))
			break;
		next = tok_child(node, byte);
		if (v->node[next].depth >= known->dead)
			break;
	}
	while (n-- > 0) {
		const struct tok_node *node = &v->node[run[n]];
		const bool longer = tok_has_child(node, byte);
		const uint32_t token = longer ? v->node[tok_child(node, byte)].token : TOK_NO_TOKEN;
		bool stands;

		if (!node->extends)
			continue;
		if (token == TOK_NO_TOKEN)
			stands = false;
		else if (last != NULL &&
			 v->len[known->left] + v->len[token] <= 2 * TOK_BYTE_RUN_MAX)
			stands = last[v->len[known->left] + v->len[token]] == v->len[token];
		else
			stands = look(v, known->left, token, TOK_NO_TOKEN, n_pairs);
		stands = stands ||
			 (tok_children(node) > longer && some_token_stands(v, known->left, run[n],
								 longer ? byte : NO_BYTE, n_pairs));
		if (*n_pairs == 0)
			return;
		if (stands) {
			known->alive = node->depth;
			return;
		}
		known->dead = node->depth;
	}
}

/* The same, using the cache. */
static bool
may_grow(const struct tok_stream *s, uint32_t left, uint32_t at, uint32_t *n_pairs)
{
	const struct tok_vocab *v = s->vocab;
	const struct tok_node *node = &v->node[at];
	const bool run = node->extends & TOK_EXTENDS_RUN;
	const uint8_t byte = (uint8_t)(node->extends >> TOK_EXTENDS_RUN_SHIFT);
	const uint32_t key = run ? 1u + byte : at; /* the root has all bytes */
	struct tok_cache_growth *known, none = {left, key, 0, UINT16_MAX};

	if (left == TOK_NO_TOKEN)
		return true; /* the pretoken begins with it */
	known = s->cache != NULL ? tok_cache_growth(s->cache, left, key) : &none;
	if (known->left != left || known->node != key)
		*known = none;
	/* A token that grows from more bytes also grows from fewer. */
	if (node->depth <= known->alive)
		return true;
	if (node->depth >= known->dead)
		return false;
	if (run)
		look_along_run(
			v, at, byte, run_table(s, v->len[left] + node->depth), known, n_pairs);
	else if (some_token_stands(v, left, at, NO_BYTE, n_pairs))
		known->alive = *n_pairs > 0 ? node->depth : 0;
	else
		known->dead = node->depth;
	return node->depth < known->dead;
}

/*
 * The position where the path from `from` meets the path from `meet`. Returns `meet` if the path
 * passes there, and also if it leaves pos[]: then `from` is not live, because the path of every
 * live position passes the end of what was released.
 */
static uint32_t
meet_path(const struct tok_stream *s, uint32_t from, uint32_t meet)
{
	const uint16_t *len = s->vocab->len;
	uint32_t at = meet;

	while (at != from) {
		if (at > from) {
			at = begin_of_last(s, at);
			continue;
		}
		if (len[s->pos[from - 1]] > from)
			return meet;
		from -= len[s->pos[from - 1]];
	}
	return at;
}

void
tok_bpe_drop(struct tok_stream *s, uint32_t n)
{
	if (n == 0)
		return;
	s->base = s->pos[n - 1];
	s->n_pos -= n;
	memmove(s->pos, s->pos + n, s->n_pos * sizeof(s->pos[0]));
}

uint32_t *
tok_bpe_release(struct tok_stream *s, uint32_t *ids)
{
	return tok_bpe_release_within(
		s, s->n_pos < RELEASE_ANYWAY ? RELEASE_PAIRS : UINT32_MAX, ids);
}

uint32_t *
tok_bpe_release_within(struct tok_stream *s, uint32_t n_pairs, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t meet = s->n_pos, at;

	if (s->unmerged_low < s->unmerged_high)
		return ids;
	/* Meet of the end and of every position from which a token may still be growing. */
	for (at = s->node; at != 0 && meet > 0; at = v->node[at].fail) {
		const struct tok_node *node = &v->node[at];
		uint32_t from, lower;

		if (!node->extends || node->depth > s->n_pos)
			continue; /* begins in what was already released: impossible, see above */
		from = s->n_pos - node->depth;
		lower = meet_path(s, from, meet);
		if (lower != meet &&
			may_grow(s, from == 0 ? s->base : s->pos[from - 1], at, &n_pairs))
			meet = lower;
	}
	ids = give_out(s, meet, ids);
	tok_bpe_drop(s, meet);
	return ids;
}

uint32_t *
tok_bpe_close(struct tok_stream *s, uint32_t *ids)
{
	uint32_t id = whole_id(s);

	if (id != TOK_NO_TOKEN)
		*ids++ = id;
	else
		ids = give_out(s, s->n_pos, ids);
	tok_bpe_open(s);
	return ids;
}
