/* SPDX-License-Identifier: BSD-3-Clause */
/* CLOCK_MONOTONIC as a number. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t
monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline uint64_t
monotonic_ms(void)
{
	return monotonic_ns() / 1000000;
}
