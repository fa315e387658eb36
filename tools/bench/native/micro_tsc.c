/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What CLOCK_MONOTONIC says when the TSC says something: the TSC is read between two readings of
 * the clock, again and again; the two that are closest to each other bound the error.
 */
#include <inttypes.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <monotonic.h>
#include "micro.h"

/* As DPDK's rte_rdtsc. */
static uint64_t
ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
#else
#error "write what rte_rdtsc reads on this CPU"
#endif
}

int
micro_tsc(const struct micro_options *o)
{
	const uint64_t begin = monotonic_ns();
	uint64_t tsc = 0, at = 0, closest = UINT64_MAX, before, now, after;

	do {
		before = monotonic_ns();
		now = ticks();
		after = monotonic_ns();
		if (after - before < closest) {
			closest = after - before;
			at = before + closest / 2;
			tsc = now;
		}
	} while (after - begin < o->ms * 1000000);
	printf("{\"tsc\": %" PRIu64 ", \"monotonic_ns\": %" PRIu64 ", \"within_ns\": %" PRIu64
	       "}\n",
		tsc, at, closest / 2 + 1);
	return 0;
}
