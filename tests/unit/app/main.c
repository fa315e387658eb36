/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the data plane: test_dataplane [--zero-copy]. Output is TAP. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

int
main(int argc, char **argv)
{
	int failed;

	fx_zero_copy = argc > 1 && strcmp(argv[1], "--zero-copy") == 0;
	if (fixture_start(argc, argv) < 0) {
		printf("Bail out! EAL, net_ring or the vocabulary could not be set up\n");
		return 1;
	}
	failed = tests_run();
	fixture_stop();
	return failed;
}
