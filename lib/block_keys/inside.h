/* SPDX-License-Identifier: BSD-3-Clause */
/* What set-up (create.c) and the hot path (feed.c) share. */
#pragma once

#include <stdbool.h>

#include <tokd/block_keys.h>

#include "cbor.h"

#define KEY_BYTES_MAX 32u

/*
 * The encoding of a block is made in place, in `bytes`:
 *
 *	0            start        IDS_AT                end
 *	| unused     | head       | ids so far          | the rest of the room, null or extra
 *
 * The head ends at IDS_AT: the array of three, the key before, and the head of the array of ids.
 */
#define IDS_AT 48u /* 1 + (2 + KEY_BYTES_MAX) + CBOR_HEAD_MAX, up to a multiple of 16 */

struct tokb {
	enum tokb_scheme scheme;
	uint32_t key_bytes;
	uint32_t block_size;
	uint32_t filled; /* ids of the block begun */
	uint32_t start, end;
	uint32_t extra_at, extra_bytes; /* of the first block; 0: null, as in others */
	uint32_t size;			/* of all of it */
	bool first;			/* no key yet */
	uint8_t first_parent[KEY_BYTES_MAX];
	uint8_t bytes[];
};

/* H: key_bytes of `key` from n bytes. */
void tokb_hash(enum tokb_scheme scheme, const uint8_t *bytes, size_t n, void *key);

/* The block begun hashes this key, the one before it. */
void tokb_begin(struct tokb *k, const void *parent);
