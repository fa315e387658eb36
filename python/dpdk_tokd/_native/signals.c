/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <Python.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS (50 * 1000 * 1000)

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void
signals_begin(struct signals *s)
{
	s->due_ns = now_ns() + LOOK_NS;
}

bool
signals_raised(struct signals *s)
{
	PyGILState_STATE held;
	bool raised;

	if (syscall(SYS_gettid) != getpid() || now_ns() < s->due_ns)
		return false;
	held = PyGILState_Ensure();
	raised = PyErr_CheckSignals() < 0;
	PyGILState_Release(held);
	signals_begin(s);
	return raised;
}
