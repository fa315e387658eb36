/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Someone who knows the source, the vocabulary and even the key of the hashes makes a text. The
 * tables of pairs, of growth and of guesses can then be made useless, and no worse than that. What
 * is counted are checks of pairs, of which all cost of encoding byte by byte is made.
 * golden/instructions/test_instructions.py has the same for the tables of pretokens.
 */
#include <stdlib.h>

#include "test.h"
#include "encode/bpe.h"
#include "small_vocab.h"

#define BYTES 1024u
#define KNOWN_KEY 0x9e3779b97f4a7c15ull
#define OTHER_KEY 0xd6e8feb86659fd93ull
#define ONE_SLOT 0u /* a key that sends everything to one slot: no text is worse with any other */

static uint64_t checks;

bool __real_tok_bpe_pair_stands(
	const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit);
bool __wrap_tok_bpe_pair_stands(
	const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit);

bool
__wrap_tok_bpe_pair_stands(const struct tok_vocab *v, uint32_t left, uint32_t right, uint32_t limit)
{
	checks++;
	return __real_tok_bpe_pair_stands(v, left, right, limit);
}

/* Of linear cost. */
#define SHORT_TEXT (1u << 16)
#define LONG_TEXT (1u << 24)

static struct tok_cache *
cache_with(const struct tok_vocab *v, uint64_t key)
{
	struct tok_cache *c = tok_cache_create(v, 1, NULL);

	assert_non_null(c);
	c->seed[0] = key;
	return c;
}

/* Take a byte of a pretoken, and release what is certain. Returns the checks. */
static uint64_t
take(struct tok_stream *s, uint8_t byte)
{
	const uint64_t before = checks;
	uint32_t ids[3 * TOK_CARRY_MAX], *next = ids;

	assert_true(tok_bpe_push(s, &byte, 1, &next));
	tok_bpe_release(s, next);
	return checks - before;
}

/* Checks of a text the second time. */
static uint64_t
checks_again(const struct tok_vocab *v, struct tok_cache *c, const uint8_t *text, uint32_t n)
{
	uint64_t all = 0;

	for (uint32_t twice = 0; twice < 2; twice++) {
		struct tok_stream s;

		all = 0;
		tok_stream_init(&s, v, c, 0);
		for (uint32_t i = 0; i < n; i++)
			all += take(&s, text[i]);
	}
	return all;
}

static uint64_t
checks_with_key(const struct tok_vocab *v, uint64_t key, const uint8_t *text)
{
	struct tok_cache *c = cache_with(v, key);
	const uint64_t found = checks_again(v, c, text, BYTES);

	tok_cache_free(c);
	return found;
}

static void
random_period(uint64_t *seed, const char *letters, uint8_t *text)
{
	const uint32_t period = 1 + small_random(seed, 24);

	for (uint32_t i = 0; i < BYTES; i++)
		text[i] = i < period ? (uint8_t)letters[small_random(seed, 4)] : text[i - period];
}

/* A text that repeats what evicts itself: of many, the one that costs most again. */
static void
craft(const struct tok_vocab *v, const char *letters, uint64_t *seed, uint8_t *text)
{
	struct tok_cache *c = cache_with(v, KNOWN_KEY);
	uint64_t most = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		uint8_t tried[BYTES];
		uint64_t found;

		random_period(seed, letters, tried);
		found = checks_again(v, c, tried, 128);
		if (found >= most) {
			most = found;
			memcpy(text, tried, BYTES);
		}
	}
	tok_cache_free(c);
}

TEST(crafted_text_can_only_evict)
{
	uint64_t seed = 7, with_known = 0, with_other = 0;

	for (int round = 0; round < 16; round++) {
		struct small_vocab sv;
		uint8_t text[BYTES];
		uint64_t known, bare;

		small_vocab_make(&sv, &seed, "abcd", SMALL_MERGES_MAX);
		craft(sv.v, "abcd", &seed, text);
		known = checks_with_key(sv.v, KNOWN_KEY, text);
		bare = checks_again(sv.v, NULL, text, BYTES);
		with_known += known;
		with_other += checks_with_key(sv.v, OTHER_KEY, text);
		/* No text evicts more than all, and then a byte takes what it takes without tables,
		 * and a look at a guess. */
		assert_true(known <= bare);
		assert_true(checks_with_key(sv.v, ONE_SLOT, text) <= bare + BYTES);
		random_period(&seed, "abcd", text);
		bare = checks_again(sv.v, NULL, text, BYTES);
		assert_true(checks_with_key(sv.v, ONE_SLOT, text) <= bare + BYTES);
		small_vocab_free(&sv);
	}
	assert_true(with_known > 16 * BYTES / 4); /* it hits, and the key was needed for it */
	assert_true(with_other < with_known / 8);
}

/* Feed a text in packets, or whole if packet is 0. Returns the checks. */
static uint64_t
checks_of(const struct tok_vocab *v, struct tok_cache *c, const uint8_t *text, size_t n,
	size_t packet, uint32_t *ids)
{
	const uint64_t before = checks;
	struct tok_stream s;

	tok_stream_init(&s, v, c, 0);
	for (size_t at = 0, some; at < n; at += some) {
		some = packet == 0 || packet > n - at ? n - at : packet;
		assert_int_equal(tok_stream_feed(&s, text + at, some, at + some == n, ids,
					 n + TOK_STREAM_HELD_MAX)
					 .status,
			TOK_OK);
	}
	return checks - before;
}

TEST(cost_is_linear_to_16_mb_and_no_higher_the_second_time)
{
	static const char *const letters[] = {"a", "abcd"};
	uint8_t *text = malloc(LONG_TEXT);
	uint32_t *ids = malloc((LONG_TEXT + TOK_STREAM_HELD_MAX) * sizeof(*ids));
	uint64_t seed = 8;
	struct small_vocab sv;

	assert_non_null(text);
	assert_non_null(ids);
	small_vocab_make(&sv, &seed, "abcd", SMALL_MERGES_MAX);
	for (uint32_t i = 0; i < 4; i++) {
		const size_t packet = i < 2 ? 0 : 1400;
		struct tok_cache *c = cache_with(sv.v, OTHER_KEY);
		const uint32_t kinds = (uint32_t)strlen(letters[i % 2]);
		uint64_t first;

		for (size_t k = 0; k < LONG_TEXT; k++)
			text[k] = (uint8_t)letters[i % 2][small_random(&seed, kinds)];
		first = checks_of(sv.v, c, text, SHORT_TEXT, packet, ids);
		assert_true(checks_of(sv.v, c, text, SHORT_TEXT, packet, ids) <= first);
		c->seed[0] = ONE_SLOT; /* so that each check counts */
		first = checks_of(sv.v, c, text, SHORT_TEXT, packet, ids);
		/* 1% more: random letters differ. */
		assert_true(checks_of(sv.v, c, text, LONG_TEXT, packet, ids) <=
			    (first + first / 100) * (LONG_TEXT / SHORT_TEXT));
		tok_cache_free(c);
	}
	small_vocab_free(&sv);
	free(text);
	free(ids);
}
