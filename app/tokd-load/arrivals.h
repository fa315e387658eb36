/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the requests of an open loop are to start. That is certain before the first is sent: neither
 * answers nor a generator that is late move it, and the same seed gives the same times.
 */
#ifndef TOKD_LOAD_ARRIVALS_H
#define TOKD_LOAD_ARRIVALS_H

#include <stdint.h>

/* In the order of --arrivals. */
enum arrivals_kind {
	ARRIVALS_POISSON, /* gaps are exponential: independent clients, many of them */
	ARRIVALS_FIXED,	  /* gaps are all the same */
};

#define ARRIVALS_RATE_MAX 10000000u /* a second */

struct arrivals {
	enum arrivals_kind kind;
	double gap_ns; /* the mean */
	double at_ns;  /* Poisson: the latest */
	uint64_t next; /* fixed: its index; a sum of gaps would drift */
	uint64_t dice;
};

/* `rate`: requests a second, from 1 to ARRIVALS_RATE_MAX. */
void arrivals_init(struct arrivals *a, enum arrivals_kind kind, uint64_t rate, uint64_t seed);
/* The next one, in ns from the beginning of the schedule. */
uint64_t arrivals_next(struct arrivals *a);

#endif
