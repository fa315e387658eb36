/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

int
main(int argc, char **argv)
{
	return fixture_run(argv);
}
