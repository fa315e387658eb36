/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that are cut, damaged or spliced: each load ends, with a vocabulary or with one line of
 * UTF-8 that says why not. Under the sanitizers this also says that nothing leaks or is read beyond
 * its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mix.h>
#include "fixture.h"

#define ROUNDS 700

static uint64_t seed = 1;

static size_t
below(size_t n)
{
	return (size_t)(dice_throw(&seed) % n);
}

/* Damage a copy of text[0 .. *n), with room for twice as much. */
static void
damage(char *text, size_t *n)
{
	static const char likely[] = "0123456789\"{}[],: \n\\\xc4\xa0\xff-.ne=AZ";
	size_t times = 1 + below(4), at, len;

	while (times-- > 0 && *n > 0) {
		at = below(*n);
		switch (below(5)) {
		case 0: /* cut */
			*n = at;
			break;
		case 1: /* another byte */
			text[at] = (char)below(256);
			break;
		case 2: /* a byte that means something */
			text[at] = likely[below(sizeof(likely) - 1)];
			break;
		case 3: /* a part is missing */
			len = 1 + below(*n - at < 40 ? *n - at : 40);
			memmove(text + at, text + at + len, *n - at - len);
			*n -= len;
			break;
		case 4: /* a part is there twice */
			len = 1 + below(*n - at < 40 ? *n - at : 40);
			memmove(text + at + len, text + at, *n - at);
			*n += len;
			break;
		}
	}
}

static void
assert_survives(const char *path)
{
	const struct tok_load_opts opts = {.pretokenizer = "gpt2"};
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(path, &opts, &err);
	size_t len;

	if (v != NULL) {
		tok_vocab_free(v);
		return;
	}
	len = strnlen(err.text, sizeof(err.text));
	assert_true(len > 0 && len < sizeof(err.text));
	assert_null(strchr(err.text, '\n'));
	json_t *utf8 = json_stringn(err.text, len); /* refuses what is not UTF-8 */
	assert_non_null(utf8);
	json_decref(utf8);
}

static void
damage_and_load(void **state, const char *file, const char *whole, const char *load)
{
	size_t size = strlen(whole);
	char *text = malloc(2 * size + 256);

	assert_non_null(text);
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = size;
		const char *path;

		memcpy(text, whole, size);
		damage(text, &n);
		path = put_file(state, file, text, n);
		assert_survives(load != NULL ? load : path);
	}
	free(text);
}

FOLDER_TEST(damaged_tokenizer_json)
{
	json_t *document = small_tokenizer_json();
	char *text = json_dumps(document, JSON_COMPACT);

	json_decref(document);
	damage_and_load(state, "a.json", text, NULL);
	free(text);
}

FOLDER_TEST(damaged_vocab_json)
{
	json_t *document = small_vocab_json();
	char *text = json_dumps(document, JSON_COMPACT);

	json_decref(document);
	put_text(state, "merges.txt", small_merges);
	damage_and_load(state, "vocab.json", text, NULL);
	free(text);
}

FOLDER_TEST(damaged_merges_txt)
{
	char path[256];

	put_json(state, "vocab.json", small_vocab_json());
	snprintf(path, sizeof(path), "%s/vocab.json", (char *)*state);
	damage_and_load(state, "merges.txt", small_merges, path);
}

FOLDER_TEST(damaged_tiktoken)
{
	char *text = small_tiktoken();

	damage_and_load(state, "a.tiktoken", text, NULL);
	free(text);
}

FOLDER_TEST(noise)
{
	static const char *const names[] = {"a.json", "vocab.json", "merges.txt", "a.tiktoken"};
	char text[600];

	put_text(state, "merges.txt", small_merges);
	for (int i = 0; i < 200; i++) {
		size_t n = below(sizeof(text));
		const char *path;

		for (size_t k = 0; k < n; k++)
			text[k] = (char)below(256);
		path = put_file(state, names[i % 4], text, n);
		assert_survives(path);
	}
}
