/* SPDX-License-Identifier: BSD-3-Clause */
/* What loaders share: making a model, reading a file, finding a token by its bytes. */
#ifndef TOK_MODEL_MAKE_H
#define TOK_MODEL_MAKE_H

#include "model.h"

#define TOK_FILE_MAX ((size_t)256 << 20) /* largest file read */

/* Room for that many tokens, bytes of tokens, and merges. */
bool tok_model_init(struct tok_model *m, uint32_t n_tokens, size_t n_bytes, uint32_t n_merges,
	struct tok_error *err);
/* The caller has made sure of the room, and that the id is free. */
void tok_model_put(
	struct tok_model *m, uint32_t id, const uint8_t *bytes, uint32_t len, bool special);

/* Append a merge behind all others; there is room. */
static inline void
tok_model_put_merge(struct tok_model *m, uint32_t left, uint32_t right, uint32_t result)
{
	m->merge[m->n_merges] = (struct tok_model_merge){left, right, result, m->n_merges};
	m->n_merges++;
}

#define TOK_SHOWN_MAX 160 /* bytes of a path in an error */

/* One line of UTF-8, whatever a file's text holds and wherever it was cut. */
void tok_make_printable(char *text);

/* What errors call a file: its path, or the end of a long one, so that the reason still fits. */
const char *tok_shown_path(const char *path);

/* A whole file, NUL-terminated, for the caller to free; NULL with *err filled in. */
char *tok_read_file(const char *path, size_t *len, struct tok_error *err);

/* Ids by bytes: open addressing over the tokens of a model. */
struct tok_index {
	const struct tok_model *m;
	uint32_t *slot; /* id + 1; 0: free */
	uint32_t mask;
};

bool tok_index_init(struct tok_index *x, const struct tok_model *m, struct tok_error *err);
void tok_index_free(struct tok_index *x);
/* Id of the token with these bytes that is not special, or TOK_NO_TOKEN. */
uint32_t tok_index_find(const struct tok_index *x, const uint8_t *bytes, uint32_t len);
/*
 * Add a token of the model; false if its bytes are there already. What is special or `outside` is
 * left out: true.
 */
bool tok_index_add(struct tok_index *x, uint32_t id);

#endif
