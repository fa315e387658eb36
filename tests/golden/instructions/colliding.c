/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words made by someone who knows the hash and its key: colliding VOCAB N LETTERS SAME. Prints N
 * words of a blank and LETTERS letters, at most 62; with SAME 1 all fall into one set of the
 * learned table for their length, with 0 they are as they come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encode/cache.h"

#define LETTERS_MAX 62u

/* Where the word is learned. The bytes behind it are 0. */
static const void *
set_of(const struct tok_cache *c, const uint8_t *word, uint32_t len)
{
	uint64_t key[2];

	if (len > TOK_CACHE_SHORT)
		return tok_cache_long_set(c, word, len).way;
	tok_cache_key(key, word, len);
	return tok_cache_set(c, key);
}

int
main(int argc, char **argv)
{
	const uint32_t n = argc == 5 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	const uint32_t letters = argc == 5 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	const void *first = NULL;
	struct tok_error err;
	struct tok_vocab *v =
		n > 0 && letters <= LETTERS_MAX ? tok_vocab_load(argv[1], NULL, &err) : NULL;
	struct tok_cache *c = v != NULL ? tok_cache_create(v, 0, NULL) : NULL;

	if (c == NULL)
		return 2;
	for (uint32_t i = 0, found = 0; found < n; i++) {
		uint8_t word[1 + LETTERS_MAX + 16] = " ";
		uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull;

		for (uint32_t k = 1; k <= letters; k++, x = x >> 5 | x << 59)
			word[k] = (uint8_t)('a' + x % 26);
		if (first != NULL && argv[4][0] == '1' && set_of(c, word, 1 + letters) != first)
			continue;
		first = set_of(c, word, 1 + letters);
		fputs((char *)word, stdout);
		found++;
	}
	tok_cache_free(c);
	tok_vocab_free(v);
	return 0;
}
