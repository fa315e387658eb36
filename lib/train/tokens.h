/* SPDX-License-Identifier: BSD-3-Clause */
/* Tokens by id, and ids by their text: special tokens, the alphabet, then what merges make. */
#pragma once

#include "words.h"

#define TRAIN_PREFIX "##" /* of a WordPiece token that continues a word */
#define TRAIN_PREFIX_BYTES 2u

struct train_token {
	uint64_t off;	/* of its text, UTF-8 */
	uint32_t len;	/* bytes */
	uint32_t chars; /* of a word that it stands for; a special token's are set if a merge makes
			   it */
};

struct train_tokens {
	struct train_token *token;
	uint32_t n, room;
	uint32_t n_special; /* the first n_special are special tokens */
	uint8_t *text;
	uint64_t n_text, room_text;
	uint64_t *slot; /* hash << 32 | id + 1; 0: free; at most half full */
	uint32_t mask;
	uint64_t seed[2];
};

bool train_tokens_init(struct train_tokens *t, struct tok_error *err);
void train_tokens_free(struct train_tokens *t);

/* Id of a text, or TOK_NO_TOKEN. */
uint32_t train_tokens_find(const struct train_tokens *t, const uint8_t *text, uint32_t len);

/* The same, but adds a missing text. TOK_NO_TOKEN: out of memory. */
uint32_t train_tokens_add(struct train_tokens *t, const uint8_t *text, uint32_t len);

/* Ids of characters. For byte-level BPE a character is a byte. */
struct train_alphabet {
	uint32_t *first; /* by character: at a word's beginning */
	uint32_t *later; /* after another character; equal to `first` except for WordPiece */
};

/*
 * Add special tokens and the alphabet in the reference's order: characters by code point, then
 * those with ## by code point (their order is random in the reference). If there are too many
 * characters, the rarest are dropped; of equally rare ones, the higher code points. On error
 * returns false and fills in *err.
 */
bool train_alphabet_make(struct train_alphabet *a, struct train_tokens *t,
	const struct tok_train_options *o, const struct train_words *w, struct tok_error *err);
void train_alphabet_free(struct train_alphabet *a);
