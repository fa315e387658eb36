/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads histograms: merges those of workers, computes percentiles. */
#pragma once

#include "datapath/histogram.h"

/* The lower bound of bucket `i` (at most TOKD_HISTOGRAM_BUCKETS), in ticks. */
uint64_t tokd_histogram_from(uint32_t i);

/* Add `h`, whose worker may be running, to `to`, which only the caller uses. */
void tokd_histogram_merge(struct tokd_histogram *to, const struct tokd_histogram *h);

/* The number of values. This and the next need a merged histogram, without a writer. */
uint64_t tokd_histogram_count(const struct tokd_histogram *h);

/*
 * The percentile by nearest rank: the upper bound of its bucket, at most the maximum. Never too
 * low, and too high by at most 1/16 or by less than a unit. 0 without values.
 */
uint64_t tokd_histogram_percentile(const struct tokd_histogram *h, uint32_t permille);

/* Ticks of a TSC of `hz` (not 0, below 2^34) in ns. */
uint64_t tokd_ticks_ns(uint64_t ticks, uint64_t hz);
