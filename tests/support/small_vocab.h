/* SPDX-License-Identifier: BSD-3-Clause */
/* Small vocabularies made by the tests, and BPE straight from its definition. */
#pragma once

#include "build/model.h"
#include "vocab.h"

#define SMALL_MERGES_MAX 128
#define SMALL_BYTES_MAX 48 /* of one token */

struct small_vocab {
	uint32_t n; /* 256 bytes and the merges; id == rank id */
	uint32_t len[256 + SMALL_MERGES_MAX];
	uint8_t bytes[256 + SMALL_MERGES_MAX][SMALL_BYTES_MAX];
	uint32_t left[256 + SMALL_MERGES_MAX], right[256 + SMALL_MERGES_MAX];
	struct tok_vocab *v;
};

/* Deterministic random numbers. */
uint32_t small_random(uint64_t *state, uint32_t below);

/* Added tokens of all kinds and a template for a model, whose lists are on the heap. */
void small_added(struct tok_model *m);

/* 256 bytes and up to n_merges merges whose tokens spell strings over `alphabet`. */
void small_vocab_make(
	struct small_vocab *sv, uint64_t *seed, const char *alphabet, uint32_t n_merges);

enum small_flags {
	SMALL_NFC = 1 << 0,
	SMALL_WHOLE = 1 << 1,  /* ignore_merges */
	SMALL_GREEDY = 1 << 2, /* not what small_encode defines */
	SMALL_ADDED = 1 << 3,  /* added tokens of all kinds, and a template */
};

/* The same with another pretokenizer and other ways. */
void small_vocab_of(struct small_vocab *sv, uint64_t *seed, const char *alphabet, uint32_t n_merges,
	enum tok_pretok pretok, enum small_flags flags);
void small_vocab_free(struct small_vocab *sv);

/* WordPiece with n tokens, of which [0] is the unknown one; "": no token has this id. */
struct tok_vocab *small_wordpiece(
	const char *const *token, uint32_t n, const struct tok_model_bert *options);

/*
 * Unigram with n pieces, of which [0] is the unknown one and `score` has their scores, and added
 * tokens of all kinds if asked for, with `sentencepiece` some of the pieces; of *options the score
 * and the map are taken from elsewhere.
 */
struct tok_vocab *small_unigram(const char *const *piece, const double *score, uint32_t n,
	const struct tok_model_unigram *options, bool added);

/*
 * A map of characters, to nothing, blanks, or more; with `whole` only of whole ones, of which one
 * is the beginning of a longer key. Its bytes to `bytes`, how many of them are the trie to *trie.
 */
#define SMALL_MAP_BYTES 5376
size_t small_map(uint8_t *bytes, size_t *trie, bool whole);

/* The definition: least rank first, leftmost among equals. Returns the number of ids. */
uint32_t small_encode(const struct small_vocab *sv, const uint8_t *p, uint32_t n, uint32_t *out);
