/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of blocks: what the originators publish, however the ids are cut, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tokd/block_keys.h>

#include "test.h"

#define TEXT(s)                                                                                    \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}
#define N_IDS 300u

static void
check_hex(const uint8_t *bytes, size_t n, const char *expected)
{
	char hex[2 * 64 + 1];

	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(hex, expected);
}

static struct tokb *
make(struct tokb_options o)
{
	struct tokb_error err = {""};
	struct tokb *k = tokb_create(&o, &err);

	assert_string_equal(err.text, "");
	assert_non_null(k);
	return k;
}

/* Ids of one, two, three and five bytes. */
static const uint32_t *
some_ids(void)
{
	static uint32_t ids[N_IDS];

	for (uint32_t i = 0; i < N_IDS; i++)
		ids[i] = (i * 7919 + 13) % 152064;
	return ids;
}

/* llm-d-kv-cache, tests/e2e/uds_tokenizer: goldenRequestKeys, and goldenMMRequestKeys of the blocks
 * before the image. */
TEST(llm_d_has_its_published_keys)
{
	static const uint32_t granite[] = {8197, 438, 322, 18926, 432, 45600, 49};
	static const uint32_t qwen[] = {
		151644, 8948, 198, 2610, 525, 264, 10950, 17847, 13, 151645, 198, 151644};
	struct tokb_options o = {
		.block_size = 4, .model = TEXT("ibm-granite/granite-3.1-8b-instruct")};
	struct tokb *k = make(o);
	uint64_t keys[3];

	assert_int_equal(tokb_feed(k, granite, 7, keys), 1);
	assert_int_equal(keys[0], 1334984470577408192);
	tokb_free(k);

	o.model = (struct tokb_text)TEXT("Qwen/Qwen2-VL-2B-Instruct");
	k = make(o);
	assert_int_equal(tokb_feed(k, qwen, 12, keys), 3);
	assert_int_equal(keys[0], 0xc3bf05790f422f47);
	assert_int_equal(keys[1], 0xff0c0a9eb95b87cc);
	assert_int_equal(keys[2], 0x99550d577537f9f3);
	tokb_free(k);
}

/* What vLLM's own functions give, as Dynamo (lib/kv-router) publishes it for these ids. */
TEST(vllm_sha256_has_its_published_keys)
{
	struct tokb *k = make((struct tokb_options){TOKB_VLLM_SHA256_CBOR, .block_size = 128});
	uint8_t keys[2][32];

	assert_int_equal(tokb_feed(k, some_ids(), N_IDS, keys), 2);
	check_hex(keys[0], 32, "3c922374e6fe67f3c64e75b88a3b8bd6185b538f7019674b72aefbf8dd8754f8");
	check_hex(keys[1], 32, "2e69fa8c8aebe362593b51b8b212f1aeb45f9bb56c4258c0bf2a94f1e384e2a5");
	tokb_free(k);
}

/* Of vLLM 0.32.0's init_none_hash() and hash_block_tokens(), with PYTHONHASHSEED=0, a cache salt,
 * and blocks of 16 of the same ids. */
TEST(vllm_has_the_keys_of_version_0_32)
{
	struct tokb_options o = {TOKB_VLLM_XXHASH_CBOR, .block_size = 16, .seed = TEXT("0"),
		.cache_salt = TEXT("salt")};
	uint8_t keys[2 * 32];
	struct tokb *k = make(o);

	assert_int_equal(tokb_feed(k, some_ids(), 32, keys), 2);
	check_hex(keys, 2 * 16,
		"6ce65de421968d0d3327e5554f9b6cfb"
		"a139e8a0e5d0149e87a3dd6c8b4af113");
	tokb_free(k);

	o.scheme = TOKB_VLLM_SHA256_CBOR;
	k = make(o);
	assert_int_equal(tokb_feed(k, some_ids(), 32, keys), 2);
	check_hex(keys, 2 * 32,
		"73953e7c564deeee7cbfd74ecd4691967edf5bf9d18a48c2f055d6f3497dd369"
		"2044f7003f13221d2d7365571f24440bf2122bd245ee93da76d4e871a30c9493");
	tokb_free(k);
}

/* All pairs of cuts, at once and one by one, with the state used again. */
TEST(cuts_change_no_key)
{
	for (int scheme = 0; scheme < TOKB_SCHEMES; scheme++) {
		const size_t bytes = tokb_key_bytes(scheme);
		struct tokb_options o = {.scheme = scheme, .block_size = 7, .seed = TEXT("0")};
		uint8_t whole[8 * 32], cut[8 * 32];
		struct tokb *k;

		o.cache_salt = scheme != TOKB_LLM_D ? (struct tokb_text)TEXT("salt") : o.cache_salt;
		k = make(o);
		assert_int_equal(tokb_feed(k, some_ids(), 60, whole), 8);
		for (size_t a = 0; a <= 60; a++) {
			for (size_t b = a; b <= 60; b++) {
				size_t made;

				tokb_reset(k);
				made = tokb_feed(k, some_ids(), a, cut);
				made += tokb_feed(k, some_ids() + a, b - a, cut + bytes * made);
				assert_int_equal(made, b / 7);
				made += tokb_feed(k, some_ids() + b, 60 - b, cut + bytes * made);
				assert_int_equal(made, 8);
				assert_memory_equal(cut, whole, 8 * bytes);
			}
		}
		tokb_free(k);
	}
}

TEST(a_copy_begins_anew_with_the_same_options)
{
	for (int scheme = 0; scheme < TOKB_SCHEMES; scheme++) {
		struct tokb_options o = {.scheme = scheme, .block_size = 7, .seed = TEXT("0")};
		uint8_t first[8 * 32], second[8 * 32];
		struct tokb *k, *copy;

		o.model = (struct tokb_text)TEXT("a model");
		o.cache_salt = scheme != TOKB_LLM_D ? (struct tokb_text)TEXT("salt") : o.cache_salt;
		k = make(o);
		assert_int_equal(tokb_feed(k, some_ids(), 60, first), 8); /* four ids wait */
		copy = malloc(tokb_bytes(k));
		tokb_copy(copy, k);
		tokb_free(k);
		assert_int_equal(tokb_feed(copy, some_ids(), 60, second), 8);
		assert_memory_equal(first, second, 8 * tokb_key_bytes(scheme));
		free(copy);
	}
}

static void
check_refused(struct tokb_options o, const char *text)
{
	struct tokb_error err;

	assert_null(tokb_create(&o, &err));
	assert_string_equal(err.text, text);
	assert_null(tokb_create(&o, NULL));
}

TEST(options_out_of_range_are_refused_by_name)
{
	const struct tokb_text salt = TEXT("x");

	check_refused(
		(struct tokb_options){TOKB_SCHEMES, 16}, "scheme: 3 is none of enum tokb_scheme");
	check_refused(
		(struct tokb_options){TOKB_LLM_D, 0}, "block_size: 0: expected 1 to 1048576 ids");
	check_refused((struct tokb_options){TOKB_LLM_D, TOKB_BLOCK_SIZE_MAX + 1},
		"block_size: 1048577: expected 1 to 1048576 ids");
	check_refused((struct tokb_options){TOKB_VLLM_XXHASH_CBOR, 16},
		"seed: vllm-xxhash-cbor needs one: start vLLM with PYTHONHASHSEED and give that, or "
		"vLLM draws one a process");
	check_refused((struct tokb_options){TOKB_LLM_D, 16, .cache_salt = salt},
		"cache_salt: llm-d hashes none: leave it out, or choose a vllm scheme");
	check_refused((struct tokb_options){TOKB_LLM_D, 16, .seed = {"", TOKB_TEXT_MAX + 1}},
		"seed: longer than 65535 bytes");
	check_refused((struct tokb_options){TOKB_LLM_D, 16, .model = {"", TOKB_TEXT_MAX + 1}},
		"model: longer than 65535 bytes");
	check_refused(
		(struct tokb_options){TOKB_VLLM_SHA256_CBOR, 16, .cache_salt = {"", SIZE_MAX}},
		"cache_salt: longer than 65535 bytes");
	assert_null(tokb_scheme_name(TOKB_SCHEMES));
	assert_int_equal(tokb_key_bytes(TOKB_SCHEMES), 0);
}
