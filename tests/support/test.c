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

static size_t running;
static jmp_buf out_of_the_test;

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

void
test_call(void (*body)(void **state), void **state, const char *file, int line)
{
	running = 0;
	while (strcmp(place[running].file, file) != 0 || place[running].line != line)
		running++;
	if (setjmp(out_of_the_test) == 0)
		body(state);
}

/* By its name, which is printed after the test. The program ends with it. */
void
test_skip(const char *format, ...)
{
	char because[256], *said;
	va_list ap;

	va_start(ap, format);
	vsnprintf(because, sizeof(because), format, ap);
	va_end(ap);
	if (asprintf(&said, "%s # SKIP %s", tests[running].name, because) < 0)
		abort();
	tests[running].name = said;
	longjmp(out_of_the_test, 1);
}

int
tests_run(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return _cmocka_run_group_tests("tests", tests, n_tests, NULL, NULL);
}
