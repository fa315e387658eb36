/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests for cmocka that register themselves. They run in the order of the program's sources, as its
 * meson.build has them, and of their lines:
 *
 *	TEST(what_it_shows)
 *	{
 *		assert_true(...);
 *	}
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) TEST_OF(name, cmocka_unit_test(name))

/* With a fixture, in *state. */
#define TEST_WITH(name, setup, teardown)                                                           \
	TEST_OF(name, cmocka_unit_test_setup_teardown(name, setup, teardown))

/* With a fixture, which the body has as `fixture`: a parameter, as in struct fixture *f. */
#define TEST_ON(name, setup, teardown, fixture)                                                    \
	static void name##_on(fixture);                                                            \
	TEST_WITH(name, setup, teardown)                                                           \
	{                                                                                          \
		name##_on(*state);                                                                 \
	}                                                                                          \
	static void name##_on(fixture)

#define TEST_OF(name, initializer)                                                                 \
	static void name##_body(void **state);                                                     \
	static void name(void **state)                                                             \
	{                                                                                          \
		test_call(name##_body, state, __FILE__, __LINE__);                                 \
	}                                                                                          \
	static void __attribute__((constructor)) name##_registers(void)                            \
	{                                                                                          \
		const struct CMUnitTest test = initializer;                                        \
                                                                                                   \
		test_add(&test, __FILE__, __LINE__);                                               \
	}                                                                                          \
	static void name##_body(void **state)

void test_add(const struct CMUnitTest *test, const char *file, int line);
void test_call(void (*body)(void **state), void **state, const char *file, int line);

/*
 * Ends the test, which is then reported as skipped. In place of cmocka's skip(), which cmocka 1.1
 * reports as "not ok": a failure to meson.
 */
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Run them, as TAP. What a main() of a program's own ends with; the others take test_main.c. */
int tests_run(void);
