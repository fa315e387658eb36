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
 * part. Places 0 and n + 1 are before the first and after the last part.
 *
 * The key of a part: the rank id that it and the next part merge to, shifted above its place. A
 * lower rank id means an earlier merge, so the least key is the next merge; among equal ranks it is
 * the leftmost, as in the reference.
 */
#define PLACE_BITS 6
#define PLACES (1u << PLACE_BITS)
#define RANK_BITS 21		       /* of a rank id, at most (struct tok_vocab, pair) */
#define NO_MERGE ((uint32_t)INT32_MAX) /* as large as a key with a sign may be */
#define KEYS 16u		       /* set or searched at a time */
static_assert(TOK_MERGE_MAX + 2 <= PLACES, "a place fits its bits");

struct parts {
	_Alignas(64) uint32_t key[PLACES];
	_Alignas(64) uint32_t token[PLACES];
	uint64_t pair[PLACES]; /* of a part and the next one, whose key is being found */
	uint64_t live; /* bit set of the places that have a part, with those before and after */
	uint32_t n;
	uint32_t at, before; /* of the last merge: the places whose keys are to be found */
	const struct tok_bpe_word *word;
};

/* The least of the keys of places 1 .. n; before and after them, in groups of KEYS, is NO_MERGE.
 */
static inline uint32_t least_key(const uint32_t *key, uint32_t n);

/* Copy the tokens from[i] of all bits i of `places`. Returns their number. */
static inline uint32_t copy_tokens(uint32_t *to, const uint32_t *from, uint64_t places);

static inline uint32_t
place_after(const struct parts *x, uint32_t place)
{
	return (uint32_t)__builtin_ctzll(x->live & ~1ull << place);
}

static inline uint32_t
place_before(const struct parts *x, uint32_t place)
{
	return 63 - (uint32_t)__builtin_clzll(x->live & ((1ull << place) - 1));
}

/* The pair of a part and the next one. If there are not both, a pair that no table has. */
static inline uint64_t
pair_at(const struct parts *x, uint32_t left)
{
	const uint32_t right = place_after(x, left);
	const bool any = left != 0 && right <= x->n;

	return tok_pair_key(x->token[left], x->token[right]) | ((uint64_t)any - 1);
}

/*
 * The key of a part is found in two steps, so that other words are worked on while the table is
 * fetched from memory: first key[left] becomes the slot of the pair, then its key.
 */
static inline void
seek_pair(const struct tok_vocab *v, struct parts *x, uint32_t left, uint64_t pair)
{
	x->pair[left] = pair;
	x->key[left] = tok_pair_slot_of(v, pair);
	__builtin_prefetch(&v->pair[x->key[left]]);
}

static inline void
seek_key(const struct tok_vocab *v, struct parts *x, uint32_t left)
{
	seek_pair(v, x, left, pair_at(x, left));
}

static inline void
find_key(const struct tok_vocab *v, struct parts *x, uint32_t left)
{
	const uint64_t found = v->pair[x->key[left]];
	const uint32_t key = (uint32_t)found << PLACE_BITS | left;
	const uint32_t differs = tok_nonzero((found >> RANK_BITS) ^ x->pair[left]);

	/* Without a branch: the processor could not predict it. */
	x->key[left] = (key & ((1u << (RANK_BITS + PLACE_BITS)) - 1)) | (NO_MERGE & -differs);
}

/* The same for all parts, which lie at the places 1 .. n. */
static inline void
seek_keys(const struct tok_vocab *v, struct parts *x)
{
	for (uint32_t i = 0; i <= x->n; i += KEYS) {
		for (uint32_t k = 0; k < KEYS; k++)
			x->key[i + k] = NO_MERGE;
	}
	for (uint32_t left = 1; left < x->n; left++)
		seek_pair(v, x, left, tok_pair_key(x->token[left], x->token[left + 1]));
}

static inline void
find_keys(const struct tok_vocab *v, struct parts *x)
{
	for (uint32_t left = 1; left < x->n; left++)
		find_key(v, x, left);
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
	x->n = copy_tokens(x->token + 1, x->token, x->live & ((2ull << x->n) - 2));
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

	for (; right <= x->n && x->token[right] == unit; right = place_after(x, right)) {
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

/* The parts of a word after all merges that are certain. */
static inline void
open_word(const struct tok_vocab *v, struct parts *x, const struct tok_bpe_word *w)
{
	const uint8_t *p = w->p, *end = p + w->n;
	struct tok_byte_pair pair, next = {TOK_NO_TOKEN, UINT16_MAX, UINT16_MAX};
	uint32_t before, n = 1;
	bool certain;

	x->token[1] = *p;
	if (w->n > 1)
		next = v->byte_pair[(uint32_t)p[0] << 8 | p[1]];
	before = UINT16_MAX;
	while (++p < end) {
		pair = next;
		if (p + 1 < end)
			next = v->byte_pair[(uint32_t)p[0] << 8 | p[1]];
		else
			next.as_left = UINT16_MAX;
		certain = (pair.merge < before) & (pair.merge < next.as_left);
		before = pair.as_right;
		n += !certain;
		x->token[n] = certain ? pair.merge : *p;
	}
	x->word = w;
	x->n = n;
	x->live = (4ull << n) - 1;
}

/* Apply the merge with this key. Its id will be wanted: it comes from memory meanwhile. */
static inline void
merge_next(const struct tok_vocab *v, struct parts *x, uint32_t best)
{
	const uint32_t at = best & (PLACES - 1), right = place_after(x, at);

	x->token[at] = best >> PLACE_BITS;
	__builtin_prefetch(&v->ext[x->token[at]]);
	x->live ^= 1ull << right;
	x->key[right] = NO_MERGE;
	x->at = at;
	x->before = place_before(x, at);
}

static inline void
close_word(const struct tok_vocab *v, const struct parts *x)
{
	uint32_t *out = x->word->out;
	const uint32_t n = copy_tokens(out, x->token, x->live & ((2ull << x->n) - 2));

	for (uint32_t i = 0; i < n; i++)
		out[i] = v->ext[out[i]];
	out[-1] = TOK_CACHE_HEAD(n);
	out[-TOK_BPE_WORD_HEAD] = n;
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
		x->at = 1; /* a place that has a part: once more */
		x->before = 0;
	}
	seek_key(v, x, x->at);
	seek_key(v, x, x->before);
	return true;
}

static inline void
end_step(const struct tok_vocab *v, struct parts *x)
{
	find_key(v, x, x->at);
	find_key(v, x, x->before);
}

/*
 * Merge several words at a time. A merge needs the result of the merge before it, so a single word
 * would spend most of its time waiting for table look-ups.
 */
#define LANES 32u

static void
merge_some(const struct tok_vocab *v, const struct tok_bpe_word *const *w, uint32_t n)
{
	struct parts parts[LANES], *lane[LANES];

	for (uint32_t i = 0; i < n; i++) {
		lane[i] = &parts[i];
		open_word(v, lane[i], w[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		seek_keys(v, lane[i]);
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

/* Words of one length follow one another: then the processor predicts most loops' ends. */
void
MERGE_KERNEL(const struct tok_vocab *v, const struct tok_bpe_word *w, uint32_t n)
{
	const struct tok_bpe_word *order[SOME];

	for (uint32_t some; n > 0; n -= some, w += some) {
		uint32_t at[TOK_MERGE_MAX + 2] = {0}, longest = 0;

		some = n < SOME ? n : SOME;
		for (uint32_t i = 0; i < some; i++) {
			at[w[i].n + 1]++;
			longest = w[i].n > longest ? w[i].n : longest;
		}
		for (uint32_t i = 1; i <= longest; i++)
			at[i] += at[i - 1];
		for (uint32_t i = 0; i < some; i++)
			order[at[w[i].n]++] = &w[i];
		for (uint32_t i = 0; i < some; i += LANES)
			merge_some(v, order + i, some - i < LANES ? some - i : LANES);
	}
}
