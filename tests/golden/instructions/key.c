/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <sys/random.h>

/* The key of hashes, in place of libc's: so that each run has the same collisions. */
ssize_t
getrandom(void *out, size_t n, unsigned flags)
{
	uint64_t x = 1;

	(void)flags;
	for (size_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
		((uint8_t *)out)[i] = (uint8_t)(x >> 56);
	}
	return (ssize_t)n;
}
