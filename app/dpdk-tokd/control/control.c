/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <rte_lcore.h>

#include <monotonic.h>

#include "app.h"
#include "gpu_sink_control.h"
#include "log.h"
#include "notify.h"
#include "sandbox/start.h"

#define DRAIN_CHECK_MS 5 /* between checks of open streams */
#define WATCH_MS 1000	 /* between looks at the port */

/* Those of the process as it started: EAL pins the thread that initializes it. */
static cpu_set_t all_cpus;

static void
handled_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void
tokd_control_before_eal(void)
{
	sigset_t set;

	pthread_getaffinity_np(pthread_self(), sizeof(all_cpus), &all_cpus);
	handled_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static uint32_t
open_streams(const struct tokd_app *app)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < app->n_workers; w++)
		n += tokd_worker_open_streams(app->worker[w]);
	return n;
}

static void
take_signal(struct tokd_control *c)
{
	struct tokd_app *app = c->app;
	struct signalfd_siginfo si;

	if (read(c->signals, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGHUP) {
		tokd_reload_ask(app);
		return;
	}
	if (c->drain_end_ms != 0) {
		TOKD_LOG(control, NOTICE, "second signal: stopping at once, %u streams open\n",
			open_streams(app));
		atomic_store(&app->stop, TOKD_STOP);
		return;
	}
	TOKD_LOG(control, NOTICE, "%s: draining %u open streams for at most %u ms\n",
		strsignal((int)si.ssi_signo), open_streams(app), app->opt.drain_ms);
	c->drain_end_ms = monotonic_ms() + app->opt.drain_ms;
	tokd_notify_draining(app->opt.drain_ms);
	atomic_store(&app->stop, TOKD_DRAIN);
}

/*
 * What wakes the loop: a reload was asked for or is loaded, the loop must end, or a system call was
 * denied.
 */
static void
take_wake(struct tokd_control *c)
{
	eventfd_t n;

	(void)!eventfd_read(c->wake, &n);
	tokd_sandbox_log_denied();
}

static void
watch_drain(struct tokd_control *c)
{
	uint32_t n = open_streams(c->app), n_busy = tokd_sinks_busy(c->app);

	if ((n != 0 || n_busy != 0) && monotonic_ms() < c->drain_end_ms)
		return;
	if (n != 0)
		TOKD_LOG(control, WARNING,
			"--drain: ending %u streams that are still open after %u ms\n", n,
			c->app->opt.drain_ms);
	if (n_busy != 0)
		TOKD_LOG(control, WARNING,
			"--drain: the GPU sinks of %u workers have ids left after %u ms: dropped\n",
			n_busy, c->app->opt.drain_ms);
	atomic_store(&c->app->stop, TOKD_STOP);
}

/* Only if every worker has run since the last time: systemd restarts us when a worker hangs. */
static void
notify_watchdog(struct tokd_control *c)
{
	const struct tokd_app *app = c->app;
	bool alive = true;

	for (uint32_t i = 0; i < app->n_workers; i++) {
		const struct tokd_worker *w = app->worker[i];
		const uint64_t cycles = tokd_worker_counter(w, C_CYCLES_BUSY) +
					tokd_worker_counter(w, C_CYCLES_BACKPRESSURED) +
					tokd_worker_counter(w, C_CYCLES_IDLE);

		alive = alive && cycles != c->turned[i];
		c->turned[i] = cycles;
	}
	if (alive)
		tokd_notify("WATCHDOG=1");
	c->watchdog_due_ms = monotonic_ms() + c->watchdog_ms;
}

static void
watch_port(struct tokd_control *c)
{
	struct tokd_app *app = c->app;
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < app->n_workers; i++)
		wrong += tokd_worker_counter(app->worker[i], C_DROP_UDP_CKSUM);
	tokd_port_watch(&c->watch, &app->port, wrong);
	if (atomic_load(&app->port.lost))
		atomic_store(&c->app->stop, TOKD_STOP);
	c->watch_due_ms = monotonic_ms() + WATCH_MS;
}

/* The longest sleep. */
static int
wait_ms(const struct tokd_control *c)
{
	const int attach = tokd_attach_wait_ms(&c->attach), sinks = tokd_sinks_wait_ms(c->app),
		  reload = tokd_reload_wait_ms(c->app);
	int wait = WATCH_MS;

	if (attach >= 0)
		wait = RTE_MIN(wait, attach);
	if (sinks >= 0)
		wait = RTE_MIN(wait, sinks);
	if (reload >= 0)
		wait = RTE_MIN(wait, reload);
	if (c->drain_end_ms != 0)
		wait = RTE_MIN(wait, DRAIN_CHECK_MS);
	if (c->watchdog_ms != 0)
		wait = RTE_MIN(wait, (int)c->watchdog_ms);
	return wait;
}

static void *
control_thread(void *arg)
{
	struct tokd_control *c = arg;
	struct tokd_app *app = c->app;
	struct epoll_event ev[3];

	watch_port(c);
	while (atomic_load(&app->stop) != TOKD_STOP) {
		int n = epoll_wait(c->epoll, ev, RTE_DIM(ev), wait_ms(c));

		for (int i = 0; i < n; i++) {
			if (ev[i].data.fd == c->signals)
				take_signal(c);
			if (ev[i].data.fd == c->wake)
				take_wake(c);
		}
		tokd_attach_poll(&c->attach);
		tokd_sinks_poll(app);
		if (monotonic_ms() >= c->watch_due_ms)
			watch_port(c);
		if (c->drain_end_ms == 0)
			tokd_reload_poll(app);
		if (c->drain_end_ms != 0)
			watch_drain(c);
		if (c->watchdog_ms != 0 && monotonic_ms() >= c->watchdog_due_ms)
			notify_watchdog(c);
	}
	return NULL;
}

/* Those without an lcore, as for EAL's own threads; if there are none, the main lcore's. */
static cpu_set_t
free_cpus(void)
{
	cpu_set_t cpus = all_cpus;

	for (unsigned int lcore = 0; lcore < RTE_MAX_LCORE; lcore++) {
		cpu_set_t taken = rte_lcore_cpuset(lcore);

		if (rte_lcore_has_role(lcore, ROLE_OFF) > 0)
			continue;
		CPU_AND(&taken, &taken, &cpus);
		CPU_XOR(&cpus, &cpus, &taken);
	}
	if (CPU_COUNT(&cpus) > 0)
		return cpus;
	TOKD_LOG(control, WARNING,
		"the control thread shares a CPU with lcore %u: leave one CPU out of -l\n",
		rte_get_main_lcore());
	return rte_lcore_cpuset(rte_get_main_lcore());
}

static int
start_thread(struct tokd_control *c)
{
	const cpu_set_t cpus = free_cpus();
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	rc = pthread_create(&c->thread, &attr, control_thread, c);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		pthread_setname_np(c->thread, "tokd-control");
	return -rc;
}

static int
watch(struct tokd_control *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return fd >= 0 ? epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &ev) : -1;
}

static void
close_fds(struct tokd_control *c)
{
	close(c->wake);
	close(c->signals);
	close(c->epoll);
}

int
tokd_control_start(struct tokd_control *c, struct tokd_app *app)
{
	sigset_t set;
	int rc;

	memset(c, 0, sizeof(*c));
	c->app = app;
	c->watchdog_ms = tokd_notify_watchdog_ms();
	rc = tokd_attach_open(&c->attach, app->opt.socket, app->opt.socket_mode,
		app->opt.socket_gid, app->ring, app->n_workers, app->instance,
		app->opt.reader_timeout_ms);
	if (rc != 0)
		return rc;
	handled_signals(&set);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->epoll < 0 || c->signals < 0 || c->wake < 0 || watch(c, c->signals) != 0 ||
		watch(c, c->wake) != 0 || watch(c, c->attach.epoll) != 0) {
		rc = -errno;
		TOKD_LOG(control, ERR,
			"control thread: cannot open its descriptors: %s: raise LimitNOFILE or "
			"ulimit -n\n",
			strerror(-rc));
		goto fail;
	}
	rc = start_thread(c);
	if (rc != 0) {
		TOKD_LOG(control, ERR, "control thread: cannot create it: %s\n", strerror(-rc));
		goto fail;
	}
	c->running = true;
	return 0;
fail:
	close_fds(c);
	tokd_attach_close(&c->attach);
	return rc;
}

void
tokd_control_wake(struct tokd_control *c)
{
	(void)!eventfd_write(c->wake, 1); /* if it fails, epoll_wait times out */
}

void
tokd_control_stop(struct tokd_control *c)
{
	if (!c->running)
		return;
	atomic_store(&c->app->stop, TOKD_STOP);
	tokd_control_wake(c);
	pthread_join(c->thread, NULL);
	c->running = false;
}

void
tokd_control_free(struct tokd_control *c)
{
	tokd_attach_close(&c->attach);
	close_fds(c);
}
