/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of `tok bench` share. */
#ifndef TOK_BENCH_H
#define TOK_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <tok.h>

#include "../tokd-load/slices.h"
#include "perf.h"

#define BENCH_WRONG 3		   /* exit code: ids were not those of --slices */
#define BENCH_TOKENS_MAX 65536	   /* of a slice */
#define BENCH_BYTES_MAX (1u << 30) /* of all texts */

enum { BENCH_FIRST, BENCH_AGAIN, BENCH_PASSES };

/* How a text is cut; both 0: not at all. */
struct bench_cut {
	uint64_t tokens, bytes;
};

/*
 * bench_texts.c: read the files, "-" or none being standard input, and cut them: texts without ids,
 * for slices_free. Returns 0, or an exit code after saying why.
 */
int bench_texts(struct slices *texts, const struct tok_vocab *v, uint32_t flags,
	const struct bench_cut *cut, char **files, int n_files);

/* An encoder with room for the ids of any text. */
struct bench {
	const struct tok_vocab *vocab;
	struct tok_cache *cache;
	struct tok_stream stream;
	uint32_t *ids;
	size_t room;	/* ids */
	uint32_t flags; /* enum tok_flags */
	size_t piece;	/* bytes of a text that are fed at a time; 0: all */
};

/*
 * bench_pass.c: encode all texts once. With ns[count] each is timed. With `check` ids are compared
 * with the text's own after its time is taken. *n_ids: ids given. Returns 0, or an exit code after
 * saying which text of `name` is wrong.
 */
int bench_pass(struct bench *b, const struct slices *texts, const char *name, bool check,
	uint64_t *ns, uint64_t *n_ids);

/* The same, counted instead of timed. False: perf_stop said so. */
bool bench_count(struct bench *b, const struct slices *texts, const struct perf *perf,
	struct perf_counts *counts);

/* What reading the clock takes, which is in each time. */
double bench_clock_ns(void);

#endif
