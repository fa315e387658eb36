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

#define TEST_OF(name, initializer)                                                                 \
	static void name(void **state);                                                            \
	static void __attribute__((constructor)) name##_registers(void)                            \
	{                                                                                          \
		const struct CMUnitTest test = initializer;                                        \
                                                                                                   \
		test_add(&test, __FILE__, __LINE__);                                               \
	}                                                                                          \
	static void name(void **state)

void test_add(const struct CMUnitTest *test, const char *file, int line);

/* Run them, as TAP. What a main() of a program's own ends with; the others take test_main.c. */
int tests_run(void);
