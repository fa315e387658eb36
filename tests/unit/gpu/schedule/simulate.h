/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler and its children on one thread, with all that goes on around them: before any of
 * the scheduler's accesses to the ring or to device memory, producers post, kernels of children run
 * and end, clients grant tokens, and the stop word is written. By dice, so a seed repeats it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct simulate_how {
	uint64_t launches; /* at least */
	uint64_t seed;
	bool heads;
	bool rarely;	       /* the producers post seldom */
	bool external;	       /* engines of another process: they come, make ids, and go */
	uint32_t most_in_one;  /* launches between a start and a stop: any number up to this */
	uint64_t launch_fails; /* this launch fails; 0: none */
};

struct simulated {
	uint64_t launches, steps, executions, incarnations, posted, entries, ended;
	uint64_t most;	  /* launches of an execution */
	uint64_t early;	  /* executions that launched themselves with launches left */
	uint64_t made;	  /* ids of an external engine that came back */
	uint64_t engines; /* external ones that came */
	uint64_t failed;  /* incarnations that a launch has ended */
	char wrong[256];  /* what is wrong first; "": nothing */
};

void simulate(const struct simulate_how *how, struct simulated *s);

#ifdef __cplusplus
}
#endif
