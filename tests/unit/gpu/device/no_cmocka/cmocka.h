/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As much of cmocka as the tests of a device use, for machines that have a GPU and no cmocka: what
 * tools/gpu-check builds finds this header in place of cmocka's.
 *
 * After a failure nothing more is run: a kernel may be left on the GPU, which the end of the
 * process takes away. The tests that were not run are named; TOKD_TEST_ONLY=NAME runs one alone.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct CMUnitTest {
	const char *name;
	void (*test)(void **state);
};
#define cmocka_unit_test(f)                                                                        \
	{                                                                                          \
#f, f                                                                              \
	}
#define CM_OUTPUT_TAP 0
#define cmocka_set_message_output(how) ((void)(how))

/* One of each in a program, by whichever of its sources. */
__attribute__((weak)) const struct CMUnitTest *no_cmocka_tests;
__attribute__((weak)) size_t no_cmocka_n, no_cmocka_at;

/* Says it, and ends the process. */
static inline void __attribute__((format(printf, 3, 4), noreturn))
no_cmocka_fail(const char *file, int line, const char *format, ...)
{
	va_list ap;

	printf("not ok %zu - %s\n# %s:%d: ", no_cmocka_at + 1, no_cmocka_tests[no_cmocka_at].name,
		file, line);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	for (size_t i = no_cmocka_at + 1; getenv("TOKD_TEST_ONLY") == NULL && i < no_cmocka_n; i++)
		printf("# not run: %s\n", no_cmocka_tests[i].name);
	fflush(stdout);
	_exit(1);
}

#define no_cmocka_right(c, ...) ((c) ? (void)0 : no_cmocka_fail(__FILE__, __LINE__, __VA_ARGS__))
#define fail_msg(...) no_cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)
#define assert_true(c) no_cmocka_right(c, "%s", #c)
#define assert_false(c) no_cmocka_right(!(c), "not %s", #c)
#define assert_null(p) no_cmocka_right((p) == NULL, "%s is not NULL", #p)
#define assert_non_null(p) no_cmocka_right((p) != NULL, "%s is NULL", #p)
#define assert_ptr_equal(a, b)                                                                     \
	no_cmocka_right((const void *)(a) == (const void *)(b), "%s, %s", #a, #b)
#define assert_memory_equal(a, b, n)                                                               \
	no_cmocka_right(memcmp(a, b, n) == 0, "%s differs from %s", #a, #b)
#define assert_int_equal(a, b)                                                                     \
	do {                                                                                       \
		const uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                             \
		no_cmocka_right(a_ == b_, "%s is %llu, not %s, %llu", #a, (unsigned long long)a_,  \
			#b, (unsigned long long)b_);                                               \
	} while (0)
#define print_message(...) printf(__VA_ARGS__)

static inline int
_cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
	int (*setup)(void **state), int (*teardown)(void **state))
{
	const char *const only = getenv("TOKD_TEST_ONLY");
	size_t ran = 0;

	no_cmocka_tests = tests;
	no_cmocka_n = n;
	printf("# %s\n1..%zu\n", name, only ? 1 : n);
	for (no_cmocka_at = 0; no_cmocka_at < n; no_cmocka_at++) {
		if (only && strcmp(only, tests[no_cmocka_at].name) != 0)
			continue;
		ran++;
		fflush(stdout);
		tests[no_cmocka_at].test(NULL);
		printf("ok %zu - %s\n", no_cmocka_at + 1, tests[no_cmocka_at].name);
	}
	if (ran == 0)
		printf("# TOKD_TEST_ONLY=%s: there is no such test\n", only ? only : "");
	fflush(stdout);
	return ran == 0;
}
