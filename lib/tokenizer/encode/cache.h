/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread has learned, in fixed memory of its own: pretokens that are several tokens, in a two-way
 * set-associative cache; pairs of tokens that do or do not stand, and places where a token may or
 * may not be growing, in direct-mapped ones. The hash of pretokens is keyed; crafted text can only
 * evict.
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

#define TOK_CACHE_PAIR_BITS 12
#define TOK_CACHE_PAIRS (1u << TOK_CACHE_PAIR_BITS) /* 32 KiB */
#define TOK_CACHE_GROWTH_BITS 12
#define TOK_CACHE_GROWTHS (1u << TOK_CACHE_GROWTH_BITS) /* 32 KiB */

struct tok_cache {
	uint64_t pair[TOK_CACHE_PAIRS]; /* left << 22 | right << 1 | stands; 0: free */
	uint64_t growth[TOK_CACHE_GROWTHS]; /* left << 33 | node << 1 | may grow; 0: free */
	struct tok_cache_entry *entry;
	uint32_t set_mask; /* sets - 1 */
	uint64_t seed[2];
	struct tok_mem mem;
	size_t bytes;
};

/* Slot of a pair of rank ids; its content, without the lowest bit, says whose it is. */
static inline uint64_t *
tok_cache_pair(struct tok_cache *c, uint64_t left_right)
{
	return &c->pair[left_right * TOK_HASH_1 >> (64 - TOK_CACHE_PAIR_BITS)];
}

/* Slot of a rank id and a node of the automaton; likewise. */
static inline uint64_t *
tok_cache_growth(struct tok_cache *c, uint64_t left_node)
{
	return &c->growth[left_node * TOK_HASH_1 >> (64 - TOK_CACHE_GROWTH_BITS)];
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
