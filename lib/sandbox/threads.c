/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities and Landlock belong to a thread, and DPDK starts threads before set-up ends: each is
 * asked to run a function by a signal, as the C library does for setuid(). SIGSYS, which only a
 * mistake raises.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sandbox.h"

#define THREADS_MAX 1024
#define WAIT_NS 1000000 /* between looks, */
#define WAITS_MOST 1000 /* at most so many waits: 1 s */

enum { PENDING = 1 }; /* else 0 or -errno, of the function */

static struct {
	int (*fn)(void);
	_Atomic uint32_t n;
	struct {
		pid_t id;
		_Atomic int result;
	} thread[THREADS_MAX];
} job;

static void
run_here(pid_t id)
{
	for (uint32_t i = 0; i < atomic_load(&job.n); i++) {
		if (job.thread[i].id == id && atomic_load(&job.thread[i].result) == PENDING)
			atomic_store(&job.thread[i].result, job.fn());
	}
}

static void
on_signal(int number)
{
	const int saved = errno;

	run_here(gettid());
	errno = saved;
}

static int
send(pid_t id)
{
	if (id == gettid()) {
		run_here(id);
		return 0;
	}
	return syscall(SYS_tgkill, getpid(), id, SIGSYS) == 0 || errno == ESRCH ? 0 : -errno;
}

/* Every thread that has not been asked yet. Returns how many, or -errno. */
static int
ask_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n_new = 0, rc = 0;

	if (tasks == NULL)
		return -errno;
	for (struct dirent *d = readdir(tasks); d != NULL && rc == 0; d = readdir(tasks)) {
		const pid_t id = (pid_t)strtol(d->d_name, NULL, 10);
		const uint32_t n = atomic_load(&job.n);
		uint32_t at = 0;

		while (at < n && job.thread[at].id != id)
			at++;
		if (id == 0 || at < n)
			continue; /* "." and "..", or asked */
		if (n == THREADS_MAX) {
			rc = -E2BIG;
			break;
		}
		job.thread[n].id = id;
		atomic_store(&job.thread[n].result, PENDING);
		atomic_store(&job.n, n + 1);
		rc = send(id);
		n_new++;
	}
	closedir(tasks);
	return rc != 0 ? rc : n_new;
}

/* Until all that were asked have answered or ended. Returns how many did neither, or -errno. */
static int
wait_for_all(void)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	int n_silent = 0;

	for (uint32_t i = 0, waits = 0; i < atomic_load(&job.n); i++) {
		int result;

		while ((result = atomic_load(&job.thread[i].result)) == PENDING &&
			syscall(SYS_tgkill, getpid(), job.thread[i].id, 0) == 0 &&
			waits++ < WAITS_MOST)
			nanosleep(&wait, NULL);
		if (result < 0)
			return result;
		n_silent += result == PENDING;
	}
	return n_silent;
}

int
tokd_each_thread(int (*fn)(void))
{
	/* It stays: a thread may answer late. */
	const struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	int n_new, n_silent;

	job.fn = fn;
	atomic_store(&job.n, 0);
	if (sigaction(SIGSYS, &ours, NULL) != 0)
		return -errno;
	/* A thread may have started another one before it was asked. */
	do {
		n_new = ask_others();
		n_silent = n_new < 0 ? n_new : wait_for_all();
	} while (n_new > 0 && n_silent >= 0);
	return n_silent;
}
