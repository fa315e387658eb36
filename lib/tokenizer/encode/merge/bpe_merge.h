/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte pair encoding of short pretokens, by applying the merges. Each instruction set includes this
 * in a file of its own and defines there MERGE_KERNEL, the name of the function, and the two
 * functions declared below.
 *
 * First, merges of two bytes that are certain are applied, all at once: those with a lower rank
 * than any merge that could take one of the two bytes. The left byte could be taken by a merge
 * whose left token ends with the byte before (as_right), the right byte by a merge whose right
 * token begins with the byte after (as_left). As long as both bytes are there, their merge comes
 * before all these. So it is applied, and merges of lower rank do not see its result. That is half
 * of all merges of text. The others are applied one by one, the one with the least rank first.
 */
#include "encode/bpe.h"

/*
 * A word is a list of parts at places 1 .. n. A merge leaves its result at the place of its left
 * part. Places 0 and n + 1 are before the first and after the last part. The tokens of the parts
 * lie where the word's ids will.
 *
 * The key of a part: the rank id that it and the next part merge to, shifted above its place. A
 * lower rank id means an earlier merge, so the least key is the next merge; among equal ranks it is
 * the leftmost, as in the reference.
 */
#define PLACE_BITS 6
#define PLACES (1u << PLACE_BITS)
#define RANK_BITS 21 /* of a rank id, at most (struct tok_vocab, pair) */
#define NO_MERGE ((1u << (RANK_BITS + PLACE_BITS)) - 1) /* no key: the last place has no part */
#define KEYS 16u					/* set or searched at a time */
static_assert(TOK_MERGE_MAX + 2 <= PLACES, "a place fits its bits");

struct parts {
	_Alignas(64) uint32_t key[PLACES];
	uint64_t live;	 /* bit set of the places that have a part, with those before and after */
	uint32_t *token; /* [place] */
	uint32_t n;
	struct seek {
		uint32_t left, slot;
		uint64_t pair;
	} seek[2]; /* after a merge: of its result, and of the part before */
};

/* The least of the keys of places 1 .. n; before and after them, in groups of KEYS, is NO_MERGE.
 */
static inline uint32_t least_key(const uint32_t *key, uint32_t n);

/* Copy the tokens from[i] of all bits i of `places`. Returns their number. */
static inline uint32_t copy_tokens(uint32_t *to, const uint32_t *from, uint64_t places);

static inline uint32_t
place_after(uint64_t live, uint32_t place)
{
	return (uint32_t)__builtin_ctzll(live & ~1ull << place);
}

static inline uint32_t
place_before(uint64_t live, uint32_t place)
{
	return 63 - (uint32_t)__builtin_clzll(live & ((1ull << place) - 1));
}

/*
 * The key of a part is found in two steps, so that other words are worked on while the table is
 * fetched from memory: first the slot of its pair, then what is there.
 */
static inline uint32_t
seek_slot(const struct tok_vocab *v, uint64_t pair)
{
	const uint32_t slot = tok_pair_slot_of(v, pair);

	__builtin_prefetch(&v->pair[slot]);
	return slot;
}

static inline uint32_t
find_key(const struct tok_vocab *v, uint32_t slot, uint64_t pair, uint32_t left)
{
	const uint64_t found = v->pair[slot];
	const uint32_t key = (uint32_t)found << PLACE_BITS | left;

	/* Without a branch: the processor could not predict it. */
	return (key | -(uint32_t)((found >> RANK_BITS) != pair)) & NO_MERGE;
}

/* The keys of all parts, which lie at the places 1 .. n: first their slots, ... */
static inline void
seek_keys(const struct tok_vocab *v, struct parts *x)
{
	for (uint32_t i = 0; i <= x->n; i += KEYS) {
		for (uint32_t k = 0; k < KEYS; k++)
			x->key[i + k] = NO_MERGE;
	}
	for (uint32_t left = 1; left < x->n; left++)
		x->key[left] = seek_slot(v, tok_pair_key(x->token[left], x->token[left + 1]));
}

/* ... then the keys. */
static inline void
find_keys(const struct tok_vocab *v, struct parts *x)
{
	for (uint32_t left = 1; left < x->n; left++) {
		x->key[left] = find_key(
			v, x->key[left], tok_pair_key(x->token[left], x->token[left + 1]), left);
		__asm__("" : "+r"(left)); /* no vectors: loads from all over take longer so */
	}
}

/* ---- families of repeated tokens (tables/repeats.h) ---- */

/* The family whose first merge makes this token, or TOK_REPEATS_MAX. */
static inline uint32_t
family_of(const struct tok_vocab *v, uint32_t token)
{
	uint32_t i = 0;

	while (i < v->n_repeats && v->repeat[i].low != token)
		i++;
	return i < v->n_repeats ? i : TOK_REPEATS_MAX;
}

/* All places again without gaps. */
static inline void
close_up(struct parts *x)
{
	uint32_t *to = x->token + 1;

	x->n = copy_tokens(to, to, x->live >> 1 & ((1ull << x->n) - 1));
	x->live = (4ull << x->n) - 1;
}

/* Replace the run of units from `at` on by the tokens that the family makes of it. */
static void
merge_run(const struct tok_vocab *v, uint32_t family, struct parts *x, uint32_t at)
{
	const struct tok_repeat_runs *runs = &v->repeat_runs[family];
	const uint32_t unit = v->repeat[family].unit;
	uint32_t units = 0, right = at;
	uint8_t place[TOK_MERGE_MAX];

	for (; right <= x->n && x->token[right] == unit; right = place_after(x->live, right)) {
		place[units++] = (uint8_t)right;
		x->live &= ~(1ull << right);
	}
	while (units > 0) { /* from the last to the first */
		const uint32_t last = runs->last[units], begin = place[units - last];

		x->token[begin] = runs->rank[last];
		x->live |= 1ull << begin;
		units -= last;
	}
	close_up(x);
}

/* ---- words ---- */

/* Write the parts of a word after all merges that are certain. Returns their number. */
static inline uint32_t
open_word(const struct tok_vocab *v, const struct tok_bpe_word *w)
{
	static const struct tok_byte_pair none = {TOK_NO_TOKEN, UINT16_MAX, UINT16_MAX};
	const struct tok_byte_pair *before = &none, *pair = &none, *after;
	const uint8_t *p = w->p, *last = p + w->n - 1;
	uint32_t *out = w->out;

	*out = *p;
	if (p < last)
		pair = &v->byte_pair[(uint32_t)p[0] << 8 | p[1]];
	while (p++ < last) {
		uint32_t certain;

		after = p < last ? &v->byte_pair[(uint32_t)p[0] << 8 | p[1]] : &none;
		certain = (pair->merge < before->as_right) & (pair->merge < after->as_left);
		/* Without a branch: the processor could not predict it. */
		out += 1 - certain;
		*out = (pair->merge & -certain) | (*p & (certain - 1));
		before = pair;
		pair = after;
	}
	return (uint32_t)(out - w->out) + 1;
}

static inline void
seek_key(const struct tok_vocab *v, struct seek *s, uint32_t left, uint64_t pair)
{
	*s = (struct seek){left, seek_slot(v, pair), pair};
}

/* Apply the merge with this key. Its id will be wanted: it comes from memory meanwhile. */
static inline void
merge_next(const struct tok_vocab *v, struct parts *x, uint32_t best)
{
	const uint32_t at = best & (PLACES - 1), token = best >> PLACE_BITS;
	const uint32_t right = place_after(x->live, at);
	const uint64_t live = x->live ^ 1ull << right;
	const uint32_t before = place_before(live, at), after = place_after(live, at);

	__builtin_prefetch(&v->ext[token]);
	x->token[at] = token;
	x->key[right] = NO_MERGE;
	x->live = live;
	/* Where there is no part, a pair that no table has. */
	seek_key(v, &x->seek[0], at,
		tok_pair_key(token, x->token[after]) | -(uint64_t)(after > x->n));
	seek_key(v, &x->seek[1], before,
		tok_pair_key(x->token[before], token) | -(uint64_t)(before == 0));
}

/* Apply the next merge. False: there is none left. */
static inline bool
begin_step(const struct tok_vocab *v, struct parts *x)
{
	const uint32_t best = least_key(x->key, x->n);
	uint32_t family = TOK_REPEATS_MAX;

	if (best == NO_MERGE)
		return false;
	if (v->n_repeats > 0)
		family = family_of(v, best >> PLACE_BITS);
	if (family == TOK_REPEATS_MAX) {
		merge_next(v, x, best);
	} else {
		merge_run(v, family, x, best & (PLACES - 1));
		seek_keys(v, x);
		find_keys(v, x);
		seek_key(v, &x->seek[0], 0, ~0ull);
		x->seek[1] = x->seek[0];
	}
	return true;
}

static inline void
end_step(const struct tok_vocab *v, struct parts *x)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct seek *s = &x->seek[i];

		x->key[s->left] = find_key(v, s->slot, s->pair, s->left);
	}
}

static inline void
close_word(const struct tok_vocab *v, const struct parts *x)
{
	uint32_t *out = x->token + 1;
	const uint32_t n = copy_tokens(out, out, x->live >> 1 & ((1ull << x->n) - 1));

	for (uint32_t i = 0; i < n; i++)
		out[i] = v->ext[out[i]];
	out[-1] = TOK_CACHE_HEAD(n);
	out[-TOK_BPE_WORD_HEAD] = n;
}

/*
 * Merge several words at a time. A merge needs the result of the merge before it, so a single word
 * would spend most of its time waiting for table look-ups.
 */
#define LANES 64u

/* The words w[at[i]], i below n, each with parts[at[i]] parts now. */
static void
merge_some(const struct tok_vocab *v, const struct tok_bpe_word *w, const uint8_t *parts,
	const uint16_t *at, uint32_t n)
{
	struct parts word[LANES], *lane[LANES];

	for (uint32_t i = 0; i < n; i++) {
		struct parts *x = lane[i] = &word[i];

		x->token = w[at[i]].out - 1;
		x->n = parts[at[i]];
		x->live = (4ull << x->n) - 1;
		seek_keys(v, x);
	}
	for (uint32_t i = 0; i < n; i++)
		find_keys(v, lane[i]);
	while (n > 0) {
		uint32_t live = 0;

		for (uint32_t i = 0; i < n; i++) {
			if (begin_step(v, lane[i]))
				lane[live++] = lane[i];
			else
				close_word(v, lane[i]);
		}
		for (uint32_t i = 0; i < live; i++)
			end_step(v, lane[i]);
		n = live;
	}
}

#define SOME 256u /* words */

/* Indices in ascending order of size[], which is at most TOK_MERGE_MAX. */
static inline void
sort(const uint8_t *size, uint32_t n, uint16_t *order)
{
	uint16_t at[TOK_MERGE_MAX + 2] = {0};
	uint32_t largest = 0;

	for (uint32_t i = 0; i < n; i++) {
		at[size[i] + 1]++;
		largest = size[i] > largest ? size[i] : largest;
	}
	for (uint32_t i = 1; i <= largest; i++)
		at[i] = (uint16_t)(at[i] + at[i - 1]);
	for (uint32_t i = 0; i < n; i++)
		order[at[size[i]]++] = (uint16_t)i;
}

/* Words of as many parts follow one another: then the processor predicts most loops' ends. */
void
MERGE_KERNEL(const struct tok_vocab *v, const struct tok_bpe_word *w, uint32_t n)
{
	for (uint32_t some; n > 0; n -= some, w += some) {
		uint16_t order[SOME];
		uint8_t size[SOME];

		some = n < SOME ? n : SOME;
		for (uint32_t i = 0; i < some; i++)
			size[i] = (uint8_t)open_word(v, &w[i]);
		sort(size, some, order);
		for (uint32_t i = 0; i < some; i += LANES)
			merge_some(v, w, size, order + i, some - i < LANES ? some - i : LANES);
	}
}
