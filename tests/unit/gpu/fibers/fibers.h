/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block of threads of a GPU as fibers of one CPU thread. Kernel source that is compiled with
 * -DTOKG_FIBERS meets in tokg_meet() (block.cuh) at each barrier. Between two barriers each fiber
 * runs alone, and the order changes. So a missing barrier or a wrong tid gives wrong results.
 * Barriers that not all threads reach are reported. A fiber that waits for another block, in
 * tokg_pause(), lets the others of its own run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FIBERS_MAX 256	/* threads of a block */
#define FIBERS_TEAM 32	/* threads of a team */
#define FIBERS_TEXT 256 /* bytes of a report */

enum fibers_order {
	FIBERS_FORWARD, /* by tid */
	FIBERS_BACKWARD,
	FIBERS_RANDOM, /* another order after each barrier, by `seed` */
	FIBERS_ORDERS
};

struct fibers_how {
	uint32_t n; /* threads: 1 to FIBERS_MAX; above FIBERS_TEAM: whole teams */
	enum fibers_order order;
	uint64_t seed;
};

/*
 * Runs thread(tid, arg) for all tids, until all have returned. False: they wait at different
 * barriers, or some have returned and others wait; `report` says which. No assertion of cmocka in
 * thread().
 */
bool fibers_run(const struct fibers_how *how, void (*thread)(uint32_t tid, void *arg), void *arg,
	char report[FIBERS_TEXT]);

/* Frees the stacks that this thread's runs have used: before a thread ends. */
void fibers_free(void);

#ifdef __cplusplus
}
#endif
