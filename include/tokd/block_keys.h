/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-block-keys: the hashes of blocks of ids by which LLM engines and their routers find a
 * cached prefix. doc/user/block-keys.md says when to use which.
 *
 *	struct tokb_error err;
 *	struct tokb_options o = {.scheme = TOKB_LLM_D, .block_size = 16};
 *	struct tokb *keys = tokb_create(&o, &err);
 *	uint64_t found[N];
 *
 *	n = tokb_feed(keys, ids, n_ids, found); // and again, as more ids come
 *	tokb_free(keys);
 *
 * A key stands for all ids up to the end of its block, since it hashes the key before it. Ids are
 * encoded as they come, and hashed when their block is full. A struct tokb is for one sequence, and
 * one thread, at a time.
 */
#ifndef TOKD_BLOCK_KEYS_H
#define TOKD_BLOCK_KEYS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * H of canonical CBOR (RFC 7049, section 3.9) of [key before it, ids of the block, null].
 *
 * TOKB_LLM_D: llm-d-kv-cache, pkg/kvcache/kvblock/token_processor.go. FNV-64a; a key is a uint64_t.
 *	Before the first block: H([FNV-64a(seed), null, model]).
 * TOKB_VLLM_*: vLLM, vllm/v1/core/kv_cache_utils.py. SHA-256, or XXH3-128 with its seed 0; a key is
 *	a digest, big-endian. Before the first block: H(seed as CBOR text). A cache salt makes the
 *	first block's null [["cache_salt", salt]].
 */
enum tokb_scheme {
	TOKB_LLM_D,
	TOKB_VLLM_SHA256_CBOR,
	TOKB_VLLM_XXHASH_CBOR,
	TOKB_SCHEMES,
};

#define TOKB_BLOCK_SIZE_MAX (1u << 20) /* ids */
#define TOKB_TEXT_MAX 65535u	       /* bytes of a seed, model or salt */

/* UTF-8; `bytes` NULL: not given. */
struct tokb_text {
	const char *bytes;
	size_t n;
};

struct tokb_options {
	enum tokb_scheme scheme;
	uint64_t block_size;	/* ids, from 1 to TOKB_BLOCK_SIZE_MAX; both ends must agree on it */
	struct tokb_text seed;	/* default: llm-d: empty; SHA-256: "vllm-none-hash"; XXH3: error */
	struct tokb_text model; /* llm-d alone hashes it */
	struct tokb_text cache_salt; /* vLLM alone; an empty one is none, as there */
};

struct tokb_error {
	char text[160]; /* one line: the thing, the value, the limit, the remedy */
};

struct tokb;

/*
 * Memory for one sequence of ids at a time: 5 bytes an id of a block. NULL with *error set, unless
 * error is NULL: an option is wrong, or memory is short. The texts are not kept.
 */
struct tokb *tokb_create(const struct tokb_options *options, struct tokb_error *error);
void tokb_free(struct tokb *k);

/* Begin another sequence of ids. */
void tokb_reset(struct tokb *k);

/*
 * Begin a sequence with the options of k in the caller's memory: tokb_bytes(k) bytes, aligned as a
 * uint32_t. Allocates nothing.
 */
void tokb_copy(struct tokb *to, const struct tokb *k);
size_t tokb_bytes(const struct tokb *k);

/*
 * Feed the next ids of the sequence. Writes a key of tokb_key_bytes() for each block that they
 * fill, and returns how many: at most n / block_size, rounded up. The keys do not depend on how the
 * ids are cut. `keys` is aligned as its type: for llm-d, uint64_t. Allocates nothing.
 */
size_t tokb_feed(struct tokb *k, const uint32_t *ids, size_t n, void *keys);

/* Bytes of a key: 8, 32 and 16. */
size_t tokb_key_bytes(enum tokb_scheme scheme);

/* "llm-d", "vllm-sha256-cbor", "vllm-xxhash-cbor"; NULL for another number. */
const char *tokb_scheme_name(enum tokb_scheme scheme);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
