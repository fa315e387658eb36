/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include <mix.h>
#include "arrivals.h"

void
arrivals_init(struct arrivals *a, enum arrivals_kind kind, uint64_t rate, uint64_t seed)
{
	*a = (struct arrivals){.kind = kind, .gap_ns = 1e9 / (double)rate, .dice = seed};
}

/* In (0, 1], so that its logarithm is finite. */
static double
uniform(struct arrivals *a)
{
	return (double)((dice_throw(&a->dice) >> 11) + 1) * 0x1p-53;
}

uint64_t
arrivals_next(struct arrivals *a)
{
	if (a->kind == ARRIVALS_FIXED)
		return (uint64_t)((double)a->next++ * a->gap_ns);
	a->at_ns -= log(uniform(a)) * a->gap_ns;
	return (uint64_t)a->at_ns;
}
