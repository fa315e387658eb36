/* SPDX-License-Identifier: BSD-3-Clause */
/* Time of the control plane. Workers use the TSC. */
#pragma once

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in ms. */
static inline uint64_t
tokd_clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}
