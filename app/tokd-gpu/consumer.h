/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the consumer, watches its heartbeat, and restarts it if it hangs. */
#pragma once

#include "kernel/device.h"

#define TOKG_RESTARTS_MAX 3
#define TOKG_STOP_MS 2000
#define TOKG_STOP_SLICE_MS 20
#define TOKG_WATCH_NS 50000000ull      /* between checks of the heartbeat */
#define TOKG_WATCH_GAP_NS 200000000ull /* the most time counted between two checks */
#define TOKG_HEALTHY_NS 60000000000ull /* without a restart, until they are forgotten */

struct tokg_consumer {
	struct tokg_device *device;
	uint32_t stuck_ms;
	uint32_t incarnation;
	uint32_t restarts; /* in a row */
	uint64_t all_restarts;
	uint64_t heartbeat, busy;
	uint64_t still_ns; /* time in which neither changed */
	uint64_t look_ns, started_ns;
};

/* False and `err`. */
bool tokg_consumer_start(struct tokg_consumer *c, struct tokg_device *device, uint32_t stuck_ms,
	uint64_t now_ns, struct tokg_error *err);
/* Callbacks. */
struct tokg_consumer_calls {
	/* It has ended, and the next has not started: outbox entries that it reserved and did not
	 * write never will be. */
	void (*ended)(void *owner);
	/* Every TOKG_STOP_SLICE_MS while it stops: producers expect a heartbeat. */
	void (*meanwhile)(void *owner);
	void *owner;
};

/*
 * 0: running, or not checked; 1: it hung, and was restarted; below 0 and `err`: the restart failed,
 * or there were too many. Time in which the caller slept does not count as hanging.
 */
int tokg_consumer_watch(struct tokg_consumer *c, uint64_t now_ns,
	const struct tokg_consumer_calls *calls, struct tokg_error *err);
