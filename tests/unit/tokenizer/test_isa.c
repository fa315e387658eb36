/* SPDX-License-Identifier: BSD-3-Clause */
/* TOK_ISA: each instruction set of this CPU can be asked for by name; others are refused. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "isa/kernels.h"

static void
portable_is_there_and_the_default_is_one_of_the_names(void **arg)
{
	struct tok_error err;
	const struct tok_kernels *k;

	(void)arg;
	setenv("TOK_ISA", "portable", 1);
	assert_string_equal(tok_kernels_choose(&err)->isa, "portable");
	setenv("TOK_ISA", "", 1); /* as if unset */
	k = tok_kernels_choose(&err);
	unsetenv("TOK_ISA");
	assert_ptr_equal(tok_kernels_choose(&err), k);
	setenv("TOK_ISA", k->isa, 1);
	assert_ptr_equal(tok_kernels_choose(&err), k);
}

static void
an_unknown_or_foreign_set_is_refused_by_name(void **arg)
{
#ifdef __aarch64__
	const char *foreign = "avx2";
#else
	const char *foreign = "neon";
#endif
	struct tok_error err;

	(void)arg;
	setenv("TOK_ISA", "sse9", 1);
	assert_null(tok_kernels_choose(&err));
	assert_string_equal(
		err.text, "TOK_ISA \"sse9\": unknown, expected portable, avx2, avx512 or neon");
	setenv("TOK_ISA", foreign, 1);
	assert_null(tok_kernels_choose(&err));
	assert_non_null(strstr(err.text, foreign));
	assert_non_null(strstr(err.text, "this CPU does not have it: unset TOK_ISA"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(portable_is_there_and_the_default_is_one_of_the_names),
		cmocka_unit_test(an_unknown_or_foreign_set_is_refused_by_name),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
