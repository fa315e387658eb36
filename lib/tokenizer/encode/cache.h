/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread has learned, in fixed memory of its own: pretokens that are several tokens, in a
 * two-way set-associative cache; pairs of tokens that do or do not stand, how far a token may be
 * growing behind another, and which token came last in a like place, in direct-mapped ones. All
 * hashes are keyed; crafted text can only evict.
 */
#ifndef TOK_CACHE_H
#define TOK_CACHE_H

#include "vocab.h"

#define TOK_CACHE_BYTES 24 /* longest pretoken kept */
#define TOK_CACHE_IDS 9	   /* most ids kept for one */
#define TOK_CACHE_WAYS 2
#define TOK_CACHE_DEFAULT 16384 /* entries: 1 MiB */

struct tok_cache_entry {
	uint64_t key[3]; /* bytes of the pretoken, zero-padded */
	uint8_t len;	 /* 0: free */
	uint8_t n;
	uint16_t reserved;
	uint32_t id[TOK_CACHE_IDS]; /* outside ids */
};
static_assert(sizeof(struct tok_cache_entry) == 64, "one cache line");

/* Tokens that begin with what a node spells, or all that begin with a run of its byte. */
struct tok_cache_growth {
	uint32_t left;	/* rank id of the token before them */
	uint32_t node;	/* 0: free */
	uint16_t alive; /* depth up to which one may be growing, 0 if that is not known of any */
	uint16_t dead;	/* depth from which none is; UINT16_MAX likewise */
};

/* The last token of an encoding, where the automaton and the one a byte before were the same. */
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
	uint32_t set_mask; /* sets - 1 */
	uint64_t seed[2];
	struct tok_mem mem;
	size_t bytes;
};

/* Hash of two numbers by a secret multiplier (Dietzfelbinger et al. 1997): its upper bits. */
static inline uint64_t
tok_cache_hash(const struct tok_cache *c, uint32_t a, uint32_t b)
{
	return ((uint64_t)a << 32 | b) * (c->seed[0] | 1);
}

/* Slot of a pair of rank ids; its content, without the lowest bit, says whose it is. */
static inline uint64_t *
tok_cache_pair(struct tok_cache *c, uint32_t left, uint32_t right)
{
	return &c->pair[tok_cache_hash(c, left, right) >> (64 - TOK_CACHE_PAIR_BITS)];
}

/* Slots of a rank id and a node of the automaton. */
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

static inline struct tok_cache_entry *
tok_cache_set(const struct tok_cache *c, const uint64_t key[3], uint32_t len)
{
	uint64_t h = (key[0] ^ c->seed[0]) * TOK_HASH_1;

	h = (h ^ h >> 32 ^ key[1] ^ c->seed[1]) * TOK_HASH_2;
	h = (h ^ h >> 32 ^ key[2] ^ len) * TOK_HASH_1;
	return &c->entry[(size_t)((h >> 32) & c->set_mask) * TOK_CACHE_WAYS];
}

static inline struct tok_cache_entry *
tok_cache_find(struct tok_cache_entry *set, const uint64_t key[3], uint32_t len)
{
	for (uint32_t w = 0; w < TOK_CACHE_WAYS; w++) {
		struct tok_cache_entry *e = &set[w];

		if (e->len == len && e->key[0] == key[0] && e->key[1] == key[1] &&
			e->key[2] == key[2])
			return e;
	}
	return NULL;
}

/* Remember a pretoken: in a free way, else in place of the older one (way 1 is the older). */
static inline void
tok_cache_learn(struct tok_cache_entry *set, const uint64_t key[3], uint32_t len,
	const uint32_t *id, uint32_t n)
{
	struct tok_cache_entry e = {
		.key = {key[0], key[1], key[2]},
		.len = (uint8_t)len,
		.n = (uint8_t)n,
	};

	memcpy(e.id, id, n * sizeof(*id));
	set[1] = set[0];
	set[0] = e;
}

#endif
