/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* On the stack of pool_run. In the list while helpers are wanted. */
struct job {
	struct job *next;
	void (*work)(void *arg);
	void *arg;
	unsigned int wanted, running; /* helpers */
	pthread_cond_t done;	      /* running is 0 */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* a job is in the list */
	struct job *first;
	unsigned int n_threads, n_idle;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void
unlink_job(struct job *job)
{
	struct job **link = &pool.first;

	while (*link != NULL && *link != job)
		link = &(*link)->next;
	if (*link == job)
		*link = job->next;
}

static void *
help(void *unused)
{
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct job *job = pool.first;

		if (job == NULL) {
			pool.n_idle++;
			pthread_cond_wait(&pool.wake, &pool.lock);
			pool.n_idle--;
			continue;
		}
		if (--job->wanted == 0)
			unlink_job(job);
		job->running++;
		pthread_mutex_unlock(&pool.lock);
		job->work(job->arg);
		pthread_mutex_lock(&pool.lock);
		if (--job->running == 0)
			pthread_cond_signal(&job->done);
	}
	return NULL;
}

/* A child has none of its parent's threads, and whoever waited for them is not there either. */
static void
in_child(void)
{
	pthread_mutex_init(&pool.lock, NULL);
	pthread_cond_init(&pool.wake, NULL);
	pool.first = NULL;
	pool.n_threads = pool.n_idle = 0;
}

static void
lock_before_fork(void)
{
	pthread_mutex_lock(&pool.lock);
}

static void
unlock_in_parent(void)
{
	pthread_mutex_unlock(&pool.lock);
}

static void
survive_fork(void)
{
	pthread_atfork(lock_before_fork, unlock_in_parent, in_child);
}

/* With the lock held. Signals are for the threads of Python. */
static void
start_threads(unsigned int wanted)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (pool.n_threads < wanted && pool.n_threads < POOL_THREADS_MAX) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, help, NULL) != 0)
			break;
		pthread_detach(thread);
		pool.n_threads++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void
pool_run(void (*work)(void *arg), void *arg, unsigned int helpers, struct signals *signals)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct job job = {.work = work, .arg = arg, .wanted = helpers};

	if (helpers == 0) {
		work(arg);
		return;
	}
	pthread_once(&once, survive_fork);
	pthread_cond_init(&job.done, NULL);
	pthread_mutex_lock(&pool.lock);
	start_threads(helpers);
	job.next = pool.first;
	pool.first = &job;
	for (unsigned int i = 0; i < helpers && i < pool.n_idle; i++)
		pthread_cond_signal(&pool.wake);
	pthread_mutex_unlock(&pool.lock);

	work(arg);

	pthread_mutex_lock(&pool.lock);
	unlink_job(&job);
	while (job.running > 0)
		signals_wait(signals, &job.done, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
	pthread_cond_destroy(&job.done);
}
