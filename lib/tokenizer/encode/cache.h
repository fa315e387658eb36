/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread's cache, of a fixed size. A 2-way table holds the ids of short pretokens. Those of
 * longer ones lie in a ring of records, which a 4-way table of positions leads to. Three
 * direct-mapped tables speed up encoding byte by byte:
 * - pair: does BPE keep two tokens side by side?
 * - growth: how long may a token after another become?
 * - guess: which token was the last one in the same situation?
 * All hashes are keyed, so crafted text can only evict entries. A hit compares the full key, never
 * only the hash.
 */
#pragma once

#include "vocab.h"

#define TOK_CACHE_WAYS 2
#define TOK_CACHE_DEFAULT 262144 /* entries: 8 MiB, and 5 MiB for longer pretokens */

/*
 * The entry of a short pretoken. Two entries fill a cache line. A pretoken with more than
 * TOK_CACHE_SOME ids uses both ways of its set: its ids continue in the second entry, from the key
 * on. As a key they have length 0, since an id has 21 bits, so no look-up finds them.
 */
#define TOK_CACHE_SHORT 15 /* bytes */
#define TOK_CACHE_SOME 4
#define TOK_CACHE_SHORT_IDS 12
struct tok_cache_entry {
	uint64_t key[2]; /* its bytes, zero-padded; in the last byte: length, and number of ids */
	uint32_t id[TOK_CACHE_SOME]; /* outside ids */
};
static_assert(sizeof(struct tok_cache_entry) == 32, "two to a cache line");
#define TOK_CACHE_LEN_SHIFT 56
#define TOK_CACHE_N_SHIFT 60

/*
 * A longer pretoken is a record in a ring: its ids, then its bytes. A new record overwrites the
 * oldest. Positions in the ring only grow, so they tell whether a record is still there.
 */
#define TOK_CACHE_LONG 256 /* bytes */
#define TOK_CACHE_LONG_IDS 128
struct tok_cache_record {
	uint32_t n;    /* number of ids */
	uint32_t head; /* TOK_CACHE_HEAD(n), and the length in bytes */
	uint32_t id[];
};
#define TOK_CACHE_UNIT 16u /* bytes of the ring; a record begins at a multiple */
#define TOK_CACHE_RECORD_UNITS                                                                     \
	((sizeof(struct tok_cache_record) + 4u * TOK_CACHE_LONG_IDS + TOK_CACHE_LONG) /            \
			TOK_CACHE_UNIT +                                                           \
		1)
#define TOK_CACHE_LONG_WAYS 4u
#define TOK_CACHE_TAG_BITS 16 /* of an element: position << TOK_CACHE_TAG_BITS | tag; 0: free */

/*
 * The ids of a pretoken are passed on as a pointer to the first; four can be read. The 32-bit
 * number before it has their number in its upper bits. TOK_CACHE_MANY: their number is in the
 * 32-bit number before that.
 */
#define TOK_CACHE_IDS_SHIFT 28
#define TOK_CACHE_MANY 15u
#define TOK_CACHE_HEAD(n) (((n) < TOK_CACHE_MANY ? (n) : TOK_CACHE_MANY) << TOK_CACHE_IDS_SHIFT)
static_assert(offsetof(struct tok_cache_entry, id) == 16 && TOK_CACHE_N_SHIFT == 60 &&
		      TOK_CACHE_SHORT_IDS < TOK_CACHE_MANY,
	"so it is in an entry");

static inline uint32_t
tok_cache_count(const uint32_t *ids)
{
	const uint32_t n = ids[-1] >> TOK_CACHE_IDS_SHIFT;

	return __builtin_expect(n == TOK_CACHE_MANY, 0) ? ids[-2] : n;
}

/* How long tokens after `left` may become, of those that begin with the bytes of `node`. All runs
 * of one byte share an entry. */
struct tok_cache_growth {
	uint32_t left;	/* rank id of the token before them */
	uint32_t node;	/* 0: free */
	uint16_t alive; /* up to this depth a token may be growing; 0: not known */
	uint16_t dead;	/* from this depth on no token is growing; UINT16_MAX: not known */
};

/* The last token of an encoding, by the state of the automaton and the last token one byte before.
 */
struct tok_cache_guess {
	uint32_t before, node, token;
};

#define TOK_CACHE_PAIR_BITS 12
#define TOK_CACHE_PAIRS (1u << TOK_CACHE_PAIR_BITS) /* 32 KiB */
#define TOK_CACHE_GROWTH_BITS 11
#define TOK_CACHE_GROWTHS (1u << TOK_CACHE_GROWTH_BITS) /* 24 KiB */
#define TOK_CACHE_GUESS_BITS 11
#define TOK_CACHE_GUESSES (1u << TOK_CACHE_GUESS_BITS) /* 24 KiB */

struct tok_cache {
	uint64_t pair[TOK_CACHE_PAIRS]; /* left << 22 | right << 1 | stands; 0: free */
	struct tok_cache_growth growth[TOK_CACHE_GROWTHS];
	struct tok_cache_guess guess[TOK_CACHE_GUESSES];
	struct tok_cache_entry *entry;
	uint64_t *longer; /* positions and tags of records */
	uint8_t *ring;
	uint64_t ring_head, ring_units;	 /* position of the next record; size */
	uint32_t set_shift;		 /* 64 - log2(sets) */
	uint32_t long_shift;		 /* likewise */
	uint64_t seed[2], multiplier[2]; /* secret; multipliers are odd */
	struct tok_mem mem;
	size_t bytes;
};

/* Hash of two numbers by a secret multiplier (Dietzfelbinger et al. 1997). Use its upper bits. */
static inline uint64_t
tok_cache_hash(const struct tok_cache *c, uint32_t a, uint32_t b)
{
	return ((uint64_t)a << 32 | b) * (c->seed[0] | 1);
}

/* Slot of a pair of rank ids. Its content without the lowest bit is the pair that it belongs to. */
static inline uint64_t *
tok_cache_pair(struct tok_cache *c, uint32_t left, uint32_t right)
{
	return &c->pair[tok_cache_hash(c, left, right) >> (64 - TOK_CACHE_PAIR_BITS)];
}

/* Slots for a rank id and a node of the automaton. */
static inline struct tok_cache_growth *
tok_cache_growth(struct tok_cache *c, uint32_t left, uint32_t node)
{
	return &c->growth[tok_cache_hash(c, left, node) >> (64 - TOK_CACHE_GROWTH_BITS)];
}

static inline struct tok_cache_guess *
tok_cache_guess(struct tok_cache *c, uint32_t before, uint32_t node)
{
	return &c->guess[tok_cache_hash(c, before, node) >> (64 - TOK_CACHE_GUESS_BITS)];
}

/* A keyed hash step: the halves of a 128-bit product are combined, as in Wang Yi's wyhash. */
static inline uint64_t
tok_cache_mix(const struct tok_cache *c, uint64_t a, uint64_t b)
{
	const unsigned __int128 x = (unsigned __int128)(a ^ c->seed[0]) * (b ^ c->seed[1]);

	return (uint64_t)x ^ (uint64_t)(x >> 64);
}

/* ---- short pretokens ---- */

/* [len]: which of 16 bytes belong to the key of a pretoken; what the other bytes of the key are. */
struct tok_cache_mask {
	_Alignas(16) uint64_t text[2];
	uint64_t rest[2];
};
extern const struct tok_cache_mask tok_cache_mask[TOK_CACHE_SHORT + 2];

/*
 * The key of the len > 0 bytes at p; 16 bytes must be readable. A pretoken that is too long gets a
 * key that no entry has: its length is 0, and it has no bytes that are 0.
 */
static inline void
tok_cache_key(uint64_t key[2], const uint8_t *p, size_t len)
{
	const struct tok_cache_mask *m =
		&tok_cache_mask[len <= TOK_CACHE_SHORT ? len : TOK_CACHE_SHORT + 1];

	key[0] = (tok_load8(p) & m->text[0]) | m->rest[0];
	key[1] = (tok_load8(p + 8) & m->text[1]) | m->rest[1];
}

/* Secret multipliers, as for pairs: no two given keys are likely to have the same hash. */
static inline struct tok_cache_entry *
tok_cache_set(const struct tok_cache *c, const uint64_t key[2])
{
	const uint64_t hash = key[0] * c->multiplier[0] + key[1] * c->multiplier[1];

	return &c->entry[(hash >> c->set_shift) * TOK_CACHE_WAYS];
}

static inline uint32_t
tok_cache_n(const struct tok_cache_entry *e)
{
	return (uint32_t)(e->key[1] >> TOK_CACHE_N_SHIFT);
}

/* 0: the entry has this key, else 1. Without a branch: the processor could not predict it. */
static inline uint32_t
tok_cache_differs(const struct tok_cache_entry *e, const uint64_t key[2])
{
	return tok_nonzero((e->key[0] ^ key[0]) | (e->key[1] ^ key[1]) << (64 - TOK_CACHE_N_SHIFT));
}

/* Look up a key; NULL: not in the cache. */
static inline const uint32_t *
tok_cache_find(const struct tok_cache_entry *set, const uint64_t key[2])
{
	const uint32_t differs = tok_cache_differs(&set[0], key);

	return differs & tok_cache_differs(&set[1], key) ? NULL : set[differs].id;
}

/* Insert into the first way. The entry that was there moves to the second way if it fits in one. */
static inline void
tok_cache_learn(struct tok_cache_entry *set, const uint64_t key[2], const uint32_t *id, uint32_t n)
{
	struct tok_cache_entry e = {.key = {key[0], key[1] | (uint64_t)n << TOK_CACHE_N_SHIFT}};

	if (n > TOK_CACHE_SHORT_IDS || key[1] >> TOK_CACHE_LEN_SHIFT == 0)
		return;
	if (n <= TOK_CACHE_SOME && tok_cache_n(&set[0]) <= TOK_CACHE_SOME)
		set[1] = set[0];
	else
		memset(&set[1], 0, sizeof(set[1]));
	if (n > TOK_CACHE_SOME)
		memcpy(&set[1], id + TOK_CACHE_SOME, (n - TOK_CACHE_SOME) * sizeof(*id));
	memcpy(e.id, id, (n < TOK_CACHE_SOME ? n : TOK_CACHE_SOME) * sizeof(*id));
	set[0] = e;
}

/* Exchange the ways if the second one has this key, as it was used last. */
static inline void
tok_cache_promote(struct tok_cache_entry *set, const uint64_t key[2])
{
	const struct tok_cache_entry e = set[0];

	if (tok_cache_differs(&set[1], key))
		return; /* among others, if the first way's ids continue there */
	set[0] = set[1];
	set[1] = e;
}

/* ---- longer pretokens: TOK_CACHE_SHORT < len <= TOK_CACHE_LONG ---- */

struct tok_cache_long_set {
	uint64_t *way; /* [TOK_CACHE_LONG_WAYS] */
	uint32_t tag;
};

static inline struct tok_cache_long_set
tok_cache_long_set(const struct tok_cache *c, const uint8_t *p, uint32_t len)
{
	uint64_t h = tok_cache_mix(c, tok_load8(p + len - 16) ^ len, tok_load8(p + len - 8));

	for (uint32_t i = 0; i + 16 < len; i += 16)
		h = tok_cache_mix(c, h ^ tok_load8(p + i), tok_load8(p + i + 8));
	return (struct tok_cache_long_set){&c->longer[(h >> c->long_shift) * TOK_CACHE_LONG_WAYS],
		(uint32_t)h & ((1u << TOK_CACHE_TAG_BITS) - 1)};
}

/* The record that may be of a pretoken of this set; NULL: none. */
static inline const struct tok_cache_record *
tok_cache_candidate(const struct tok_cache *c, struct tok_cache_long_set set)
{
	uint64_t found = 0; /* the newest with this tag */

	for (uint32_t i = 0; i < TOK_CACHE_LONG_WAYS; i++) {
		const uint64_t x = set.way[i];
		const bool same = (uint32_t)(x ^ set.tag) << (32 - TOK_CACHE_TAG_BITS) == 0;

		found = same && x > found ? x : found;
	}
	found >>= TOK_CACHE_TAG_BITS;
	if (c->ring_head - found > c->ring_units)
		return NULL;
	return (const struct tok_cache_record *)(c->ring +
						 (found & (c->ring_units - 1)) * TOK_CACHE_UNIT);
}

/* Its ids if it is a record of these bytes, else NULL. */
static inline const uint32_t *
tok_cache_long_find(const struct tok_cache_record *r, const uint8_t *p, uint32_t len)
{
	const uint8_t *bytes;
	uint64_t differs;

	if (r == NULL || r->head != (TOK_CACHE_HEAD(r->n) | len))
		return NULL;
	bytes = (const uint8_t *)(r->id + r->n);
	differs = (tok_load8(bytes + len - 16) ^ tok_load8(p + len - 16)) |
		  (tok_load8(bytes + len - 8) ^ tok_load8(p + len - 8));
	for (uint32_t i = 0; i + 16 < len; i += 16)
		differs |= (tok_load8(bytes + i) ^ tok_load8(p + i)) |
			   (tok_load8(bytes + i + 8) ^ tok_load8(p + i + 8));
	return differs == 0 ? r->id : NULL;
}

/* The bytes must not be known yet. */
static inline void
tok_cache_long_learn(struct tok_cache *c, struct tok_cache_long_set set, const uint8_t *p,
	uint32_t len, const uint32_t *id, uint32_t n)
{
	const uint32_t bytes = (uint32_t)sizeof(struct tok_cache_record) + 4 * n + len;
	uint64_t *oldest = set.way;
	struct tok_cache_record *r;

	if (n > TOK_CACHE_LONG_IDS)
		return;
	if ((c->ring_head & (c->ring_units - 1)) > c->ring_units - TOK_CACHE_RECORD_UNITS)
		c->ring_head = (c->ring_head | (c->ring_units - 1)) + 1;
	r = (struct tok_cache_record *)(c->ring +
					(c->ring_head & (c->ring_units - 1)) * TOK_CACHE_UNIT);
	r->n = n;
	r->head = TOK_CACHE_HEAD(n) | len;
	memcpy(r->id, id, n * sizeof(*id));
	memcpy(r->id + n, p, len);
	for (uint32_t i = 1; i < TOK_CACHE_LONG_WAYS; i++)
		oldest = set.way[i] < *oldest ? &set.way[i] : oldest;
	*oldest = c->ring_head << TOK_CACHE_TAG_BITS | set.tag;
	c->ring_head += (bytes + TOK_CACHE_UNIT - 1) / TOK_CACHE_UNIT;
}

/* ---- both: 0 < len <= TOK_CACHE_LONG bytes at p, of which 16 must be readable ---- */

struct tok_cache_ids {
	const uint32_t *from; /* NULL: not in the cache */
	uint32_t n;
};

static inline struct tok_cache_ids
tok_cache_word(const struct tok_cache *c, const uint8_t *p, uint32_t len)
{
	const uint32_t *ids;
	uint64_t key[2];

	if (len > TOK_CACHE_SHORT) {
		ids = tok_cache_long_find(
			tok_cache_candidate(c, tok_cache_long_set(c, p, len)), p, len);
	} else {
		tok_cache_key(key, p, len);
		ids = tok_cache_find(tok_cache_set(c, key), key);
	}
	return (struct tok_cache_ids){ids, ids == NULL ? 0 : tok_cache_count(ids)};
}

static inline void
tok_cache_learn_word(
	struct tok_cache *c, const uint8_t *p, uint32_t len, const uint32_t *id, uint32_t n)
{
	uint64_t key[2];

	if (len > TOK_CACHE_SHORT) {
		tok_cache_long_learn(c, tok_cache_long_set(c, p, len), p, len, id, n);
		return;
	}
	tok_cache_key(key, p, len);
	tok_cache_learn(tok_cache_set(c, key), key, id, n);
}
