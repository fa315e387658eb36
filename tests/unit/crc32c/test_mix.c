/* SPDX-License-Identifier: BSD-3-Clause */
#include <mix.h>

#include "test.h"

/* What others publish of splitmix64. */
TEST(dice_are_splitmix64)
{
	static const uint64_t want[] = {UINT64_C(6457827717110365317),
		UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
		UINT64_C(4593380528125082431)};
	uint64_t dice = 1234567;

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(dice_throw(&dice), want[i]);
}
