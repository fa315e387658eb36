/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target on random bytes, without libFuzzer: a few in the suite, and many more a second
 * where most of them would reach nothing new. random [INPUTS [SEED]]
 */
#include <mix.h>
#include "fuzz.h"

#define SIZE_MAX_BYTES 128

int
main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	uint8_t bytes[SIZE_MAX_BYTES];

	LLVMFuzzerInitialize(&argc, &argv);
	for (uint64_t i = 0; i < n; i++) {
		const size_t size = dice_throw(&seed) % sizeof(bytes);

		for (size_t k = 0; k < size; k++)
			bytes[k] = (uint8_t)(dice_throw(&seed) >> 32);
		LLVMFuzzerTestOneInput(bytes, size);
	}
	printf("%llu inputs\n", (unsigned long long)n);
	return 0;
}
