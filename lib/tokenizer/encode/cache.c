/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and free caches. cache.h has the look-ups. */
#include <stdlib.h>
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

#define PAGE 4096u		  /* bytes, or a part of a larger one */
#define LONG_SHARE 2		  /* entries per position of a longer pretoken */
#define RING_SHARE 16		  /* bytes of the ring per entry */
#define RING_MIN (1u << 13)	  /* bytes: room for some records */
#define TEXT 8192		  /* bytes of the text that warms up */
#define STACK ((size_t)128 << 10) /* bytes, as tok.h promises; tok_encode() takes 102 KiB */
static_assert(RING_MIN >= 4 * TOK_CACHE_RECORD_UNITS * TOK_CACHE_UNIT, "records fit");

/* A word to be inserted: its set is fetched from memory while others are prepared. */
struct word {
	uint64_t key[2];
	struct tok_cache_entry *set;
	uint32_t id;
};
#define WORDS 32u

/*
 * Insert the short words that are one token, since most pretokens of any text are. The frequent
 * ones, with the lowest ranks, come last, so that others do not evict them.
 */
static void
learn_tokens(struct tok_cache *c, const struct tok_vocab *v)
{
	const size_t room = v->table_bytes[TOK_TABLE_BYTES];
	struct word word[WORDS];
	uint32_t n = 0;

	for (uint32_t i = v->n_ranks + v->n_unmerged; i-- > 0;) {
		const uint32_t id = i < v->n_ranks ? v->ext[i] : v->unmerged[i - v->n_ranks];
		const struct tok_span span = v->span[id];
		const uint8_t *p = v->bytes + span.off;
		uint8_t last[TOK_CACHE_SHORT + 1] = {0};

		if (span.len <= TOK_CACHE_SHORT) {
			if (span.off + sizeof(last) > room) /* as much is read */
				p = memcpy(last, p, span.len);
			tok_cache_key(word[n].key, p, span.len);
			word[n].set = tok_cache_set(c, word[n].key);
			word[n].id = id;
			__builtin_prefetch(word[n++].set, 1);
		}
		for (uint32_t k = 0; (n == WORDS || i == 0) && k < n; k++)
			tok_cache_learn(word[k].set, word[k].key, &word[k].id, 1);
		n = n == WORDS ? 0 : n;
	}
}

/* The first tokens, which are the most frequent, and ever fewer of the others, with blanks between.
 * Returns the bytes. */
static size_t
make_text(const struct tok_vocab *v, uint8_t *text)
{
	size_t n = 0;

	for (uint32_t id = 0; id < v->info.n_ids; id += 1 + id / 256) {
		const struct tok_span span = v->span[id];

		if (span.len >= TEXT - n)
			break;
		memcpy(text + n, v->bytes + span.off, span.len);
		n += span.len;
		text[n++] = ' ';
	}
	return n;
}

/* No text touches all pages of the stack that encoding takes: a large frame is used in part. */
static __attribute__((noinline)) void
touch_stack(void)
{
	volatile uint8_t page[STACK];

	for (size_t i = 0; i < STACK; i += PAGE)
		page[i] = 0;
	(void)page;
}

/*
 * Encode a text of the most frequent tokens, so that the first request of this thread does not wait
 * for pages of code and stack, nor for the parts of the tables that most texts need.
 */
static void
warm_up(const struct tok_vocab *v, struct tok_cache *cache)
{
	uint8_t text[TEXT];
	const size_t n = make_text(v, text), room = tok_encode_bound(v, n, 0);
	uint32_t *ids = malloc(room * sizeof(*ids));

	touch_stack();
	if (ids != NULL)
		tok_encode(v, cache, text, n, 0, ids, room);
	free(ids);
}

struct tok_cache *
tok_cache_create(const struct tok_vocab *v, uint32_t entries, const struct tok_mem *mem)
{
	struct tok_cache *c;
	uint32_t n = TOK_CACHE_LONG_WAYS * LONG_SHARE * 2;
	size_t head = (sizeof(*c) + 63) & ~(size_t)63, bytes, longer, ring, ring_bytes;
	uint8_t *p;

	if (entries == 0)
		entries = TOK_CACHE_DEFAULT;
	while (n < entries && n < 1u << 24)
		n *= 2;
	if (mem == NULL)
		mem = &tok_mem_default;
	longer = head + n * sizeof(*c->entry);
	ring = longer + n / LONG_SHARE * sizeof(*c->longer);
	ring_bytes = (size_t)n * RING_SHARE < RING_MIN ? RING_MIN : (size_t)n * RING_SHARE;
	bytes = ring + ring_bytes;
	p = mem->alloc(mem->ctx, bytes, 64);
	if (p == NULL)
		return NULL;
	/* Touch the pages now, so that no call has to wait for them. They are zero. */
	for (size_t i = 0; i < bytes; i += PAGE)
		((volatile uint8_t *)p)[i] = 0;
	c = (struct tok_cache *)p;
	c->entry = (struct tok_cache_entry *)(p + head);
	c->longer = (uint64_t *)(p + longer);
	c->ring = p + ring;
	c->ring_units = ring_bytes / TOK_CACHE_UNIT;
	c->ring_head = c->ring_units + 1; /* so position 0 is of a record overwritten */
	c->set_shift = 64 - (uint32_t)__builtin_ctz(n / TOK_CACHE_WAYS);
	c->long_shift = 64 - (uint32_t)__builtin_ctz(n / LONG_SHARE / TOK_CACHE_LONG_WAYS);
	c->mem = *mem;
	c->bytes = bytes;
	if (getrandom(c->seed, sizeof(c->seed), 0) != sizeof(c->seed) ||
		getrandom(c->multiplier, sizeof(c->multiplier), 0) != sizeof(c->multiplier)) {
		tok_cache_free(c);
		return NULL;
	}
	c->multiplier[0] |= 1;
	c->multiplier[1] |= 1;
	if (v->kind == TOK_KIND_BPE)
		learn_tokens(c, v);
	warm_up(v, c);
	return c;
}

void
tok_cache_free(struct tok_cache *c)
{
	if (c != NULL)
		c->mem.free(c->mem.ctx, c, c->bytes);
}
