/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedule of an open loop: it depends on the seed alone, has the requested rate, and is
 * Poisson if requested. Seeds are fixed, so a figure is always within its bounds or never.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "test.h"
#include "arrivals.h"

#define ARRIVALS 200000u
#define RATE 20000u /* a second: a gap of 50,000 ns in the mean */
#define MEAN_NS (1e9 / RATE)

static double gap[ARRIVALS];

static void
draw_gaps(uint64_t seed)
{
	struct arrivals a;
	uint64_t before = 0;

	arrivals_init(&a, ARRIVALS_POISSON, RATE, seed);
	for (uint32_t i = 0; i < ARRIVALS; i++) {
		uint64_t at = arrivals_next(&a);

		assert_true(at >= before);
		gap[i] = (double)(at - before);
		before = at;
	}
}

TEST(test_a_seed_gives_one_schedule)
{
	struct arrivals a, b, other;
	uint32_t same = 0;

	arrivals_init(&a, ARRIVALS_POISSON, RATE, 7);
	arrivals_init(&b, ARRIVALS_POISSON, RATE, 7);
	arrivals_init(&other, ARRIVALS_POISSON, RATE, 8);
	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t at = arrivals_next(&a);

		assert_int_equal(at, arrivals_next(&b));
		same += at == arrivals_next(&other);
	}
	assert_true(same < 10);
}

TEST(test_a_fixed_schedule_does_not_drift)
{
	static const uint64_t rates[] = {1, 3, 7000, 30000, ARRIVALS_RATE_MAX};

	for (uint32_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
		struct arrivals a;

		arrivals_init(&a, ARRIVALS_FIXED, rates[r], 1);
		for (uint64_t i = 0; i < 100000; i++) {
			uint64_t right = i * UINT64_C(1000000000) / rates[r];
			uint64_t at = arrivals_next(&a);

			assert_true(at + 1 >= right && at <= right + 1);
		}
	}
}

/* An exponential distribution's mean, its standard deviation, which is the same, and its shape, by
 * the largest distance from it (Kolmogorov and Smirnov; 1.63 / sqrt(n): one in a hundred). */
static int
compare(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

TEST(test_gaps_are_exponential)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		double sum = 0, squares = 0, along = 0, far = 0, mean, deviation;

		draw_gaps(seed);
		for (uint32_t i = 0; i < ARRIVALS; i++)
			sum += gap[i];
		mean = sum / ARRIVALS;
		for (uint32_t i = 0; i < ARRIVALS; i++) {
			squares += (gap[i] - mean) * (gap[i] - mean);
			if (i > 0)
				along += (gap[i] - mean) * (gap[i - 1] - mean);
		}
		deviation = sqrt(squares / ARRIVALS);
		assert_true(fabs(mean / MEAN_NS - 1) < 0.01);
		assert_true(fabs(deviation / MEAN_NS - 1) < 0.02);
		/* One says nothing of the next. */
		assert_true(fabs(along / squares) < 0.01);
		qsort(gap, ARRIVALS, sizeof(gap[0]), compare);
		for (uint32_t i = 0; i < ARRIVALS; i++) {
			double right = 1 - exp(-gap[i] / MEAN_NS);

			far = fmax(far, fabs((i + 0.5) / ARRIVALS - right));
		}
		assert_true(far < 1.63 / sqrt(ARRIVALS));
	}
}

/* As many in a stretch of time as there are in the mean, and their variance as much. */
TEST(test_counts_in_stretches_are_poisson)
{
	const uint64_t stretch = 1000000; /* ns: 20 of them */
	double sum = 0, squares = 0, mean, variance;
	uint64_t at, end = stretch, in_it = 0, stretches = 0;
	struct arrivals a;

	arrivals_init(&a, ARRIVALS_POISSON, RATE, 3);
	for (at = arrivals_next(&a); stretches < 10000; in_it++, at = arrivals_next(&a)) {
		for (; at >= end; end += stretch, stretches++, in_it = 0) {
			sum += (double)in_it;
			squares += (double)(in_it * in_it);
		}
	}
	mean = sum / (double)stretches;
	variance = squares / (double)stretches - mean * mean;
	assert_true(fabs(mean - 20) < 0.2);
	assert_true(fabs(variance / mean - 1) < 0.05);
}
