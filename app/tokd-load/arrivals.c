/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "arrivals.h"
#include "dice.h"
#include "values.h"

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

int
arrivals_parse(const char *option, const char *text, void *kind)
{
	if (strcmp(text, "poisson") == 0)
		*(enum arrivals_kind *)kind = ARRIVALS_POISSON;
	else if (strcmp(text, "fixed") == 0)
		*(enum arrivals_kind *)kind = ARRIVALS_FIXED;
	else
		return value_bad(option, text, "give poisson or fixed");
	return 0;
}
