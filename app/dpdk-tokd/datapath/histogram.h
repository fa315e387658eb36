/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times of stages: one histogram per stage and worker, in TSC ticks. Only the worker writes it; any
 * thread may read it. doc/reference/telemetry.md defines the stages.
 *
 * Log-linear buckets in units of 32 ticks; on ARM, whose ticks are longer, of 2. The first 32 are
 * one unit wide, and each further power of two is divided into 16. A bucket is at most 1/16 of its
 * values wide:
 *
 *   bucket    0 ... 31 | 32 ... 47 | 48 ... 63 | ... | 496 ... 511
 *   from unit 0     31 | 32     62 | 64    124 | ... | 2^34  (and all above 2^35)
 *
 * 512 buckets reach 2^40 ticks, six minutes at 3 GHz; on ARM 2^36, six minutes at 200 MHz and one
 * at 1 GHz. They fit one array of DPDK's telemetry.
 */
#pragma once

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#ifdef RTE_ARCH_ARM64
#define TOKD_HISTOGRAM_UNIT_SHIFT 1
#else
#define TOKD_HISTOGRAM_UNIT_SHIFT 5
#endif
#define TOKD_HISTOGRAM_SUB_BITS 4
#define TOKD_HISTOGRAM_BUCKETS 512

/* X(symbol, "name", "help") */
#define TOKD_STAGES(X)                                                                             \
	X(WIRE_TO_RING, "wire_to_ring",                                                            \
		"each record of ids or bytes: its packet taken from the queue, to published")      \
	X(TEXT_TO_FIRST_ID, "text_to_first_id",                                                    \
		"each text: first packet taken from the queue, to first id published")             \
	X(TEXT_TO_LAST_ID, "text_to_last_id",                                                      \
		"each whole text: first packet taken from the queue, to last record published")    \
	X(TOKENIZER, "tokenizer",                                                                  \
		"each whole text: time for its ids and keys of blocks, all packets")               \
	X(RING_TO_REPLY, "ring_to_reply",                                                          \
		"each whole text: last record published, to last reply handed to the driver")      \
	X(IDS_TO_TEXT, "ids_to_text",                                                              \
		"each text decoded: first packet of its ids taken from the queue, to all of it "   \
		"published")                                                                       \
	X(DECODER, "decoder", "each text decoded: time for it, all packets")                       \
	X(TEXT_TO_FIRST_TOKEN, "text_to_first_token",                                              \
		"each prompt: last ids published, to the first id made for it published")          \
	X(POSTED_TO_DONE, "posted_to_done", "each slot of the GPU ring: posted, to read as done")

enum tokd_stage {
#define X(sym, name, help) T_##sym,
	TOKD_STAGES(X)
#undef X
		T_COUNT
};

struct tokd_stage_info {
	const char *name;
	const char *help;
};
extern const struct tokd_stage_info tokd_stage_info[T_COUNT];

struct tokd_histogram {
	uint64_t sum; /* ticks */
	uint64_t max; /* ticks */
	uint64_t bucket[TOKD_HISTOGRAM_BUCKETS];
} __rte_cache_aligned;

static inline uint32_t
tokd_histogram_bucket(uint64_t ticks)
{
	uint64_t units = ticks >> TOKD_HISTOGRAM_UNIT_SHIFT;
	uint32_t top = 63 - (uint32_t)__builtin_clzll(units | 1 << TOKD_HISTOGRAM_SUB_BITS);
	uint32_t shift = top - TOKD_HISTOGRAM_SUB_BITS;
	uint32_t i = (shift << TOKD_HISTOGRAM_SUB_BITS) + (uint32_t)(units >> shift);

	return RTE_MIN(i, TOKD_HISTOGRAM_BUCKETS - 1u);
}

/* One writer, plain loads and stores of words: readers see the old or the new word. */
static inline void
tokd_histogram_add(struct tokd_histogram *h, uint64_t ticks)
{
	h->bucket[tokd_histogram_bucket(ticks)]++;
	h->sum += ticks;
	if (unlikely(ticks > h->max))
		h->max = ticks;
}
