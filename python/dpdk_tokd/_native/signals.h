/* SPDX-License-Identifier: BSD-3-Clause */
/* Ctrl-C while the GIL is released. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of one call, zeroed before it begins. */
struct signals {
	int64_t due_ns; /* the main thread's next look at them, by CLOCK_MONOTONIC; 0: none yet */
	atomic_bool raised;
};

/*
 * Between parts of long work, by any of its threads and without the GIL: has a signal's handler
 * raised an exception? It is set then. Looks 20 times a second, in Python's main thread alone: no
 * other handles signals. Others learn what it saw.
 */
bool signals_raised(struct signals *s);

/* pthread_cond_wait(), which also returns after each look for signals. `lock` is not held while
 * their handlers run. */
void signals_wait(struct signals *s, pthread_cond_t *cond, pthread_mutex_t *lock);
