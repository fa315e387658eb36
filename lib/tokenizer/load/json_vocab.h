/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tokenizer.json and vocab.json: a JSON object of text to id, and merges. Set-up only. */
#pragma once

#include <string.h>

#include "build/model_make.h"
#include "json_tree.h"

/*
 * A file. The large parts of a tokenizer.json are cut out of it before it is parsed: model.vocab if
 * it is an object, and model.merges if it is a list. In `root` they are empty.
 */
struct tok_json_file {
	const char *shown; /* its name in errors */
	char *text;
	struct tok_json_tree tree;
	const struct tok_json *root; /* of the tree */
	char *rest;		     /* what the tree points into */
	char *vocab, *merges;	     /* in the text; NULL: not cut out */
	const char *merges_end;
};

/* Parse a file's text: `size` bytes, then a NUL, which is freed at the end. False with *err filled
 * in: nothing to close. Duplicate keys are an error. */
bool tok_json_open_text(
	struct tok_json_file *f, const char *shown, char *text, size_t size, struct tok_error *err);
void tok_json_close_file(struct tok_json_file *f);

/* Report t->why with its line in the text. Returns false. */
bool tok_json_fail(
	const char *file, const char *text, const struct tok_json_text *t, struct tok_error *err);

/* An entry of a vocabulary. `text` ends with a NUL. */
struct tok_json_entry {
	const char *text;
	uint32_t len, id;
};

/* Ids by text: the entries in the file's order, and a hash table of them. */
struct tok_json_vocab {
	struct tok_json_entry *entry;
	uint32_t n, room;
	uint64_t *slot; /* an entry's hash << 32 | its index + 1; 0: free */
	uint32_t mask;
	struct tok_hash_seed seed;
	uint32_t n_ids; /* the largest id + 1 */
	size_t bytes;	/* of all texts */
};

/*
 * Read the object at `p`, in the text that begins at `text` (to name lines). Texts have at most
 * `most` bytes and differ. Texts stay where they are: the file's text must outlive the vocabulary.
 * `end`: the object must end here, or before white space; or NULL. False with *err filled in; the
 * vocabulary must be freed either way.
 */
bool tok_json_vocab_read(struct tok_json_vocab *x, const char *file, const char *text, char *p,
	uint32_t most, const char *end, struct tok_error *err);

/* Add an entry. False: no memory. */
bool tok_json_vocab_add(
	struct tok_json_vocab *x, const char *file, struct tok_json_entry e, struct tok_error *err);

/* Make the hash table, after the last entry. False: two texts are equal, or no memory. */
bool tok_json_vocab_index(struct tok_json_vocab *x, const char *file, struct tok_error *err);

/* The entry with this text, or NULL. */
const struct tok_json_entry *tok_json_vocab_find(
	const struct tok_json_vocab *x, const char *text, size_t len);

void tok_json_vocab_free(struct tok_json_vocab *x);

/* An added token. */
struct tok_json_added {
	uint32_t id;
	uint32_t what;
	const char *text;
};

/*
 * Create m's tokens from the vocabulary, with room for n_merges. Add the tokens of added[] that are
 * special, or not in the vocabulary as byte-level text. `file` is named in errors.
 */
bool tok_json_tokens(const char *file, const struct tok_json_vocab *vocab,
	const struct tok_json_added *added, size_t n_added, uint32_t n_merges, struct tok_model *m,
	struct tok_error *err);

/* A merge: its result's text, of which the first `left` bytes are its left part. */
struct tok_json_merge {
	const char *text;
	uint32_t left, len;
};

/*
 * The merge of the left_len bytes at `left` and the right_len bytes at `right`, further on in the
 * same text: the left part is moved to the right one.
 */
static inline struct tok_json_merge
tok_json_join(char *left, size_t left_len, char *right, size_t right_len)
{
	memmove(right - left_len, left, left_len);
	return (struct tok_json_merge){
		right - left_len, (uint32_t)left_len, (uint32_t)(left_len + right_len)};
}

#define TOK_JSON_MERGES 32u /* looked up at a time */

/*
 * Append up to TOK_JSON_MERGES merges. `where` and their numbers, the first of which is `number`,
 * are named in errors: "where number: ...".
 */
bool tok_json_merges(struct tok_model *m, const struct tok_json_vocab *vocab, const char *where,
	uint32_t number, const struct tok_json_merge *merge, uint32_t n, struct tok_error *err);
