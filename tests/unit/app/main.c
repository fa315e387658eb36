/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the data plane: test_dataplane [--zero-copy|--block-keys|--wipe]. Output is TAP. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

int
main(int argc, char **argv)
{
	int failed;

	fx_zero_copy = argc > 1 && strcmp(argv[1], "--zero-copy") == 0;
	fx_wipe = argc > 1 && strcmp(argv[1], "--wipe") == 0;
	if (argc > 1 && strcmp(argv[1], "--block-keys") == 0) {
		fx_block_keys = 1 + TOKB_LLM_D;
		fx_block_size = 16;
	}
	if (fixture_start(argc, argv) < 0) {
		printf("Bail out! EAL, net_ring or the vocabulary could not be set up\n");
		return 1;
	}
	failed = tests_run();
	fixture_stop();
	return failed;
}
