/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer's life: started, watched by its heartbeat, restarted when it stands still. */
#ifndef TOKG_AGENT_CONSUMER_H
#define TOKG_AGENT_CONSUMER_H

#include "kernel/device.h"

#define TOKG_RESTARTS_MAX 3
#define TOKG_STOP_MS 2000
#define TOKG_STOP_SLICE_MS 20
#define TOKG_WATCH_NS 50000000ull      /* between looks at the heartbeat */
#define TOKG_WATCH_GAP_NS 200000000ull /* counted at most between two of them */
#define TOKG_HEALTHY_NS 60000000000ull /* after so long without one, restarts are forgotten */

struct tokg_consumer {
	struct tokg_device *device;
	uint32_t stuck_ms;
	uint32_t incarnation;
	uint32_t restarts; /* in a row */
	uint64_t all_restarts;
	uint64_t heartbeat, busy;
	uint64_t still_ns; /* it was looked at for so long and neither changed */
	uint64_t look_ns, started_ns;
};

/* False and `err`. */
bool tokg_consumer_start(struct tokg_consumer *c, struct tokg_device *device, uint32_t stuck_ms,
	uint64_t now_ns, struct tokg_error *err);
/* What its owner does. */
struct tokg_consumer_calls {
	/* It ended, and another has not begun: what it took of the outbox and did not write, nobody
	 * will. */
	void (*ended)(void *owner);
	/* Every TOKG_STOP_SLICE_MS while it is waited for: producers want to see a heartbeat. */
	void (*meanwhile)(void *owner);
	void *owner;
};

/*
 * A caller that did not come for long has not seen the consumer stand still.
 *
 * 0: well, or not looked at; 1: it stood still, was stopped, and another runs; below 0 and `err`:
 * it could not be, or too often.
 */
int tokg_consumer_watch(struct tokg_consumer *c, uint64_t now_ns,
	const struct tokg_consumer_calls *calls, struct tokg_error *err);

#endif
