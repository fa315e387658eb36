/* SPDX-License-Identifier: BSD-3-Clause */
/* Where tables live: by default, and where the caller says. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tables/mem.h"

#define HUGE_PAGE ((size_t)2 << 20)

TEST(the_default_is_zeroed_and_aligned)
{
	static const size_t sizes[] = {
		1, 64, 4097, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 1, 3 * HUGE_PAGE};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *p = tok_mem_default.alloc(NULL, sizes[i], 64);
		size_t align = sizes[i] >= HUGE_PAGE ? HUGE_PAGE : 64, at;

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % align, 0);
		for (at = 0; at < sizes[i] && p[at] == 0; at++)
			;
		assert_int_equal(at, sizes[i]);
		memset(p, 0xff, sizes[i]);
		tok_mem_default.free(NULL, p, sizes[i]);
	}
	assert_null(tok_mem_default.alloc(NULL, SIZE_MAX / 2 + 1, 64));
}

/* Counts what is out, and has no more after `left` blocks. */
struct counted {
	size_t bytes;
	int left;
};

static void *
counted_alloc(void *ctx, size_t bytes, size_t align)
{
	struct counted *c = ctx;
	void *p;

	if (c->left-- <= 0)
		return NULL;
	p = tok_mem_default.alloc(NULL, bytes, align);
	c->bytes += p == NULL ? 0 : bytes;
	return p;
}

static void
counted_free(void *ctx, void *p, size_t bytes)
{
	struct counted *c = ctx;

	c->bytes -= bytes;
	tok_mem_default.free(NULL, p, bytes);
}

FOLDER_TEST(the_callers_memory_is_used_and_given_back_whenever_it_ends)
{
	const char *path = put_json(state, "tokenizer.json", small_tokenizer_json());
	struct tok_vocab *v = NULL;
	int blocks;

	for (blocks = 0; v == NULL && blocks < 100; blocks++) {
		struct counted c = {.left = blocks};
		const struct tok_mem mem = {counted_alloc, counted_free, &c};
		const struct tok_load_opts opts = {.mem = &mem};
		struct tok_error err;

		v = tok_vocab_load(path, &opts, &err);
		if (v == NULL) {
			assert_non_null(strstr(err.text, "out of memory"));
		} else {
			assert_int_equal(c.bytes, tok_vocab_info(v).table_bytes);
			tok_vocab_free(v);
		}
		assert_int_equal(c.bytes, 0);
	}
	assert_true(blocks > 1 && blocks < 100);
}
