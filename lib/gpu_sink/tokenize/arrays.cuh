/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the phases of encoding a text share, in tokg_text.scratch. A chunk is TOKG_CHUNK bytes of
 * text; bit i of a chunk's word is its byte i.
 */
#pragma once

#include "block/block.cuh"
#include "text.h"
#include "vocab.h"

/* A pretoken that is not one token. */
struct tokg_merge_job {
	uint32_t at, len;
};

/*
 * `id` is the result: at the first byte of each token its id, elsewhere TOK_NO_TOKEN; or at other
 * bytes, in the same order (wordpiece.cuh). A token has at least one byte, so there is room for
 * all.
 */
struct tokg_arrays {
	uint32_t n_chunks;
	uint32_t most_words;
	uint32_t *
		n_words; /* [2]: in word[], counted by all threads; from the front, from the back */
	/* by byte */
	uint32_t *id;
	uint32_t *key;		     /* of merges (bpe.cuh) */
	struct tokg_merge_job *word; /* half as many: they have two bytes at least */
	uint16_t *after, *before;    /* the next and the previous part of a word */
	uint8_t *of_class;	     /* where a character begins: its class (tok_vocab.cat) */
	/* by chunk (pretokens.cuh) */
	uint32_t *border; /* pretokens begin here */
	uint32_t *more, *leave, *meet, *enter, *live;
	uint32_t *leap; /* [2][n_chunks] */
};

static_assert(TOKG_CHUNK == 32, "a bit of a word for each byte of a chunk");

TOKG_DEV struct tokg_arrays
tokg_arrays_of(const struct tokg_text *t)
{
	const uint32_t chunks = (t->n + TOKG_CHUNK - 1) / TOKG_CHUNK, n = chunks * TOKG_CHUNK;
	uint32_t *const w = (uint32_t *)(void *)t->scratch;
	uint32_t *const of_chunk = w + 16;
	struct tokg_arrays a;

	a.n_chunks = chunks;
	a.most_words = n / 2;
	a.n_words = w;
	a.border = of_chunk;
	a.more = of_chunk + chunks;
	a.leave = of_chunk + 2 * chunks;
	a.meet = of_chunk + 3 * chunks;
	a.enter = of_chunk + 4 * chunks;
	a.live = of_chunk + 5 * chunks;
	a.leap = of_chunk + 6 * chunks;
	a.id = of_chunk + 8 * chunks;
	a.key = a.id + n;
	a.word = (struct tokg_merge_job *)(void *)(a.key + n);
	a.after = (uint16_t *)(void *)(a.word + n / 2);
	a.before = a.after + n;
	a.of_class = (uint8_t *)(a.before + n);
	return a;
}

/* Index of the lowest bit that is set. */
TOKG_DEV uint32_t
tokg_lowest(uint32_t bits)
{
#ifdef __CUDA_ARCH__
	return (uint32_t)__ffs((int)bits) - 1;
#else
	return (uint32_t)__builtin_ctz(bits);
#endif
}
