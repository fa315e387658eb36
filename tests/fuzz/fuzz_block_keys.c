/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of blocks: any options, any ids, cut anywhere. The options are refused or there are as many
 * keys as full blocks, the same however the ids are cut, and written to no other memory.
 */
#include <string.h>

#include <tokd/block_keys.h>

#include "fuzz.h"

#define IDS_MAX 400u

static struct tokb_text
take_text(struct input *in)
{
	const uint8_t *bytes;
	const uint32_t n = input_bytes(in, (uint32_t)input_take(in, 1), &bytes);

	return (struct tokb_text){n != 0 ? (const char *)bytes : NULL, n};
}

/* For keys of just so many blocks, which AddressSanitizer guards. */
static uint8_t *
make_room(size_t blocks, size_t key_bytes)
{
	uint8_t *keys = malloc(blocks * key_bytes + 1);

	MUST(keys != NULL);
	keys[blocks * key_bytes] = 0xa5;
	return keys;
}

static uint8_t *
whole(struct tokb *k, const uint32_t *ids, size_t n, size_t blocks, size_t key_bytes)
{
	uint8_t *keys = make_room(blocks, key_bytes);

	MUST(tokb_feed(k, ids, n, keys) == blocks);
	MUST(keys[blocks * key_bytes] == 0xa5);
	return keys;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	static uint32_t ids[IDS_MAX];
	struct tokb_options o = {.scheme = (enum tokb_scheme)input_take(&in, 1)};
	uint8_t *expected, *keys;
	size_t n = 0, blocks, key_bytes, made = 0;
	struct tokb_error err;
	struct tokb *k;

	o.block_size = input_take(&in, input_take(&in, 1) % 2 ? 8 : 1);
	o.seed = take_text(&in);
	o.model = take_text(&in);
	o.cache_salt = take_text(&in);
	k = tokb_create(&o, &err);
	if (k == NULL) {
		MUST(memchr(err.text, '\0', sizeof(err.text)) != NULL && err.text[0] != '\0');
		return 0;
	}
	while (n < IDS_MAX && input_more(&in)) {
		const uint32_t bytes = (uint32_t)input_take(&in, 1) % 5;

		ids[n++] = (uint32_t)input_take(&in, bytes);
	}
	blocks = n / o.block_size;
	key_bytes = tokb_key_bytes(o.scheme);
	expected = whole(k, ids, n, blocks, key_bytes);
	tokb_reset(k);
	keys = make_room(blocks, key_bytes);
	for (size_t at = 0; at < n;) {
		const size_t piece = 1 + ids[at] % 40, rest = n - at;
		const size_t taken = piece < rest ? piece : rest;

		made += tokb_feed(k, ids + at, taken, keys + made * key_bytes);
		at += taken;
		MUST(made == at / o.block_size);
	}
	MUST(memcmp(keys, expected, blocks * key_bytes) == 0);
	MUST(keys[blocks * key_bytes] == 0xa5);
	free(expected);
	free(keys);
	tokb_free(k);
	return 0;
}
