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
#include "cache.h"

/* pos[] is tried for release each time it has grown by this much. */
#define RELEASE_EVERY 256

/* Units of a token of a family, or 0. */
static inline uint32_t
units_of(const struct tok_repeat *f, uint32_t token)
{
	if (token == f->unit)
		return 1;
	return token - f->low < f->high - f->low ? f->power[token - f->low] : 0;
}

/* Two tokens of a family, all of whose merges are below `limit`: would they be joined? */
static inline bool
repeats_join(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit, bool *both)
{
	for (uint32_t i = 0; i < v->n_repeats; i++) {
		const uint32_t l = units_of(&v->repeat[i], left);
		const uint32_t r = units_of(&v->repeat[i], right);

		if (l == 0 || r == 0 || limit < v->repeat[i].high)
			continue;
		*both = true;
		return !(v->repeat_runs[i].stands[l] >> r & 1);
	}
	return false;
}

bool
tok_bpe_pair_stands(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit)
{
	/* Undo the merges of both tokens, latest first. At each point the two tokens next to the
	 * border are what stood there when all merges before `limit` had been applied: if they
	 * themselves merge earlier than that, BPE would have joined them. */
	for (;;) {
		bool both = false;

		if (tok_pair(v, left, right) < limit ||
			(v->n_repeats > 0 && repeats_join(v, left, right, limit, &both)))
			return false;
		if (both)
			return true;
		if (left > right) {
			/* left came later. A merge of equal rank across the border lies to the
			 * right of it and would have come after it. */
			if (left < TOK_BYTES)
				return true;
			limit = left;
			left = v->split[left].right;
		} else {
			/* right came later, or both have the same rank and left was first. A
			 * merge of equal rank across the border would have come before it. */
			if (right < TOK_BYTES)
				return true;
			limit = right + 1;
			right = v->split[right].left;
		}
	}
}

/* The same with all merges, from what the thread has learned where it has. */
static inline bool
pair_stands(struct tok_cache *c, const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	uint64_t key = (uint64_t)left << 21 | right, *slot;
	bool stands;

	if (c == NULL)
		return tok_bpe_pair_stands(v, left, right, TOK_NO_TOKEN);
	slot = tok_cache_pair(c, key);
	/* Key 0, the pair of two zero bytes, is what free slots hold: it is never learned. */
	if (*slot >> 1 == key && key != 0)
		return *slot & 1;
	stands = tok_bpe_pair_stands(v, left, right, TOK_NO_TOKEN);
	*slot = key << 1 | stands;
	return stands;
}

/* The automaton's next state. */
static inline uint32_t
next_node(const struct tok_vocab *v, uint32_t at, uint8_t byte)
{
	/* Every byte is a token, so the root has all children and this ends. */
	for (;;) {
		const struct tok_node *node = &v->node[at];

		if (node->child[byte >> 6] >> (byte & 63) & 1)
			return tok_child(node, byte);
		at = node->fail;
	}
}

void
tok_bpe_open(struct tok_stream *s)
{
	s->whole_low = 0;
	s->whole_high = s->vocab->n_whole;
	s->node = 0;
	s->base = TOK_NO_TOKEN;
	s->n_pos = 0;
}

/* First of whole[low .. high), which all have the byte at `depth` if any, where that is >= byte. */
static uint32_t
first_whole(const struct tok_vocab *v, uint32_t low, uint32_t high, uint32_t depth, uint32_t byte)
{
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct tok_span *span = &v->span[v->whole[middle]];

		if (span->len <= depth || v->bytes[span->off + depth] < byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The n bytes at p come behind the open pretoken: which tokens can it still be as a whole? */
static void
follow_whole(struct tok_stream *s, const uint8_t *p, size_t n)
{
	const struct tok_vocab *v = s->vocab;

	/* While there are some, all of the pretoken is in pos[]: n_pos is its length. */
	for (size_t k = 0; k < n && s->whole_low < s->whole_high; k++) {
		uint32_t depth = s->n_pos + (uint32_t)k, low = s->whole_low;

		s->whole_low = first_whole(v, low, s->whole_high, depth, p[k]);
		s->whole_high = first_whole(v, low, s->whole_high, depth, p[k] + 1u);
	}
}

/* Id of the open pretoken as a whole, where no merge would make it, or TOK_NO_TOKEN. */
static uint32_t
whole_id(const struct tok_stream *s)
{
	const struct tok_vocab *v = s->vocab;

	/* The shortest comes first. */
	if (s->whole_low == s->whole_high || v->span[v->whole[s->whole_low]].len != s->n_pos)
		return TOK_NO_TOKEN;
	return v->whole[s->whole_low];
}

bool
tok_bpe_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	const struct tok_vocab *v = s->vocab;
	const struct tok_node *node;
	uint32_t at, state = s->node;

	if (s->whole_low < s->whole_high)
		follow_whole(s, p, n);
	for (size_t k = 0; k < n; k++) {
		uint32_t i = s->n_pos;

		if (i == TOK_CARRY_MAX) {
			s->node = state;
			return false;
		}
		state = next_node(v, state, p[k]);
		node = &v->node[state];
		/* From the longest token that ends here to the shortest; the one that stands next
		 * to the encoding before it is last(i + 1), and there is exactly one. */
		for (at = node->token != TOK_NO_TOKEN ? state : node->dict;;
			at = v->node[at].dict) {
			uint32_t len = v->node[at].depth, token = v->node[at].token, before;

			if (len > i + 1)
				continue; /* begins in what was already given out */
			before = len == i + 1 ? s->base : s->pos[i - len];
			if (before == TOK_NO_TOKEN || pair_stands(s->cache, v, before, token)) {
				s->pos[i] = token;
				break;
			}
		}
		s->n_pos = i + 1;
		if (s->n_pos % RELEASE_EVERY == 0) {
			s->node = state;
			*ids = tok_bpe_release(s, *ids);
		}
	}
	s->node = state;
	return true;
}

/* Write the tokens of the encoding that ends after byte `end - 1` of pos[]. */
static uint32_t *
give_out(const struct tok_stream *s, uint32_t end, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t n = 0, at;

	for (at = end; at > 0; at -= v->len[s->pos[at - 1]])
		n++;
	for (at = end, ids += n; at > 0; at -= v->len[s->pos[at - 1]])
		*--ids = v->ext[s->pos[at - 1]];
	return ids + n;
}

/*
 * Can a token that goes on from `node` stand next to `left`? Children of consecutive nodes are
 * consecutive: the tokens below a node are looked at level by level, the short ones first.
 */
static bool
some_token_stands(const struct tok_vocab *v, uint32_t left, uint32_t node)
{
	uint32_t from = node, to = node + 1;

	while (from < to) {
		uint32_t last = to - 1;

		to = v->node[last].first + tok_children(&v->node[last]);
		from = v->node[from].first;
		for (uint32_t at = from; at < to; at++) {
			uint32_t token = v->node[at].token;

			if (token != TOK_NO_TOKEN &&
				tok_bpe_pair_stands(v, left, token, TOK_NO_TOKEN))
				return true;
		}
	}
	return false;
}

/* The same, from what the thread has learned where it has. */
static bool
may_grow(struct tok_cache *c, const struct tok_vocab *v, uint32_t left, uint32_t node)
{
	uint64_t key = (uint64_t)left << 32 | node, *slot;
	bool grows;

	if (!v->node[node].extends)
		return false;
	if (left == TOK_NO_TOKEN)
		return true; /* the pretoken begins with it */
	if (c == NULL)
		return some_token_stands(v, left, node);
	slot = tok_cache_growth(c, key);
	if (*slot >> 1 == key) /* never 0: the root is not asked for */
		return *slot & 1;
	grows = some_token_stands(v, left, node);
	*slot = key << 1 | grows;
	return grows;
}

uint32_t *
tok_bpe_release(struct tok_stream *s, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t meet = s->n_pos, at;

	if (s->whole_low < s->whole_high)
		return ids;
	/* Meet of the end and of every position from which a token may still be growing. */
	for (at = s->node; at != 0 && meet > 0; at = v->node[at].fail) {
		uint32_t from;

		if (v->node[at].depth > s->n_pos)
			continue; /* begins in what was already given out: impossible, see above */
		from = s->n_pos - v->node[at].depth;
		if (!may_grow(s->cache, v, from == 0 ? s->base : s->pos[from - 1], at))
			continue;
		while (meet != from) {
			uint32_t *later = meet > from ? &meet : &from;

			*later -= v->len[s->pos[*later - 1]];
		}
	}
	if (meet == 0)
		return ids;
	ids = give_out(s, meet, ids);
	s->base = s->pos[meet - 1];
	s->n_pos -= meet;
	memmove(s->pos, s->pos + meet, s->n_pos * sizeof(s->pos[0]));
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
