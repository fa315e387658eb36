/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedule of an open loop: intended start times, fixed before the first request. Late answers
 * or a late generator do not move it, and the same seed gives the same times.
 */
#pragma once

#include <stdint.h>

/* In the order of --arrivals. */
enum arrivals_kind {
	ARRIVALS_POISSON, /* exponential gaps, as from many independent clients */
	ARRIVALS_FIXED,	  /* equal gaps */
};

#define ARRIVALS_RATE_MAX 10000000u /* per second */

struct arrivals {
	enum arrivals_kind kind;
	double gap_ns; /* mean gap */
	double at_ns;  /* Poisson: the latest time */
	uint64_t next; /* fixed: index of the next; a sum of gaps would drift */
	uint64_t dice;
};

/* `rate`: requests per second, from 1 to ARRIVALS_RATE_MAX. */
void arrivals_init(struct arrivals *a, enum arrivals_kind kind, uint64_t rate, uint64_t seed);
/* The next start, in ns from the beginning of the schedule. */
uint64_t arrivals_next(struct arrivals *a);
