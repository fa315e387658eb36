/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "bpe.h"
#include "cache.h"

#define TOK_BLOCK 640	      /* most pretokens of a block */
#define TOK_BLOCK_MERGED 4096 /* room for the ids of those that are merged */
#define TOK_BLOCK_WORDS 192   /* that are merged together */

/* The caller fills in start[] and end; block.c uses the rest. */
struct tok_block {
	size_t start[TOK_BLOCK + 1]; /* offset of each pretoken */
	const size_t *end;	     /* [TOK_BLOCK] offset after each */
	/* Kernels write eight at a time. */
	_Alignas(64) uint64_t key[TOK_BLOCK + 8][2];
	_Alignas(64) struct tok_cache_entry *set[TOK_BLOCK + 8];
	_Alignas(64) const uint32_t *ids[TOK_BLOCK + 8]; /* see tok_cache_count() */
	uint32_t slot[TOK_BLOCK]; /* in a table of words; number of ids of one that was left */
	struct tok_block_one {
		uint32_t head, id;
	} one[TOK_BLOCK + TOK_CACHE_SOME / 2];		 /* a pretoken that is one token */
	uint16_t missed[TOK_BLOCK + 8], left[TOK_BLOCK]; /* indices: not cached; not a token */
	uint16_t second[TOK_BLOCK];			 /* in the second way of their sets */
	struct tok_bpe_word word[TOK_BLOCK_WORDS];	 /* to be merged */
	/* their ids; as many as TOK_CACHE_SOME are copied of each */
	uint32_t merged[TOK_BLOCK_MERGED + TOK_CACHE_SOME];
};

/*
 * Append the ids of the first n pretokens of a block, which lie in the text [p, end). Returns the
 * next free id, or NULL: more than TOK_CARRY_MAX bytes of a pretoken were uncertain.
 */
uint32_t *tok_block_encode(struct tok_stream *s, struct tok_block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end, uint32_t *ids);
