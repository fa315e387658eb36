/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define TESTS_MAX 512

static struct CMUnitTest tests[TESTS_MAX];
static struct {
	const char *file;
	int line;
} place[TESTS_MAX];
static size_t n_tests;

/* Constructors run in the order in which files are linked; those of one file in any order. */
void
test_add(const struct CMUnitTest *test, const char *file, int line)
{
	size_t at = n_tests++;

	if (at == TESTS_MAX) {
		fprintf(stderr, "%s:%d: more than %d tests in a program\n", file, line, TESTS_MAX);
		abort();
	}
	for (; at > 0; at--) {
		if (strcmp(place[at - 1].file, file) != 0 || place[at - 1].line < line)
			break;
		tests[at] = tests[at - 1];
		place[at] = place[at - 1];
	}
	tests[at] = *test;
	place[at].file = file;
	place[at].line = line;
}

int
tests_run(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return _cmocka_run_group_tests("tests", tests, n_tests, NULL, NULL);
}
