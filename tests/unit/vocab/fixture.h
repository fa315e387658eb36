/* SPDX-License-Identifier: BSD-3-Clause */
/* A small vocabulary in each format, and a folder to put its files in. */
#pragma once

#include <jansson.h>

#include "test.h"
#include "build/model.h"

/* Ids 0-255 are the bytes, then "he", "ll", "hell", " w"; 260 is the special token. */
#define SMALL_RANKS 260
#define SMALL_SPECIAL "<|endoftext|>"

/* cmocka's setup and teardown: *state is the path of an empty folder. */
int folder_make(void **state);
int folder_remove(void **state);
#define FOLDER_TEST(name) TEST_WITH(name, folder_make, folder_remove)

/* Write folder/name; its path, good until the next but seven calls. */
const char *put_file(void **state, const char *name, const void *data, size_t n);
const char *put_text(void **state, const char *name, const char *text);
const char *put_json(void **state, const char *name, json_t *document); /* takes the reference */

/* The small vocabulary, for the test to change. */
json_t *small_tokenizer_json(void);
json_t *small_vocab_json(void);
extern const char small_merges[];
char *small_tiktoken(void); /* the caller frees; the format has no special tokens */

/* Byte-level text of one byte, to out (NUL-terminated). */
void byte_text(uint8_t byte, char out[3]);

/* Put `value` (JSON text; NULL: remove the key) at a path like "model.dropout". */
void set_at(json_t *document, const char *path, const char *value);

/* Loading `path` fails, in one line that begins with `vocab "` and says `says`. */
void assert_refused_as(const char *path, const char *pretokenizer, const char *says);
void assert_refused(const char *path, const char *says);
/* Loading `path` succeeds; the checksum of what it holds. */
uint32_t assert_loads(const char *path);

/* Blocks of just their size, so that a sanitizer sees a step beside them. */
extern const struct tok_mem plain_mem;
/*
 * Load `path` into the caller's memory, which has no block at first and then one more each time,
 * until it loads; `use` (may be NULL) is called with what was loaded. All memory is given back.
 */
void assert_memory_may_end(
	const char *path, void (*use)(const struct tok_vocab *v, const char *path));
