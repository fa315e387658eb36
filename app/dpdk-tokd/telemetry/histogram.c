/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

#define SECOND_NS 1000000000ull
#define SUB_BUCKETS (1u << TOKD_HISTOGRAM_SUB_BITS)

const struct tokd_stage_info tokd_stage_info[T_COUNT] = {
#define X(sym, name, help) [T_##sym] = {name, help},
	TOKD_STAGES(X)
#undef X
};

uint64_t
tokd_histogram_from(uint32_t i)
{
	uint32_t shift = i < SUB_BUCKETS ? 0 : i / SUB_BUCKETS - 1;

	return (uint64_t)(i - shift * SUB_BUCKETS) << (shift + TOKD_HISTOGRAM_UNIT_SHIFT);
}

static uint64_t
load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

void
tokd_histogram_merge(struct tokd_histogram *to, const struct tokd_histogram *h)
{
	uint64_t max;

	for (uint32_t i = 0; i < TOKD_HISTOGRAM_BUCKETS; i++)
		to->bucket[i] += load(&h->bucket[i]);
	to->sum += load(&h->sum);
	max = load(&h->max);
	to->max = RTE_MAX(to->max, max);
}

uint64_t
tokd_histogram_count(const struct tokd_histogram *h)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < TOKD_HISTOGRAM_BUCKETS; i++)
		n += h->bucket[i];
	return n;
}

uint64_t
tokd_histogram_percentile(const struct tokd_histogram *h, uint32_t permille)
{
	uint64_t n = tokd_histogram_count(h), seen = 0;
	/* Rounded up, at least 1. n * permille overflows only after 10^16 values. */
	uint64_t rank = RTE_MAX((n * permille + 999) / 1000, 1ull);

	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < TOKD_HISTOGRAM_BUCKETS - 1; i++) {
		seen += h->bucket[i];
		if (seen >= rank) {
			uint64_t last = tokd_histogram_from(i + 1) - 1;

			return RTE_MIN(last, h->max);
		}
	}
	return h->max;
}

uint64_t
tokd_ticks_ns(uint64_t ticks, uint64_t hz)
{
	return ticks / hz * SECOND_NS + ticks % hz * SECOND_NS / hz;
}
