/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "warm_up.h"

#define TEXT 8192		  /* bytes */
#define STACK ((size_t)128 << 10) /* bytes, as tok.h promises; tok_encode() takes 116 KiB */
#define PAGE 4096u

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

void
tok_warm_up(const struct tok_vocab *v, struct tok_cache *cache)
{
	uint8_t text[TEXT];
	const size_t n = make_text(v, text), room = tok_encode_bound(v, n, 0);
	uint32_t *ids = malloc(room * sizeof(*ids));

	touch_stack();
	if (ids != NULL)
		tok_encode(v, cache, text, n, 0, ids, room);
	free(ids);
}
