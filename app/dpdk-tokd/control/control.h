/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread: readers, signals, draining, reloads, GPU sinks, the link, the systemd
 * watchdog. It runs outside the lcores, so that its system calls delay no packet. A pair with
 * app.h, which holds it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <tokd/ring.h>

#include "port/port.h"
#include "readers/attach.h"

struct tokd_app;

struct tokd_control {
	struct tokd_app *app;
	struct tokd_attach attach;
	struct tokd_port_watch watch;
	uint64_t watch_due_ms;
	pthread_t thread;
	bool running;
	int epoll, signals, wake;
	uint64_t drain_end_ms; /* CLOCK_MONOTONIC; 0 while not draining */
	uint32_t watchdog_ms;  /* between notifications to systemd; 0: none */
	uint64_t watchdog_due_ms;
	uint64_t turned[TOKD_RINGS_MAX]; /* cycles of each worker at the last notification */
};

/*
 * Before rte_eal_init: blocks the control thread's signals in the caller and in all threads that it
 * creates later, and notes its CPUs. Ignores SIGPIPE: service continues when the reader of the log
 * ends.
 */
void tokd_control_before_eal(void);

/* Listen for readers and start the thread. Returns 0 or -errno with a message logged. */
int tokd_control_start(struct tokd_control *c, struct tokd_app *app);

/* Any thread: wakes the control thread. */
void tokd_control_wake(struct tokd_control *c);

/* Stops the workers too, and joins the thread. Readers stay attached. */
void tokd_control_stop(struct tokd_control *c);

/* Disconnects the readers: call after the workers have returned. */
void tokd_control_free(struct tokd_control *c);
