/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel source on fibers, for test_fibers.c. */
#pragma once

#include "fibers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each thread reads what the next one wrote, after a barrier or without. Returns how many read
 * something else, or -1 with a report. */
int kernel_neighbour(const struct fibers_how *how, bool barrier, char report[FIBERS_TEXT]);

/* Sum, prefix sums and team sums of how->n numbers. Returns how many threads have a wrong one, or
 * -1 with a report. */
int kernel_sums(const struct fibers_how *how, char report[FIBERS_TEXT]);

/* Which barriers the threads of the upper half go to. */
enum kernel_where { KERNEL_END, KERNEL_OTHER, KERNEL_TEAM_HALVES };
/* False with a report. */
bool kernel_apart(const struct fibers_how *how, enum kernel_where where, char report[FIBERS_TEXT]);

#define KERNEL_ROWS 37
#define KERNEL_DIM_MAX 1028 /* elements of a row */

/*
 * Rows of KERNEL_ROWS ids, one of them beyond the table; the last positions are beyond theirs.
 * Elements are whole numbers, so that sums do not depend on their order. Returns what tokg_rows
 * found wrong, 1: an id, 2: a position; UINT64_MAX with a report.
 */
uint64_t kernel_rows(const struct fibers_how *how, uint32_t kind, uint32_t dtype, uint32_t dim,
	uint8_t *out, char report[FIBERS_TEXT]);

/*
 * Where a producer's head stands in a ring of `slots`, if it stood at `head` and a look has taken n
 * slots, in this order. UINT32_MAX: the list is wrong.
 */
uint32_t kernel_head(uint32_t slots, uint32_t head, const uint32_t *taken, uint32_t n);

#define KERNEL_WALK_BYTES 65536 /* of a BATCH, at most */

/*
 * The requests of a BATCH, compared with those of its definition. Returns their number, 0 if the
 * records are contradictory, or -1 with a report: they differ.
 */
int kernel_walk(
	const struct fibers_how *how, uint8_t *payload, uint32_t bytes, char report[FIBERS_TEXT]);

#ifdef __cplusplus
}
#endif
