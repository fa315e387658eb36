/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of `tok bench`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <tok.h>

#include "../tokd-load/slices.h"
#include "perf.h"

#define BENCH_WRONG 3		   /* exit code: wrong ids for --slices */
#define BENCH_TOKENS_MAX 65536	   /* per slice */
#define BENCH_BYTES_MAX (1u << 30) /* of all texts */

enum { BENCH_FIRST, BENCH_AGAIN, BENCH_PASSES };

/* How texts are cut; both 0: not at all. */
struct bench_cut {
	uint64_t tokens, bytes;
};

/*
 * bench_texts.c: read the files (none or "-": standard input) and cut them into texts without ids;
 * free them with slices_free. Returns 0, or an exit code after printing the error.
 */
int bench_texts(struct slices *texts, const struct tok_vocab *v, uint32_t flags,
	const struct bench_cut *cut, char **files, int n_files);

/* An encoder, with room for the ids of any text. */
struct bench {
	const struct tok_vocab *vocab;
	struct tok_cache *cache;
	struct tok_stream stream;
	uint32_t *ids;
	size_t room;	/* ids */
	uint32_t flags; /* enum tok_flags */
	size_t piece;	/* bytes fed at a time; 0: the whole text */
};

/*
 * bench_pass.c: encode all texts once. ns[count]: the time of each text, or NULL. With `check`,
 * compare the ids with the expected ones, outside the measured time. *n_ids: ids produced. Returns
 * 0, or an exit code after printing which text of `name` is wrong.
 */
int bench_pass(struct bench *b, const struct slices *texts, const char *name, bool check,
	uint64_t *ns, uint64_t *n_ids);

/* The same with performance counters instead of times. False: see perf_stop. */
bool bench_count(struct bench *b, const struct slices *texts, const struct perf *perf,
	struct perf_counts *counts);

/* The time to read the clock; included in each measured time. */
double bench_clock_ns(void);
