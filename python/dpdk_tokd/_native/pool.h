/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that stay, of the whole process. Nothing of Python. */
#pragma once

#include "signals.h"

#define POOL_THREADS_MAX 63

/*
 * Call work(arg) in this thread, and at the same time in at most `helpers` others. Returns when all
 * calls have. Threads that are busy, or that cannot be started, are not waited for: whatever there
 * is to do, one call must be able to do all of it. While it waits it looks for `signals`, which may
 * have `raised` set then.
 */
void pool_run(void (*work)(void *arg), void *arg, unsigned int helpers, struct signals *signals);
