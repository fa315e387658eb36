/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte pair encoding of one pretoken. There are three implementations, which must agree:
 * merge/bpe_merge.h applies the merges to a short whole pretoken; bpe_whole.c searches the tokens
 * of a longer whole pretoken; bpe_stream.c takes a pretoken byte by byte.
 */
#pragma once

#include "cache.h"
#include "isa/kernels.h"

/* Longest pretoken for tok_bpe_merge, whose cost is quadratic: each merge looks at all bytes.
 * Beyond, the search in bpe_whole.c takes fewer steps. */
#define TOK_MERGE_MAX 62

struct tok_bpe_word {
	const uint8_t *p; /* its bytes */
	uint32_t n;	  /* 1 to TOK_MERGE_MAX */
	/* Room for n ids. Before them, room for their number and for TOK_CACHE_HEAD of it; behind
	 * them, a number that is read. */
	uint32_t *out;
};
#define TOK_BPE_WORD_HEAD 2 /* 32-bit numbers before the ids */

/* Encode n words by merging: writes their outside ids. */
static inline void
tok_bpe_merge(const struct tok_vocab *v, const struct tok_bpe_word *w, uint32_t n)
{
	v->kernels->merge(v, w, n);
}

/*
 * Does BPE encode the bytes of these two tokens as exactly these two tokens, if it uses only merges
 * with rank ids below `limit`? All are rank ids. limit TOK_NO_TOKEN: use all merges.
 */
bool tok_bpe_pair_stands(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit);

/* tok_bpe_pair_stands() with all merges, using the thread's cache. */
static inline bool
tok_bpe_stands(struct tok_cache *c, const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	uint64_t key = (uint64_t)left << 21 | right, *slot;
	bool stands;

	if (c == NULL)
		return tok_bpe_pair_stands(v, left, right, TOK_NO_TOKEN);
	slot = tok_cache_pair(c, left, right);
	/* Free slots hold 0, which is also the key of two zero bytes: that pair is never cached. */
	if (*slot >> 1 == key && key != 0)
		return *slot & 1;
	stands = tok_bpe_pair_stands(v, left, right, TOK_NO_TOKEN);
	*slot = key << 1 | stands;
	return stands;
}

/* Longest pretoken for tok_bpe_whole, which has memory for this length on the stack. */
#define TOK_WHOLE_MAX TOK_CARRY_MAX

/*
 * Append the outside ids of a pretoken of n bytes. Returns the next free id; NULL, with nothing
 * written: it takes too many steps in this way. c may be NULL.
 */
uint32_t *tok_bpe_whole(struct tok_cache *c, const struct tok_vocab *v, const uint8_t *p,
	uint32_t n, uint32_t *ids);

/* Discard the open pretoken: the next byte begins a new one. */
void tok_bpe_open(struct tok_stream *s);

/* Append bytes to the open pretoken. False: the ids of more than TOK_CARRY_MAX bytes are uncertain.
 */
bool tok_bpe_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids);

/* Release the ids of the open pretoken that no later byte can change. Returns the next free id. */
uint32_t *tok_bpe_release(struct tok_stream *s, uint32_t *ids);

/*
 * The same, but test at most n_pairs pairs of tokens. With too few, positions are treated as still
 * growing: fewer ids, all certain.
 */
uint32_t *tok_bpe_release_within(struct tok_stream *s, uint32_t n_pairs, uint32_t *ids);

/* Drop the first n bytes of the open pretoken, whose ids are certain and released. */
void tok_bpe_drop(struct tok_stream *s, uint32_t n);

/* End the pretoken: release all its ids, and open the next one. */
uint32_t *tok_bpe_close(struct tok_stream *s, uint32_t *ids);
