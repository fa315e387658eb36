/* SPDX-License-Identifier: BSD-3-Clause */
#include "consumer.h"

#include <string.h>

#include "log.h"
#include "tables_inside.h"

static bool
start(struct tokg_consumer *c, uint64_t now_ns, struct tokg_error *err)
{
	/* The claim has 16 bits for it. */
	if (++c->incarnation > UINT16_MAX)
		return tokg_agent_wrong(
			err, "the consumer was started %u times: restart tokd-gpu", UINT16_MAX);
	c->started_ns = c->look_ns = now_ns;
	c->still_ns = 0;
	return c->device->ops->start(c->device, c->incarnation, err) >= 0;
}

bool
tokg_consumer_start(struct tokg_consumer *c, struct tokg_device *device, uint32_t stuck_ms,
	uint64_t now_ns, struct tokg_error *err)
{
	*c = (struct tokg_consumer){.device = device, .stuck_ms = stuck_ms};
	return start(c, now_ns, err);
}

static bool
stop(struct tokg_consumer *c, const struct tokg_consumer_calls *calls, struct tokg_error *err)
{
	for (uint32_t i = 0; i < TOKG_STOP_MS / TOKG_STOP_SLICE_MS; i++) {
		if (c->device->ops->stop(c->device, TOKG_STOP_NOW, TOKG_STOP_SLICE_MS, err) >= 0)
			return true;
		calls->meanwhile(calls->owner);
	}
	tokg_log_warning("the consumer did not end within %u ms", TOKG_STOP_MS);
	return false;
}

int
tokg_consumer_watch(struct tokg_consumer *c, uint64_t now_ns,
	const struct tokg_consumer_calls *calls, struct tokg_error *err)
{
	const uint64_t gap_ns = now_ns - c->look_ns;
	uint64_t heartbeat, busy;

	if (gap_ns < TOKG_WATCH_NS)
		return 0;
	c->look_ns = now_ns;
	if (c->device->ops->read(c->device, offsetof(struct tokg_ctl, heartbeat), &heartbeat,
		    sizeof(heartbeat)) < 0 ||
		c->device->ops->read(
			c->device, offsetof(struct tokg_ctl, busy), &busy, sizeof(busy)) < 0) {
		tokg_agent_wrong(err,
			"the device %s does not answer: see dmesg, and restart tokd-gpu",
			c->device->ops->name);
		return -1;
	}
	if (heartbeat != c->heartbeat || busy != c->busy) {
		c->heartbeat = heartbeat;
		c->busy = busy;
		c->still_ns = 0;
		if (now_ns - c->started_ns > TOKG_HEALTHY_NS)
			c->restarts = 0;
		return 0;
	}
	c->still_ns += gap_ns < TOKG_WATCH_GAP_NS ? gap_ns : TOKG_WATCH_GAP_NS;
	if (c->still_ns <= c->stuck_ms * 1000000ull)
		return 0;
	tokg_log_warning("the consumer has hung for %u ms: stopping incarnation %u", c->stuck_ms,
		c->incarnation);
	if (c->restarts == TOKG_RESTARTS_MAX) {
		tokg_agent_wrong(
			err, "the consumer was restarted %u times and hangs again", c->restarts);
		return -1;
	}
	if (!stop(c, calls, err))
		return -1;
	calls->ended(calls->owner); /* before the next one writes the outbox */
	c->restarts++;
	c->all_restarts++;
	return start(c, now_ns, err) ? 1 : -1;
}
