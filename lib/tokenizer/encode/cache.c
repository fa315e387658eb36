/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of the cache of learned pretokens; its use is in cache.h. */
#include <sys/random.h>

#include "cache.h"
#include "tables/mem.h"

struct tok_cache *
tok_cache_create(const struct tok_vocab *v, uint32_t entries, const struct tok_mem *mem)
{
	struct tok_cache *c;
	uint32_t n = TOK_CACHE_WAYS;
	size_t head = (sizeof(*c) + 63) & ~(size_t)63, bytes;
	uint8_t *p;

	if (entries == 0)
		entries = TOK_CACHE_DEFAULT;
	while (n < entries && n < 1u << 24)
		n *= 2;
	if (mem == NULL)
		mem = &tok_mem_default;
	bytes = head + n * sizeof(struct tok_cache_entry);
	p = mem->alloc(mem->ctx, bytes, 64);
	if (p == NULL)
		return NULL;
	c = (struct tok_cache *)p;
	c->entry = (struct tok_cache_entry *)(p + head);
	c->set_mask = n / TOK_CACHE_WAYS - 1;
	c->mem = *mem;
	c->bytes = bytes;
	if (getrandom(c->seed, sizeof(c->seed), 0) != sizeof(c->seed)) {
		tok_cache_free(c);
		return NULL;
	}
	return c;
}

void
tok_cache_free(struct tok_cache *c)
{
	if (c != NULL)
		c->mem.free(c->mem.ctx, c, c->bytes);
}
