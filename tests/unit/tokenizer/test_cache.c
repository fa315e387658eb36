/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache: what is found are the ids that were learned for these bytes, whatever was learned
 * since, by the kernels of each instruction set and one by one.
 */

#include <stdlib.h>

#include "test.h"
#include "encode/block.h"
#include "isa/kernels.h"
#include "small_vocab.h"

#define WORDS 200
#define ROUNDS 3000

/* A word of few symbols, among them NUL, so that words differ in their ends and lengths. */
static uint32_t
random_word(uint64_t *seed, uint8_t *word, uint32_t max)
{
	const uint32_t len = 1 + small_random(seed, max);
	const uint8_t symbol[] = {0, 'c', 0xff};
	const uint32_t kinds = 1 + small_random(seed, 3);

	for (uint32_t i = 0; i < len; i++)
		word[i] = symbol[small_random(seed, kinds)];
	return len;
}

/* Its ids in this test. The vocabulary's tokens have their own, as the cache was made with them.
 * Returns their number. */
static uint32_t
ids_of(const struct tok_vocab *v, const uint8_t *word, uint32_t len, uint32_t *ids)
{
	uint64_t x = len;
	uint32_t n;

	if (len == 1) { /* the tokens of these symbols */
		ids[0] = v->ext[word[0]];
		return 1;
	}
	for (uint32_t i = 0; i < len; i++)
		x = x * 31 + word[i] + 1;
	n = 1 + (uint32_t)(x % len);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = (uint32_t)(x + i * i) & 0x1fffff;
	return n;
}

static void
check_ids(const struct tok_vocab *v, const uint8_t *word, uint32_t len, const uint32_t *found)
{
	uint32_t want[TOK_CACHE_LONG];
	const uint32_t n = ids_of(v, word, len, want);

	assert_int_equal(tok_cache_count(found), n);
	assert_memory_equal(found, want, n * sizeof(*want));
}

/* Find all words of a text by a kernel; each may be missed only if it is missed one by one, or in
 * the second way of its set, from which it moves to the first. */
static void
check_block(const struct tok_vocab *v, const struct tok_kernels *k, const struct tok_cache *c,
	const uint8_t *text, const size_t *start, uint32_t n)
{
	/* Allocated, so that a sanitizer sees what is read beyond the text. */
	uint8_t *const p = malloc(start[n]);
	static struct tok_block b;
	uint32_t missed, m = 0;

	assert_non_null(p);
	memcpy(p, text, start[n]);
	memcpy(b.start, start, (n + 1) * sizeof(*start));
	b.end = b.start + 1;
	missed = k->find(c, &b, n, p, p + start[n]);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len = (uint32_t)(start[i + 1] - start[i]);
		const bool short_one = len <= TOK_CACHE_SHORT;
		uint8_t word[TOK_CACHE_LONG] = {0};

		memcpy(word, text + start[i], len);
		if (m < missed && b.missed[m] == i) {
			const uint32_t *found = tok_cache_word(c, word, len).from;

			m++;
			if (!short_one || found == NULL)
				continue;
			assert_ptr_equal(found, b.set[i][1].id);
			check_ids(v, word, len, found);
		} else {
			assert_true(short_one);
			check_ids(v, word, len, b.ids[i]);
		}
	}
	assert_int_equal(m, missed);
	for (m = 0; m < missed; m++) {
		const uint32_t i = b.missed[m], len = (uint32_t)(start[i + 1] - start[i]);

		if (len > TOK_CACHE_SHORT || tok_cache_find(b.set[i], b.key[i]) == NULL)
			continue;
		tok_cache_promote(b.set[i], b.key[i]);
		assert_ptr_equal(tok_cache_find(b.set[i], b.key[i]), b.set[i]->id);
		check_ids(v, text + start[i], len, b.set[i]->id);
	}
	free(p);
}

TEST(finds_what_was_learned)
{
	static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};
	struct small_vocab sv;
	uint64_t seed = 3;

	small_vocab_make(&sv, &seed, "ab", 4);
	for (uint32_t entries = 1; entries <= 4096; entries *= 64) {
		struct tok_cache *c = tok_cache_create(sv.v, entries, NULL);

		assert_non_null(c);
		for (uint32_t round = 0; round < ROUNDS; round++) {
			static uint8_t text[WORDS * TOK_CACHE_LONG];
			const uint32_t n = 1 + small_random(&seed, WORDS);
			const uint32_t max = small_random(&seed, 8) == 0 ? TOK_CACHE_LONG : 20;
			size_t start[WORDS + 1] = {0};

			for (uint32_t i = 0; i < n; i++) {
				uint32_t ids[TOK_CACHE_LONG], n_ids;
				uint8_t word[TOK_CACHE_LONG] = {0};
				const uint32_t len = random_word(&seed, word, max);
				struct tok_cache_ids found = tok_cache_word(c, word, len);

				memcpy(text + start[i], word, len);
				start[i + 1] = start[i] + len;
				if (found.from != NULL) {
					check_ids(sv.v, word, len, found.from);
					continue;
				}
				n_ids = ids_of(sv.v, word, len, ids);
				tok_cache_learn_word(c, word, len, ids, n_ids);
				found = tok_cache_word(c, word, len);
				if (n_ids <= (len <= TOK_CACHE_SHORT ? TOK_CACHE_SHORT_IDS
								     : TOK_CACHE_LONG_IDS))
					check_ids(sv.v, word, len, found.from);
				else
					assert_null(found.from);
			}
			for (uint32_t i = 0; i < 4; i++) {
				const struct tok_kernels *k;
				struct tok_error err;

				setenv("TOK_ISA", sets[i], 1);
				k = tok_kernels_choose(&err);
				if (k != NULL)
					check_block(sv.v, k, c, text, start, n);
				else if (round == 0)
					print_message("# not tested: %s\n", err.text);
			}
		}
		tok_cache_free(c);
	}
	unsetenv("TOK_ISA");
	small_vocab_free(&sv);
}
