/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words made by someone who knows the hash and its key: colliding VOCAB N SAME. Prints N words;
 * with SAME 1 all fall into one set of the learned table, with 0 they are as they come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encode/cache.h"

int
main(int argc, char **argv)
{
	const uint32_t n = argc == 4 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	const void *first = NULL;
	struct tok_error err;
	struct tok_vocab *v = n > 0 ? tok_vocab_load(argv[1], NULL, &err) : NULL;
	struct tok_cache *c = v != NULL ? tok_cache_create(v, 0, NULL) : NULL;

	if (c == NULL)
		return 2;
	for (uint32_t i = 0, found = 0; found < n; i++) {
		uint8_t word[16] = " ";
		uint64_t key[2], x = (i + 1) * 0x9e3779b97f4a7c15ull;

		for (uint32_t k = 1; k < 10; k++, x = x >> 5 | x << 59)
			word[k] = (uint8_t)('a' + x % 26);
		tok_cache_key(key, word, 10);
		if (first != NULL && argv[3][0] == '1' && tok_cache_set(c, key) != first)
			continue;
		first = tok_cache_set(c, key);
		fputs((char *)word, stdout);
		found++;
	}
	tok_cache_free(c);
	tok_vocab_free(v);
	return 0;
}
