/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and free caches. cache.h has the look-ups. */
#include <sys/random.h>

#include "cache.h"
#include "tables/mem.h"

#define FIRST(n) (~0ull >> (64 - 8 * (n)))
#define LEN(n) ((uint64_t)(n) << TOK_CACHE_LEN_SHIFT)
const struct tok_cache_mask tok_cache_mask[TOK_CACHE_SHORT + 2] = {
	[1] = {{FIRST(1), 0}, {0, LEN(1)}},
	[2] = {{FIRST(2), 0}, {0, LEN(2)}},
	[3] = {{FIRST(3), 0}, {0, LEN(3)}},
	[4] = {{FIRST(4), 0}, {0, LEN(4)}},
	[5] = {{FIRST(5), 0}, {0, LEN(5)}},
	[6] = {{FIRST(6), 0}, {0, LEN(6)}},
	[7] = {{FIRST(7), 0}, {0, LEN(7)}},
	[8] = {{FIRST(8), 0}, {0, LEN(8)}},
	[9] = {{FIRST(8), FIRST(1)}, {0, LEN(9)}},
	[10] = {{FIRST(8), FIRST(2)}, {0, LEN(10)}},
	[11] = {{FIRST(8), FIRST(3)}, {0, LEN(11)}},
	[12] = {{FIRST(8), FIRST(4)}, {0, LEN(12)}},
	[13] = {{FIRST(8), FIRST(5)}, {0, LEN(13)}},
	[14] = {{FIRST(8), FIRST(6)}, {0, LEN(14)}},
	[15] = {{FIRST(8), FIRST(7)}, {0, LEN(15)}},
	[TOK_CACHE_SHORT + 1] = {{0, 0}, {~0ull, FIRST(7)}},
};

#define LONG_SHARE 8 /* entries per entry of a longer pretoken: half as much memory */

struct tok_cache *
tok_cache_create(const struct tok_vocab *v, uint32_t entries, const struct tok_mem *mem)
{
	struct tok_cache *c;
	uint32_t n = TOK_CACHE_WAYS * LONG_SHARE;
	size_t head = (sizeof(*c) + 63) & ~(size_t)63, bytes, longer;
	uint8_t *p;

	if (entries == 0)
		entries = TOK_CACHE_DEFAULT;
	while (n < entries && n < 1u << 24)
		n *= 2;
	if (mem == NULL)
		mem = &tok_mem_default;
	longer = head + n * sizeof(*c->entry);
	bytes = longer + n / LONG_SHARE * sizeof(*c->longer);
	p = mem->alloc(mem->ctx, bytes, 64);
	if (p == NULL)
		return NULL;
	memset(p, 0, bytes); /* already zero; touch the pages now, so that no call has to wait for
				them */
	c = (struct tok_cache *)p;
	c->entry = (struct tok_cache_entry *)(p + head);
	c->longer = (struct tok_cache_long *)(p + longer);
	c->set_shift = 64 - (uint32_t)__builtin_ctz(n / TOK_CACHE_WAYS);
	c->long_mask = n / LONG_SHARE / TOK_CACHE_WAYS - 1;
	c->mem = *mem;
	c->bytes = bytes;
	if (getrandom(c->seed, sizeof(c->seed), 0) != sizeof(c->seed) ||
		getrandom(c->multiplier, sizeof(c->multiplier), 0) != sizeof(c->multiplier)) {
		tok_cache_free(c);
		return NULL;
	}
	c->multiplier[0] |= 1;
	c->multiplier[1] |= 1;
	return c;
}

void
tok_cache_free(struct tok_cache *c)
{
	if (c != NULL)
		c->mem.free(c->mem.ctx, c, c->bytes);
}
