/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of merges: a perfect hash by pilots (as in PTHash, Pibiri and Trani 2021). Pairs fall
 * into buckets; from the fullest bucket to the emptiest, a pilot is searched that sends all of its
 * pairs to free slots. Set-up only.
 */
#include <stdlib.h>

#include "parts.h"
#include "vocab_table.h"

#define PILOT_TRIES (UINT16_MAX + 1u) /* some hundred, where hashes are as good as random */
#define BUCKET_MAX 64u		      /* pairs; about 4 of them are there */

/* Slots, a power of two, of which four fifths are filled at most. */
static uint32_t
slots_for(uint32_t n)
{
	uint32_t slots = 1024;

	while (slots < n + n / 4)
		slots *= 2;
	return slots;
}

static uint64_t
key_of(const struct tok_vocab *v, uint32_t rank)
{
	return tok_pair_key(v->split[rank].left, v->split[rank].right);
}

/* Take a slot. False: it was taken. */
static inline bool
take(uint64_t *taken, uint32_t slot)
{
	const uint64_t bit = 1ull << slot % 64;
	const bool is_free = !(taken[slot / 64] & bit);

	taken[slot / 64] |= bit;
	return is_free;
}

/*
 * The n pairs of a bucket to free slots, by the first pilot that does. False: there is none.
 * taken: a bit for each slot, which stay in the CPU's cache where the slots do not.
 */
static bool
place_bucket(struct tok_vocab *v, uint64_t *taken, const uint32_t *rank, uint32_t n)
{
	uint64_t hash[BUCKET_MAX];

	for (uint32_t i = 0; i < n; i++)
		hash[i] = tok_pair_hash(key_of(v, rank[i]));
	for (uint32_t pilot = 0; pilot < PILOT_TRIES; pilot++) {
		uint32_t slot[BUCKET_MAX], placed = 0;

		for (; placed < n; placed++) {
			slot[placed] = tok_pair_slot(v, hash[placed], pilot);
			if (!take(taken, slot[placed]))
				break;
		}
		if (placed == n) {
			for (uint32_t i = 0; i < n; i++)
				v->pair[slot[i]] = key_of(v, rank[i]) << 21 | rank[i];
			v->pair_pilot[tok_pair_bucket(v, hash[0])] = (uint16_t)pilot;
			return true;
		}
		while (placed-- > 0)
			taken[slot[placed] / 64] &= ~(1ull << slot[placed] % 64);
	}
	return false;
}

struct buckets {
	uint32_t *first; /* of each bucket, in `rank`; and after the last */
	uint32_t *rank;	 /* rank ids of merges, by their bucket */
	uint64_t *taken; /* a bit for each slot */
	uint32_t n;
};

static bool
sort_by_bucket(const struct tok_vocab *v, struct buckets *x)
{
	const uint32_t merges = v->n_ranks - TOK_BYTES;

	x->n = tok_vocab_table_n(v, TOK_TABLE_PAIR_PILOT);
	x->first = calloc(x->n + 2, sizeof(*x->first));
	x->rank = calloc(merges + 1, sizeof(*x->rank));
	x->taken = calloc((v->pair_mask + 1) / 64, sizeof(*x->taken));
	if (x->first == NULL || x->rank == NULL || x->taken == NULL)
		return false;
	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++)
		x->first[tok_pair_bucket(v, tok_pair_hash(key_of(v, r))) + 2]++;
	for (uint32_t i = 2; i < x->n + 2; i++)
		x->first[i] += x->first[i - 1];
	/* Each bucket's end moves from its first to the next one's. */
	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++)
		x->rank[x->first[tok_pair_bucket(v, tok_pair_hash(key_of(v, r))) + 1]++] = r;
	return true;
}

/* All pairs to the table, which is free. False: some bucket is too full, or has no pilot. */
static bool
place_all(struct tok_vocab *v, const struct buckets *x)
{
	uint32_t fullest = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		const uint32_t size = x->first[i + 1] - x->first[i];

		fullest = size > fullest ? size : fullest;
	}
	if (fullest > BUCKET_MAX)
		return false;
	for (uint32_t size = fullest; size > 0; size--) {
		for (uint32_t i = 0; i < x->n; i++) {
			if (x->first[i + 1] - x->first[i] == size &&
				!place_bucket(v, x->taken, x->rank + x->first[i], size))
				return false;
		}
	}
	return true;
}

static uint16_t
least(uint16_t a, uint32_t b)
{
	return b < a ? (uint16_t)b : a;
}

/* Fill in v->byte_pair. Needs the splits. False: no memory. */
static bool
build_byte_pairs(struct tok_vocab *v)
{
	struct tok_byte_pair *pair = v->byte_pair;
	uint8_t *first = malloc(v->n_ranks), *last = malloc(v->n_ranks); /* bytes of each token */
	const bool ok = first != NULL && last != NULL;

	memset(pair, 0xff, TOK_BYTES * TOK_BYTES * sizeof(*pair)); /* TOK_NO_TOKEN, UINT16_MAX */
	for (uint32_t r = 0; ok && r < v->n_ranks; r++) {
		const struct tok_split part = v->split[r];
		struct tok_byte_pair *ends;

		first[r] = r < TOK_BYTES ? (uint8_t)r : first[part.left];
		last[r] = r < TOK_BYTES ? (uint8_t)r : last[part.right];
		if (r < TOK_BYTES)
			continue;
		ends = &pair[last[part.left] << 8 | first[part.right]];
		if (part.right < TOK_BYTES)
			ends->as_right = least(ends->as_right, r);
		if (part.left < TOK_BYTES)
			ends->as_left = least(ends->as_left, r);
		if (part.left < TOK_BYTES && part.right < TOK_BYTES)
			ends->merge = r;
	}
	free(first);
	free(last);
	return ok;
}

/*
 * Make tables of that many slots. False with *full set: they are too small, or the hashes were
 * unlucky.
 */
static bool
build_slots(struct tok_vocab *v, uint32_t slots, bool *full)
{
	struct buckets x = {0};
	bool ok = tok_vocab_table_make(v, TOK_TABLE_PAIR, slots) &&
		  tok_vocab_table_make(v, TOK_TABLE_PAIR_PILOT, slots / TOK_PAIR_SHARE) &&
		  tok_vocab_table_make(v, TOK_TABLE_PAIR_FILTER, slots / TOK_PAIR_FILTER_SHARE);

	*full = false;
	if (ok) {
		tok_vocab_shifts(v);
		memset(v->pair, 0xff, slots * sizeof(*v->pair));
		ok = sort_by_bucket(v, &x);
	}
	if (ok)
		*full = !place_all(v, &x);
	free(x.first);
	free(x.rank);
	free(x.taken);
	return ok && !*full;
}

/* In a small table chance can keep two pairs together: it is tried with tables twice as large. */
#define TRIES 4u

bool
tok_pairs_build(struct tok_vocab *v, struct tok_error *err)
{
	const uint32_t merges = v->n_ranks - TOK_BYTES;
	uint32_t slots = slots_for(merges);
	bool full;

	if (!tok_vocab_table_make(v, TOK_TABLE_BYTE_PAIR, TOK_BYTES * TOK_BYTES) ||
		!build_byte_pairs(v))
		return tok_fail(err, "out of memory for %u merges", merges);
	for (uint32_t tries = 1; !build_slots(v, slots, &full); tries++) {
		if (!full)
			return tok_fail(err, "out of memory for %u merges", merges);
		if (tries == TRIES)
			return tok_fail(err,
				"%u merges do not fit a table of %u pairs: they were chosen to "
				"collide, do not trust this vocabulary",
				merges, slots);
		tok_vocab_table_drop(v, TOK_TABLE_PAIR);
		tok_vocab_table_drop(v, TOK_TABLE_PAIR_PILOT);
		tok_vocab_table_drop(v, TOK_TABLE_PAIR_FILTER);
		slots *= 2;
	}
	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++) {
		const uint64_t bit = tok_pair_filter_bit(v, tok_pair_hash(key_of(v, r)));

		v->pair_filter[bit / 64] |= 1ull << bit % 64;
	}
	return true;
}
