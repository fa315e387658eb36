/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <Python.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS (50 * 1000 * 1000)
#define S_NS (1000 * 1000 * 1000)

static bool
in_main_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * S_NS + t.tv_nsec;
}

bool
signals_raised(struct signals *s)
{
	PyGILState_STATE held;

	if (atomic_load(&s->raised) || !in_main_thread() || s->due_ns > now_ns())
		return atomic_load(&s->raised);
	if (s->due_ns != 0) {
		held = PyGILState_Ensure();
		atomic_store(&s->raised, PyErr_CheckSignals() < 0);
		PyGILState_Release(held);
	}
	s->due_ns = now_ns() + LOOK_NS;
	return atomic_load(&s->raised);
}

void
signals_wait(struct signals *s, pthread_cond_t *cond, pthread_mutex_t *lock)
{
	struct timespec until;

	if (!in_main_thread()) {
		pthread_cond_wait(cond, lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_NS;
	until.tv_sec += until.tv_nsec / S_NS;
	until.tv_nsec %= S_NS;
	if (pthread_cond_timedwait(cond, lock, &until) == 0)
		return;
	pthread_mutex_unlock(lock);
	signals_raised(s);
	pthread_mutex_lock(lock);
}
