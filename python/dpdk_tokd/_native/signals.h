/* SPDX-License-Identifier: BSD-3-Clause */
/* Ctrl-C while the GIL is released. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct signals {
	int64_t due_ns; /* the next look at them, by CLOCK_MONOTONIC */
};

void signals_begin(struct signals *s);

/*
 * Between parts of long work, by any of its threads and without the GIL: has a signal's handler
 * raised an exception? It is set then. Looks 20 times a second, in Python's main thread alone: no
 * other handles signals.
 */
bool signals_raised(struct signals *s);
