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

FOLDER_TEST(the_callers_memory_is_used_and_given_back_whenever_it_ends)
{
	assert_memory_may_end(put_json(state, "tokenizer.json", small_tokenizer_json()), NULL);
}
