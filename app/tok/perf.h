/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions and cycles of this thread in user space, where the machine counts them. */
#ifndef TOK_PERF_H
#define TOK_PERF_H

#include <stdbool.h>
#include <stdint.h>

struct perf {
	int fd[2]; /* instructions, which leads the group; cycles */
};

struct perf_counts {
	uint64_t instructions, cycles;
};

/* 0, or an errno: what perf_event_open(2) said. */
int perf_open(struct perf *p);
void perf_close(struct perf *p);

/* From zero. */
void perf_start(const struct perf *p);

/* False: the counters did not run all the time since perf_start, as others use them too. */
bool perf_stop(const struct perf *p, struct perf_counts *c);

#endif
