/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread: readers, signals, the drain, and signs of life. It runs outside the lcores,
 * so that no system call of it delays a packet. A pair with app.h, which holds it.
 */
#ifndef TOKD_CONTROL_H
#define TOKD_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <tokd/ring.h>

#include "readers/attach.h"

struct tokd_app;

struct tokd_control {
	struct tokd_app *app;
	struct tokd_attach attach;
	pthread_t thread;
	bool running;
	int epoll, signals, wake;
	uint64_t drain_end_ms; /* CLOCK_MONOTONIC; 0 while not draining */
	uint32_t watchdog_ms;  /* between signs of life for systemd; 0: none are asked for */
	uint64_t watchdog_due_ms;
	uint64_t turned[TOKD_RINGS_MAX]; /* cycles accounted by each worker at the last sign */
};

/*
 * Block the signals the control thread will take, in the caller and in all threads it makes
 * afterwards: before rte_eal_init. SIGPIPE is ignored: who reads the log may go, and the texts
 * are served all the same.
 */
void tokd_control_block_signals(void);

/* Listen for readers and start the thread. Returns 0 or -errno with a message logged. */
int tokd_control_start(struct tokd_control *c, struct tokd_app *app);

/* Let the workers stop too, if they have not, and wait for the thread. Readers stay attached. */
void tokd_control_stop(struct tokd_control *c);

/* Part from the readers: after the workers have returned. */
void tokd_control_free(struct tokd_control *c);

#endif
