/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up: what is hashed before the first block. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "inside.h"

#define NONE_HASH_SEED "vllm-none-hash"

static const struct {
	const char *name;
	uint32_t key_bytes;
} schemes[TOKB_SCHEMES] = {
	[TOKB_LLM_D] = {"llm-d", 8},
	[TOKB_VLLM_SHA256_CBOR] = {"vllm-sha256-cbor", 32},
	[TOKB_VLLM_XXHASH_CBOR] = {"vllm-xxhash-cbor", 16},
};

static_assert(IDS_AT >= 1 + 2 + KEY_BYTES_MAX + CBOR_HEAD_MAX, "the head must fit");

/*
 * In libcrypto.a: finds out which instructions the CPU has. For x86-64 it is called from .init,
 * which not all linkers call (tools/wheels), and SHA-256 would take four times as long.
 */
void OPENSSL_cpuid_setup(void) __attribute__((weak));

static void __attribute__((constructor)) find_instructions(void)
{
	if (OPENSSL_cpuid_setup != NULL)
		OPENSSL_cpuid_setup();
}

const char *
tokb_scheme_name(enum tokb_scheme scheme)
{
	return (uint32_t)scheme < TOKB_SCHEMES ? schemes[scheme].name : NULL;
}

size_t
tokb_key_bytes(enum tokb_scheme scheme)
{
	return (uint32_t)scheme < TOKB_SCHEMES ? schemes[scheme].key_bytes : 0;
}

/* The name of a text that is, or NULL. */
static const char *
too_long(const struct tokb_options *o)
{
	return o->seed.n > TOKB_TEXT_MAX	 ? "seed"
	       : o->model.n > TOKB_TEXT_MAX	 ? "model"
	       : o->cache_salt.n > TOKB_TEXT_MAX ? "cache_salt"
						 : NULL;
}

static bool
check(const struct tokb_options *o, struct tokb_error *err)
{
	const char *text;

	if ((uint32_t)o->scheme >= TOKB_SCHEMES)
		snprintf(err->text, sizeof(err->text), "scheme: %d is none of enum tokb_scheme",
			(int)o->scheme);
	else if (o->block_size < 1 || o->block_size > TOKB_BLOCK_SIZE_MAX)
		snprintf(err->text, sizeof(err->text), "block_size: %llu: expected 1 to %u ids",
			(unsigned long long)o->block_size, TOKB_BLOCK_SIZE_MAX);
	else if ((text = too_long(o)) != NULL)
		snprintf(err->text, sizeof(err->text), "%s: longer than %u bytes", text,
			TOKB_TEXT_MAX);
	else if (o->scheme == TOKB_LLM_D && o->cache_salt.n != 0)
		snprintf(err->text, sizeof(err->text),
			"cache_salt: llm-d hashes none: leave it out, or choose a vllm scheme");
	else if (o->scheme == TOKB_VLLM_XXHASH_CBOR && o->seed.bytes == NULL)
		snprintf(err->text, sizeof(err->text),
			"seed: vllm-xxhash-cbor needs one: start vLLM with PYTHONHASHSEED and give "
			"that, or vLLM draws one a process");
	else
		return true;
	return false;
}

/* [["cache_salt", salt]] */
static uint8_t *
put_extra(uint8_t *p, struct tokb_text salt)
{
	static const char name[] = "cache_salt";

	p = cbor_head(p, CBOR_ARRAY, 1);
	p = cbor_head(p, CBOR_ARRAY, 2);
	p = cbor_string(p, CBOR_TEXT, name, sizeof(name) - 1);
	return cbor_string(p, CBOR_TEXT, salt.bytes, salt.n);
}

/* What stands for the key before the first block; `p` is room for its encoding. */
static void
hash_first_parent(struct tokb *k, const struct tokb_options *o, uint8_t *p)
{
	const uint8_t *begin = p;
	struct tokb_text seed = o->seed;
	uint64_t number;

	if (k->scheme == TOKB_LLM_D) {
		tokb_hash(k->scheme, (const uint8_t *)(seed.n != 0 ? seed.bytes : ""), seed.n,
			&number);
		p = cbor_head(p, CBOR_ARRAY, 3);
		p = cbor_head(p, CBOR_NUMBER, number);
		*p++ = CBOR_NULL;
		p = cbor_string(p, CBOR_TEXT, o->model.bytes, o->model.n);
	} else {
		if (seed.bytes == NULL)
			seed = (struct tokb_text){NONE_HASH_SEED, sizeof(NONE_HASH_SEED) - 1};
		p = cbor_string(p, CBOR_TEXT, seed.bytes, seed.n);
	}
	tokb_hash(k->scheme, begin, (size_t)(p - begin), k->first_parent);
}

struct tokb *
tokb_create(const struct tokb_options *o, struct tokb_error *err)
{
	struct tokb_error ignored;
	const size_t salt_room = sizeof("cache_salt") + 4 * CBOR_HEAD_MAX + o->cache_salt.n;
	size_t room, text = o->seed.n > o->model.n ? o->seed.n : o->model.n;
	struct tokb *k;
	size_t size;

	err = err != NULL ? err : &ignored;
	if (!check(o, err))
		return NULL;
	/* A full block with its extra, or before there is one, what hash_first_parent() writes. */
	room = CBOR_ID_MAX * o->block_size + CBOR_IDS_OVER + salt_room;
	text += sizeof(NONE_HASH_SEED) + 3 * CBOR_HEAD_MAX;
	room = room > text ? room : text;
	size = sizeof(*k) + IDS_AT + room + salt_room;
	k = malloc(size);
	if (k == NULL) {
		snprintf(err->text, sizeof(err->text), "out of memory for blocks of %llu ids",
			(unsigned long long)o->block_size);
		return NULL;
	}
	*k = (struct tokb){.scheme = o->scheme,
		.key_bytes = schemes[o->scheme].key_bytes,
		.block_size = (uint32_t)o->block_size,
		.extra_at = (uint32_t)(IDS_AT + room),
		.size = (uint32_t)size};
	hash_first_parent(k, o, k->bytes + IDS_AT);
	if (o->cache_salt.n != 0) {
		uint8_t *extra = k->bytes + k->extra_at;

		k->extra_bytes = (uint32_t)(put_extra(extra, o->cache_salt) - extra);
	}
	tokb_reset(k);
	return k;
}

size_t
tokb_bytes(const struct tokb *k)
{
	return k->size;
}

void
tokb_free(struct tokb *k)
{
	free(k);
}
