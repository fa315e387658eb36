/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids to keys.
 *
 * SHA-256 is OpenSSL's. It has code for the instructions of x86-64 and ARMv8, chosen at run time,
 * which libsodium and libmd have not, and a licence under which a wheel can contain it, which
 * Nettle and libgcrypt (LGPL) have not. These low-level functions, not EVP: they allocate nothing,
 * and link statically without the other 4 MB of libcrypto and its configuration file; EVP takes 30
 * ns a block more, and SHA256() 240. OpenSSL discourages them since 3.0, as it does all but EVP,
 * and has kept their interface since 0.9.8, as its forks do.
 *
 * XXH3 is xxHash's own header, compiled into this file: a block has some 100 bytes, for which a
 * call costs as much as the hash.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "inside.h"

/* http://www.isthe.com/chongo/tech/comp/fnv: a chain of one exclusive or and one product a byte. */
static uint64_t
fnv_64a(const uint8_t *bytes, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 0x100000001b3;
	return h;
}

static void
sha_256(const uint8_t *bytes, size_t n, uint8_t *key)
{
	SHA256_CTX c;

	SHA256_Init(&c);
	SHA256_Update(&c, bytes, n);
	SHA256_Final(key, &c);
}

void
tokb_hash(enum tokb_scheme scheme, const uint8_t *bytes, size_t n, void *key)
{
	if (scheme == TOKB_VLLM_SHA256_CBOR) {
		sha_256(bytes, n, key);
	} else if (scheme == TOKB_VLLM_XXHASH_CBOR) {
		XXH128_canonicalFromHash(key, XXH3_128bits(bytes, n));
	} else {
		const uint64_t h = fnv_64a(bytes, n);

		memcpy(key, &h, sizeof(h));
	}
}

void
tokb_begin(struct tokb *k, const void *parent)
{
	uint32_t before = 1 + cbor_head_bytes(k->block_size);
	uint64_t number = 0;
	uint8_t *p;

	if (k->scheme == TOKB_LLM_D) {
		memcpy(&number, parent, sizeof(number));
		before += cbor_head_bytes(number);
	} else {
		before += cbor_head_bytes(k->key_bytes) + k->key_bytes;
	}
	k->start = IDS_AT - before;
	p = cbor_head(k->bytes + k->start, CBOR_ARRAY, 3);
	if (k->scheme == TOKB_LLM_D)
		p = cbor_head(p, CBOR_NUMBER, number);
	else
		p = cbor_string(p, CBOR_BYTES, parent, k->key_bytes);
	cbor_head(p, CBOR_ARRAY, k->block_size);
	k->end = IDS_AT;
	k->filled = 0;
}

void
tokb_reset(struct tokb *k)
{
	k->first = true;
	tokb_begin(k, k->first_parent);
}

void
tokb_copy(struct tokb *to, const struct tokb *k)
{
	memcpy(to, k, sizeof(*k));
	memcpy(to->bytes + k->extra_at, k->bytes + k->extra_at, k->extra_bytes);
	tokb_reset(to);
}

/* The block is full. */
static void
finish(struct tokb *k, void *key)
{
	uint8_t *end = k->bytes + k->end;

	if (k->first && k->extra_bytes != 0) {
		memcpy(end, k->bytes + k->extra_at, k->extra_bytes);
		end += k->extra_bytes;
	} else {
		*end++ = CBOR_NULL;
	}
	tokb_hash(k->scheme, k->bytes + k->start, (size_t)(end - k->bytes) - k->start, key);
	k->first = false;
	tokb_begin(k, key);
}

size_t
tokb_feed(struct tokb *k, const uint32_t *ids, size_t n, void *keys)
{
	uint8_t *key = keys;
	size_t made = 0;

	while (n != 0) {
		const uint32_t room = k->block_size - k->filled,
			       taken = n < room ? (uint32_t)n : room;

		k->end = (uint32_t)(cbor_ids(k->bytes + k->end, ids, taken) - k->bytes);
		k->filled += taken;
		ids += taken;
		n -= taken;
		if (k->filled == k->block_size) {
			finish(k, key);
			key += k->key_bytes;
			made++;
		}
	}
	return made;
}
