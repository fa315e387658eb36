/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encode whole pretokens, a block at a time. Each is tried in this order: the thread's cache, which
 * begins with the short words that are one token; the tables of words that no merge makes, and
 * of WordPiece's and Unigram's; merging, or WordPiece's longest match; and one by one if it is
 * long. A short word that comes again in a block is mostly encoded once.
 *
 * The cache is larger than the CPU's caches, and misses one after the other would take most of the
 * time. So each table is prefetched for all pretokens of a block before the first entry is read.
 * Hot path.
 */
#include "block.h"
#include "greedy.h"
#include "isa/kernels.h"
#include "unicode/utf8.h"
#include "unigram.h"
#include "wordpiece.h"

static inline size_t
length_of(const struct tok_block *b, uint32_t k)
{
	return b->end[k] - b->start[k];
}

/* ---- 1. the cache ---- */

static inline bool
is_longer(size_t len)
{
	return len > TOK_CACHE_SHORT && len <= TOK_CACHE_LONG;
}

/* Look up the pretokens at[0 .. n) in the second way of their sets. Returns how many are there:
 * second[]. */
static uint32_t
find_second(struct tok_block *b, const uint16_t *at, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = at[i];
		const struct tok_cache_entry *e = &b->set[k][1];
		const uint32_t differs = tok_cache_differs(e, b->key[k]);

		b->ids[k] = differs ? NULL : e->id;
		b->second[found] = (uint16_t)k;
		found += 1 - differs;
	}
	return found;
}

/* Look up the longer pretokens at[0 .. n). */
static void
find_longer(const struct tok_cache *c, struct tok_block *b, const uint16_t *at, uint32_t n,
	const uint8_t *p)
{
	struct tok_cache_long_set set[TOK_BLOCK];
	const struct tok_cache_record *record[TOK_BLOCK];

	for (uint32_t i = 0; i < n; i++) {
		set[i] = tok_cache_long_set(c, p + b->start[at[i]], (uint32_t)length_of(b, at[i]));
		__builtin_prefetch(set[i].way);
	}
	for (uint32_t i = 0; i < n; i++) {
		record[i] = tok_cache_candidate(c, set[i]);
		__builtin_prefetch(record[i]);
		__builtin_prefetch((const void *)((uintptr_t)record[i] + 64)); /* may be NULL */
	}
	for (uint32_t i = 0; i < n; i++)
		b->ids[at[i]] = tok_cache_long_find(
			record[i], p + b->start[at[i]], (uint32_t)length_of(b, at[i]));
}

/* Look up the n that are not in the first way of a set. Returns find_second()'s number. */
static uint32_t
find_missed(const struct tok_cache *c, struct tok_block *b, uint32_t n, const uint8_t *p)
{
	uint16_t brief[TOK_BLOCK], longer[TOK_BLOCK];
	uint32_t n_brief = 0, n_longer = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint16_t k = b->missed[i];

		b->ids[k] = NULL;
		brief[n_brief] = longer[n_longer] = k;
		n_brief += length_of(b, k) <= TOK_CACHE_SHORT;
		n_longer += is_longer(length_of(b, k));
	}
	find_longer(c, b, longer, n_longer, p);
	return find_second(b, brief, n_brief);
}

/* ---- 2. words that are one token, other than BPE's, and those which no merge makes ---- */

static inline uint64_t
short_key(const uint8_t *p, size_t len, const uint8_t *end)
{
	uint64_t key = 0;

	if (end - p >= TOK_KEY_BYTES)
		return tok_load8(p) & ~0ull >> (64 - 8 * len);
	memcpy(&key, p, len);
	return key;
}

static inline void
set_one(struct tok_block *b, uint32_t k, uint32_t id)
{
	b->one[k] = (struct tok_block_one){TOK_CACHE_HEAD(1u), id};
	b->ids[k] = id == TOK_NO_TOKEN ? NULL : &b->one[k].id;
}

/* Look up those of the n remaining pretokens that have up to 8 bytes. */
static inline void
find_words(const struct tok_vocab *v, struct tok_block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end)
{
	uint32_t k;
	uint64_t key;

	for (uint32_t i = 0; i < n; i++) {
		k = b->left[i];
		if (length_of(b, k) > TOK_KEY_BYTES)
			continue;
		key = short_key(p + b->start[k], length_of(b, k), end);
		b->slot[k] = tok_word_slot(v, key, (uint32_t)length_of(b, k));
		__builtin_prefetch(&v->word[b->slot[k]]);
	}
	for (uint32_t i = 0; i < n; i++) {
		k = b->left[i];
		if (length_of(b, k) > TOK_KEY_BYTES)
			continue;
		key = short_key(p + b->start[k], length_of(b, k), end);
		set_one(b, k, tok_word_find(v, b->slot[k], key, (uint32_t)length_of(b, k)));
	}
}

static inline bool
may_be_long_word(const struct tok_vocab *v, size_t len)
{
	return len > TOK_KEY_BYTES && len <= v->info.max_token_bytes;
}

/* The same for those of more than 8 bytes. */
static inline void
find_long_words(const struct tok_vocab *v, struct tok_block *b, uint32_t n, const uint8_t *p)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = b->left[i];

		if (!may_be_long_word(v, length_of(b, k)))
			continue;
		b->slot[k] = tok_long_slot(v, p + b->start[k], (uint32_t)length_of(b, k));
		__builtin_prefetch(&v->long_word[b->slot[k]]);
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = b->left[i];

		if (may_be_long_word(v, length_of(b, k)))
			set_one(b, k,
				tok_long_find(
					v, b->slot[k], p + b->start[k], (uint32_t)length_of(b, k)));
	}
}

/* Copy those of from[0 .. n) that have no ids yet to a list, which may be the same. Returns their
 * number. */
static inline uint32_t
list_left(const struct tok_block *b, const uint16_t *from, uint32_t n, uint16_t *to)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint16_t k = from[i];

		to[left] = k;
		left += b->ids[k] == NULL;
	}
	return left;
}

/* ---- 3. what the block has twice ---- */

#define TWINS 64u /* sets whose last pretoken is remembered */

/* A new name is often there several times. Move those of the n remaining short pretokens that are
 * equal to one before them, slot[], to another list. Returns the number of the others. */
static uint32_t
set_twins_apart(struct tok_block *b, uint32_t n, uint16_t *twin, uint32_t *n_twins)
{
	uint16_t last[TWINS] = {0};
	uint32_t others = 0, twins = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint16_t k = b->left[i];
		uint16_t *at =
			&last[(uintptr_t)b->set[k] / (TOK_CACHE_WAYS * sizeof(*b->set[k])) % TWINS];
		const uint64_t *key = b->key[k], *before = b->key[*at];
		const bool equal = ((key[0] ^ before[0]) | (key[1] ^ before[1])) == 0;
		const bool is = (*at < k) & equal & (length_of(b, k) <= TOK_CACHE_SHORT);

		/* Without a branch: the processor could not predict it. */
		b->slot[k] = *at;
		*at = k;
		b->left[others] = twin[twins] = k;
		others += !is;
		twins += is;
	}
	*n_twins = twins;
	return others;
}

/* ---- 4. merges ---- */

/* Is the pretoken a character that is no token? */
static inline bool
is_unknown(const struct tok_vocab *v, const uint8_t *p, size_t len)
{
	const struct tok_node *node = &v->node[1 + p[0]]; /* the root has a child for every byte */

	if (v->pretok != TOK_PRETOK_SENTENCEPIECE || len != tok_utf8_length(*p))
		return false;
	for (size_t i = 1; i < len; i++) {
		if (!tok_has_child(node, p[i]))
			return true;
		node = &v->node[tok_child(node, p[i])];
	}
	return node->token == TOK_NO_TOKEN;
}

/* Move the ids of left[0 .. n) together, as far as they have any. Returns the end. */
static uint32_t *
close_up(struct tok_block *b, uint32_t n)
{
	uint32_t *to = b->merged;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *from = b->ids[b->left[i]];
		uint32_t all;

		if (from == NULL)
			continue;
		all = TOK_BPE_WORD_HEAD + tok_cache_count(from);
		memmove(to, from - TOK_BPE_WORD_HEAD, all * sizeof(*to));
		b->ids[b->left[i]] = to + TOK_BPE_WORD_HEAD;
		to += all;
	}
	return to;
}

/* Merge those of the n remaining pretokens that have at most TOK_MERGE_MAX bytes, while there is
 * room for their ids. */
static void
merge_left(const struct tok_vocab *v, struct tok_block *b, uint32_t n, const uint8_t *p)
{
	uint32_t words = 0, *out = b->merged;
	const uint32_t *end = out + TOK_BLOCK_MERGED;

	if (v->kind != TOK_KIND_BPE || v->longest.node != NULL)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = b->left[i], len = (uint32_t)length_of(b, k);
		const uint8_t *at = p + b->start[k];

		if (length_of(b, k) > TOK_MERGE_MAX || is_unknown(v, at, len))
			continue;
		if (words == TOK_BLOCK_WORDS || out + TOK_BPE_WORD_HEAD + len > end) {
			tok_bpe_merge(v, b->word, words);
			words = 0;
			out = close_up(b, i);
			if (end - out < TOK_BLOCK_MERGED / 8)
				break; /* the others would take this step too often */
		}
		out += TOK_BPE_WORD_HEAD;
		b->word[words++] = (struct tok_bpe_word){at, len, out};
		b->ids[k] = out;
		out += len;
	}
	if (words > 0)
		tok_bpe_merge(v, b->word, words);
}

/* ---- WordPiece ---- */

#define WALKS 32u
#define WALK_MAX 62u /* bytes */

/* A word on its way down the trie. */
struct walk {
	const uint8_t *p, *end; /* what is left of it */
	uint32_t *ids, *to;
	uint32_t node, k;
};

static inline bool
end_walk(struct tok_block *b, const struct walk *x, uint32_t n)
{
	x->ids[-1] = TOK_CACHE_HEAD(n);
	x->ids[-TOK_BPE_WORD_HEAD] = n;
	b->ids[x->k] = x->ids;
	return false;
}

/* Take a byte, or the tokens before it. False: the word has ended, or has other characters. */
static inline bool
walk_on(const struct tok_vocab *v, struct tok_block *b, struct walk *x)
{
	const struct tok_longest *l = &v->longest;
	uint32_t child = TOK_NO_TOKEN;

	if (x->p < x->end) {
		const uint8_t byte = v->wordpiece.norm.plain[*x->p];

		if (byte == 0)
			return false;
		child = tok_longest_child(&l->node[x->node], byte);
	} else if (x->node == TOK_LONGEST_GO_ON) {
		return end_walk(b, x, (uint32_t)(x->to - x->ids));
	}
	if (child != TOK_NO_TOKEN) {
		x->node = child;
		x->p++;
	} else if (!tok_longest_fall_back(l, &x->node, &x->to)) {
		x->ids[0] = v->wordpiece.unk;
		return end_walk(b, x, 1);
	}
	__builtin_prefetch(&l->node[x->node]);
	return true;
}

/*
 * Longest match (wordpiece.c) of those of the n remaining pretokens that are ASCII, while there is
 * room. Several side by side: each byte's node comes from memory, and depends on the one before.
 */
static void
match_left(const struct tok_vocab *v, struct tok_block *b, uint32_t n, const uint8_t *p)
{
	uint32_t *out = b->merged, live = 0, i = 0;
	const uint32_t *end = out + TOK_BLOCK_MERGED;
	struct walk walk[WALKS];

	do {
		uint32_t on = 0;

		for (; i < n && live < WALKS; i++) {
			const uint32_t k = b->left[i];
			const size_t len = length_of(b, k);
			const uint8_t *at = p + b->start[k];

			if (v->wordpiece.norm.plain[*at] == 0 || len > WALK_MAX ||
				len > v->wordpiece.max_chars || out + TOK_BPE_WORD_HEAD + len > end)
				continue;
			out += TOK_BPE_WORD_HEAD;
			walk[live++] = (struct walk){at, at + len, out, out, TOK_LONGEST_BEGIN, k};
			out += len;
		}
		for (uint32_t w = 0; w < live; w++) {
			walk[on] = walk[w];
			on += walk_on(v, b, &walk[on]);
		}
		live = on;
	} while (live > 0 || i < n);
}

/* ---- the open pretoken ---- */

/*
 * tok_pretoken_release() follows the bytes of the pretoken after the block down the tree of tokens.
 * One miss after the other would take as long as a hundred look-ups here, so each stage fetches a
 * node.
 */
struct path {
	const uint8_t *p, *end;
	uint32_t node;
};

/* Of the pretoken that begins at `at`. Empty if no release follows it: it is too long, or the text
 * goes on with the next block. */
static inline struct path
open_path(const uint8_t *at, const uint8_t *end)
{
	return (struct path){at, end - at <= TOK_KEPT_MAX ? end : at, 0};
}

static inline void
fetch_next(struct path *x, const struct tok_vocab *v)
{
	if (x->p == x->end || !tok_has_child(&v->node[x->node], *x->p))
		return;
	x->node = tok_child(&v->node[x->node], *x->p++);
	__builtin_prefetch(&v->node[x->node]);
}

/* ---- 5. ids ---- */

/* Encode a pretoken that has no ids yet. NULL: more than TOK_CARRY_MAX bytes were uncertain. */
static uint32_t *
encode_alone(struct tok_stream *s, const uint8_t *p, size_t len, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;

	switch (v->kind) {
	case TOK_KIND_WORDPIECE:
		return tok_wordpiece_word(s, p, len, ids);
	case TOK_KIND_UNIGRAM:
		return tok_unigram_push(s, p, len, &ids) ? tok_unigram_close(s, ids) : NULL;
	case TOK_KIND_BPE:
		break;
	}
	if (is_unknown(v, p, len))
		return tok_bytes_ids(v, p, len, ids);
	if (v->longest.node == NULL && len <= TOK_WHOLE_MAX) {
		uint32_t *end = tok_bpe_whole(s->cache, v, p, (uint32_t)len, ids);

		if (end != NULL)
			return end;
	}
	if (v->longest.node != NULL)
		return tok_greedy_close(s, tok_greedy_push(s, p, len, ids));
	return tok_bpe_push(s, p, len, &ids) ? tok_bpe_close(s, ids) : NULL;
}

/*
 * Copy the ids of the pretokens first .. last - 1, all of which have ids. The copies may write more
 * than the ids: there is room for three ids per byte (tok_stream_bound), and each pretoken has at
 * least one byte. So there is room for six ids before the last pretoken, and for fifteen from a
 * pretoken of five ids on. (Bytes kept from the piece before count once; many others follow them.)
 * This does not hold where a normalizer sets the bound (`tight`).
 */
static inline uint32_t *
write_ids(const struct tok_vocab *v, const struct tok_block *b, uint32_t first, uint32_t last,
	uint32_t *ids)
{
	const uint32_t exact = v->tight || last == first ? first : last - 1;

	for (uint32_t k = first; k < exact; k++) {
		const uint32_t *from = b->ids[k];
		uint32_t n = from[-1] >> TOK_CACHE_IDS_SHIFT;

		memcpy(ids, from, TOK_CACHE_SOME * sizeof(*ids));
		if (__builtin_expect(n > TOK_CACHE_SOME, 0)) {
			n = tok_cache_count(from);
			for (uint32_t i = TOK_CACHE_SOME; i < n; i++)
				ids[i] = from[i];
		}
		ids += n;
	}
	for (uint32_t k = exact; k < last; k++) {
		memcpy(ids, b->ids[k], tok_cache_count(b->ids[k]) * sizeof(*ids));
		ids += tok_cache_count(b->ids[k]);
	}
	return ids;
}

/* Insert a pretoken into the cache if it is not there: a block may have it twice. */
static void
learn(struct tok_cache *c, struct tok_block *b, uint32_t k, const uint8_t *p, uint32_t n_ids)
{
	const uint32_t len = (uint32_t)length_of(b, k), *ids = b->ids[k];

	p += b->start[k];
	if (len <= TOK_CACHE_SHORT) {
		if (tok_cache_find(b->set[k], b->key[k]) == NULL)
			tok_cache_learn(b->set[k], b->key[k], ids, n_ids);
	} else if (is_longer(length_of(b, k))) {
		const struct tok_cache_long_set set = tok_cache_long_set(c, p, len);

		if (tok_cache_long_find(tok_cache_candidate(c, set), p, len) == NULL)
			tok_cache_long_learn(c, set, p, len, ids, n_ids);
	}
}

/* Insert the n_missed pretokens into the cache, of which n_left were encoded alone. */
static void
learn_missed(struct tok_cache *c, struct tok_block *b, uint32_t n_missed, uint32_t n_left,
	const uint8_t *p)
{
	for (uint32_t i = 0, l = 0; i < n_missed; i++) {
		const uint32_t k = b->missed[i];
		const bool alone = l < n_left && b->left[l] == k;

		learn(c, b, k, p, alone ? b->slot[k] : tok_cache_count(b->ids[k]));
		l += alone;
	}
}

uint32_t *
tok_block_encode(struct tok_stream *s, struct tok_block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end, uint32_t *ids)
{
	const bool releases = s->vocab->kind == TOK_KIND_BPE && s->vocab->longest.node == NULL;
	struct path open = open_path(releases ? p + b->start[n] : end, end);
	uint32_t missed = n, second = 0, left, done = 0, twins = 0;
	uint16_t twin[TOK_BLOCK];

	fetch_next(&open, s->vocab);
	fetch_next(&open, s->vocab);
	if (s->cache != NULL) {
		missed = s->vocab->kernels->find(s->cache, b, n, p, end);
		fetch_next(&open, s->vocab);
		second = find_missed(s->cache, b, missed, p);
		fetch_next(&open, s->vocab);
		missed = list_left(b, b->missed, missed, b->missed);
	} else {
		for (uint32_t k = 0; k < n; k++) {
			b->missed[k] = (uint16_t)k;
			b->ids[k] = NULL;
		}
	}
	left = list_left(b, b->missed, missed, b->left);
	if (s->vocab->word != NULL) {
		find_words(s->vocab, b, left, p, end);
		find_long_words(s->vocab, b, left, p);
		left = list_left(b, b->left, left, b->left);
	}
	if (s->cache != NULL && (releases || s->vocab->kind == TOK_KIND_WORDPIECE))
		left = set_twins_apart(b, left, twin, &twins);
	if (s->vocab->kind == TOK_KIND_BPE)
		merge_left(s->vocab, b, left, p);
	else if (s->vocab->kind == TOK_KIND_WORDPIECE && left > 0)
		match_left(s->vocab, b, left, p);
	fetch_next(&open, s->vocab);
	for (uint32_t i = 0; i < twins; i++)
		b->ids[twin[i]] = b->ids[b->slot[twin[i]]];
	left = list_left(b, b->missed, missed, b->left);
	for (uint32_t i = 0; i < left; i++) {
		const uint32_t k = b->left[i];
		uint32_t *next;

		ids = write_ids(s->vocab, b, done, k, ids);
		next = encode_alone(s, p + b->start[k], length_of(b, k), ids);
		if (next == NULL)
			return NULL;
		b->ids[k] = ids;
		b->slot[k] = (uint32_t)(next - ids);
		ids = next;
		done = k + 1;
	}
	ids = write_ids(s->vocab, b, done, n, ids);
	fetch_next(&open, s->vocab);
	if (s->cache == NULL)
		return ids;
	/* Nothing is read from the cache any more. */
	for (uint32_t i = 0; i < second; i++)
		tok_cache_promote(b->set[b->second[i]], b->key[b->second[i]]);
	learn_missed(s->cache, b, missed, left, p);
	return ids;
}
