/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts instructions and cycles of this thread in user space, if the machine can. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct perf {
	int fd[2]; /* instructions (the group leader), cycles */
};

struct perf_counts {
	uint64_t instructions, cycles;
};

/* Returns 0, or the errno of perf_event_open(2). */
int perf_open(struct perf *p);
void perf_close(struct perf *p);

/* Start counting from zero. */
void perf_start(const struct perf *p);

/* False: the counters did not run all the time since perf_start, because others use them too. */
bool perf_stop(const struct perf *p, struct perf_counts *c);
