/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the data plane: test_dataplane [--zero-copy]. Output is TAP. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "tests.h"

int
main(int argc, char **argv)
{
#define X(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown),
	const struct CMUnitTest all[] = {TESTS(X)};
#undef X
	int failed;

	fx_zero_copy = argc > 1 && strcmp(argv[1], "--zero-copy") == 0;
	if (fixture_start(argc, argv) < 0) {
		printf("Bail out! EAL, net_ring or the vocabulary could not be set up\n");
		return 1;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = cmocka_run_group_tests_name("dataplane", all, NULL, NULL);
	fixture_stop();
	return failed;
}
