/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look up short pretokens in the cache, one by one. Each instruction set includes this in a file of
 * its own and defines there FIND_KERNEL, the name of the function, and the two functions declared
 * below. Hot path.
 */
#include "block.h"
#include "isa/kernels.h"

#define KEY_READ 16 /* bytes */

/* tok_cache_key() and tok_cache_differs() */
static inline void make_key(uint64_t key[2], const uint8_t *p, size_t len);
static inline uint32_t key_differs(const struct tok_cache_entry *e, const uint64_t key[2]);

/* Of a pretoken, at which 16 bytes are readable. */
static inline void
find_set(const struct tok_cache *restrict c, struct tok_block *restrict b, uint32_t k,
	const uint8_t *at, size_t len)
{
	make_key(b->key[k], at, len);
	b->set[k] = tok_cache_set(c, b->key[k]);
	__builtin_prefetch(b->set[k]);
}

uint32_t
FIND_KERNEL(const struct tok_cache *restrict c, struct tok_block *restrict b, uint32_t n,
	const uint8_t *p, const uint8_t *end)
{
	const size_t *behind = b->end;
	uint32_t missed = 0, inside = n;

	/* The last ones of a text are copied: a call in the loop would take its registers. */
	while (inside > 0 && (size_t)(end - p) - b->start[inside - 1] < KEY_READ) {
		const uint32_t k = --inside;
		uint8_t copy[KEY_READ] = {0};

		memcpy(copy, p + b->start[k], (size_t)(end - p) - b->start[k]);
		find_set(c, b, k, copy, behind[k] - b->start[k]);
	}
	for (uint32_t k = 0; k < inside; k++)
		find_set(c, b, k, p + b->start[k], behind[k] - b->start[k]);
	for (uint32_t k = 0; k < n; k++) {
		b->ids[k] = b->set[k]->id;
		b->missed[missed] = (uint16_t)k;
		missed += key_differs(b->set[k], b->key[k]);
	}
	return missed;
}
