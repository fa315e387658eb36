/* SPDX-License-Identifier: BSD-3-Clause */
/* TOK_ISA: each instruction set of this CPU can be asked for by name; others are refused. */

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "isa/kernels.h"

TEST(portable_is_there_and_the_default_is_one_of_the_names)
{
	struct tok_error err;
	const struct tok_kernels *k;

	setenv("TOK_ISA", "portable", 1);
	assert_string_equal(tok_kernels_choose(&err)->isa, "portable");
	setenv("TOK_ISA", "", 1); /* as if unset */
	k = tok_kernels_choose(&err);
	unsetenv("TOK_ISA");
	assert_ptr_equal(tok_kernels_choose(&err), k);
	setenv("TOK_ISA", k->isa, 1);
	assert_ptr_equal(tok_kernels_choose(&err), k);
}

TEST(an_unknown_or_foreign_set_is_refused_by_name)
{
#ifdef __aarch64__
	const char *foreign = "avx2";
#else
	const char *foreign = "neon";
#endif
	struct tok_error err;

	setenv("TOK_ISA", "sse9", 1);
	assert_null(tok_kernels_choose(&err));
	assert_string_equal(
		err.text, "TOK_ISA \"sse9\": unknown, expected portable, avx2, avx512 or neon");
	setenv("TOK_ISA", foreign, 1);
	assert_null(tok_kernels_choose(&err));
	assert_non_null(strstr(err.text, foreign));
	assert_non_null(strstr(err.text, "this CPU does not have it: unset TOK_ISA"));
}
