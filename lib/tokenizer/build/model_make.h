/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by loaders: create a model, find a token by its bytes. */
#pragma once

#include <assert.h>

#include "files.h"
#include "model.h"

/* Allocate room for this many tokens, bytes of tokens, and merges. */
bool tok_model_init(struct tok_model *m, uint32_t n_tokens, size_t n_bytes, uint32_t n_merges,
	struct tok_error *err);
/* Add a token. There must be room for it, and the id must be free. */
void tok_model_put(
	struct tok_model *m, uint32_t id, const uint8_t *bytes, uint32_t len, bool special);

/* Append a merge. There must be room for it. */
static inline void
tok_model_put_merge(struct tok_model *m, uint32_t left, uint32_t right, uint32_t result)
{
	m->merge[m->n_merges] = (struct tok_model_merge){left, right, result, m->n_merges};
	m->n_merges++;
}

/* Make `text` one line of valid UTF-8, even if it was cut inside a character. */
void tok_make_printable(char *text);

/*
 * Hashes for tables whose keys a file chooses. Without the seed nobody can choose keys that
 * collide, which would make building a table quadratic.
 */
struct tok_hash_seed {
	uint64_t first, second;
};

/* A random seed. False: the kernel gives none. */
bool tok_hash_seed(struct tok_hash_seed *seed);

/* The halves of a 128-bit product are combined, as in Wang Yi's wyhash. */
static inline uint64_t
tok_hash_mix(uint64_t x, struct tok_hash_seed seed)
{
	const unsigned __int128 product = (unsigned __int128)(x ^ seed.first) * seed.second;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint32_t tok_hash_bytes(struct tok_hash_seed seed, const uint8_t *p, uint32_t len);

/*
 * Add the steps to find the merges of a token of this many bytes, len * len, to *work. False: more
 * than a file may ask for.
 */
bool tok_model_add_work(uint64_t *work, uint32_t len, struct tok_error *err);

/* Ids by bytes: open addressing over the tokens of a model, short ones without a look at these. */
struct tok_index_slot {
	uint64_t first; /* up to eight bytes of the token, zero-padded */
	uint32_t next;	/* id + 1; 0: free */
	uint16_t len, hash;
};
static_assert(TOK_MAX_TOKEN_BYTES <= UINT16_MAX, "a length");

struct tok_index {
	const struct tok_model *m;
	struct tok_index_slot *slot;
	uint32_t mask;
	struct tok_hash_seed seed;
};

bool tok_index_init(struct tok_index *x, const struct tok_model *m, struct tok_error *err);
void tok_index_free(struct tok_index *x);
/* Id of the token with these bytes that is not special, or TOK_NO_TOKEN. */
uint32_t tok_index_find(const struct tok_index *x, const uint8_t *bytes, uint32_t len);
/*
 * Add a token of the model. False if its bytes are there already. A token that is special or
 * `outside` is skipped, and the result is true.
 */
bool tok_index_add(struct tok_index *x, uint32_t id);
