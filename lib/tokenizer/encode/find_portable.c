/* SPDX-License-Identifier: BSD-3-Clause */
/* Short pretokens in the cache, in plain C. Hot path. */
#include "block.h"
#include "isa/kernels.h"

#define KEY_READ 16 /* bytes */

static inline void
make_key(const struct tok_cache *c, struct tok_block *b, uint32_t k, const uint8_t *at)
{
	tok_cache_key(b->key[k], at, b->end[k] - b->start[k]);
	b->set[k] = tok_cache_set(c, b->key[k]);
	__builtin_prefetch(b->set[k]);
}

uint32_t
tok_find_portable(const struct tok_cache *c, struct tok_block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end)
{
	uint32_t missed = 0, k = 0;

	for (; k < n && end - (p + b->start[k]) >= KEY_READ; k++)
		make_key(c, b, k, p + b->start[k]);
	for (; k < n; k++) {
		const uint8_t *at = p + b->start[k];
		uint8_t copy[KEY_READ] = {0};

		memcpy(copy, at, (size_t)(end - at));
		make_key(c, b, k, copy);
	}
	for (k = 0; k < n; k++) {
		b->ids[k] = tok_cache_find(b->set[k], b->key[k]);
		b->missed[missed] = (uint16_t)k;
		missed += b->ids[k] == NULL;
	}
	return missed;
}
