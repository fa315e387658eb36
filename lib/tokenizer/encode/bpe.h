/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte pair encoding of one pretoken, three ways that must agree: bpe_merge.c applies the merges to
 * a short pretoken that is there as a whole; bpe_whole.c looks for the tokens of a longer one;
 * bpe_stream.c takes it byte by byte.
 */
#ifndef TOK_BPE_H
#define TOK_BPE_H

#include "vocab.h"

#define TOK_MERGE_MAX 24 /* longest pretoken tok_bpe_merge takes; its cost is quadratic */

struct tok_bpe_word {
	const uint8_t *p; /* its bytes */
	uint32_t n;	  /* 1 to TOK_MERGE_MAX */
	uint32_t n_out;
	uint32_t out[TOK_MERGE_MAX]; /* rank ids */
};

/* Encode n words by merging: p and n of each are given, n_out and out are filled in. */
void tok_bpe_merge(const struct tok_vocab *v, struct tok_bpe_word *w, uint32_t n);

/*
 * Would BPE, given the bytes of these two tokens alone and only the merges below rank id `limit`,
 * leave them side by side? Rank ids. TOK_NO_TOKEN as limit: all merges.
 */
bool tok_bpe_pair_stands(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit);

/* Longest pretoken tok_bpe_whole takes: it has memory for that on the stack. */
#define TOK_WHOLE_MAX TOK_CARRY_MAX

/*
 * Append the outside ids of a pretoken of n bytes. Returns the next free id; NULL, with nothing
 * written: it takes too many steps in this way. c may be NULL.
 */
uint32_t *tok_bpe_whole(struct tok_cache *c, const struct tok_vocab *v, const uint8_t *p,
	uint32_t n, uint32_t *ids);

/* Forget the open pretoken: the next byte begins one. */
void tok_bpe_open(struct tok_stream *s);

/* Append bytes to the open pretoken. False: more than TOK_CARRY_MAX bytes are uncertain. */
bool tok_bpe_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids);

/* Give out the ids of the open pretoken that no later byte can change. Returns the next free id. */
uint32_t *tok_bpe_release(struct tok_stream *s, uint32_t *ids);

/*
 * The same, but at most n_pairs pairs of tokens are looked at. With fewer than it takes, positions
 * from which any token goes on pass for such that one may still grow from: fewer ids, all certain.
 */
uint32_t *tok_bpe_release_within(struct tok_stream *s, uint32_t n_pairs, uint32_t *ids);

/* The pretoken ends here: give out all its ids, and open the next. */
uint32_t *tok_bpe_close(struct tok_stream *s, uint32_t *ids);

#endif
