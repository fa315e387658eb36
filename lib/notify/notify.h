/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What systemd is told of the service (sd_notify(3)): a datagram to $NOTIFY_SOCKET. Nothing happens
 * where it is not set. The protocol is stable and a few lines long: libsystemd would be a library
 * for these alone, and its manual advises the same.
 */
#ifndef TOKD_NOTIFY_H
#define TOKD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Any thread. "READY=1", "STATUS=loading", ... False if there is nobody or it failed. */
bool tokd_notify(const char *state);

/*
 * Any thread. The service stops, and takes up to drain_ms to finish what it has begun: systemd
 * waits as much longer than its TimeoutStopSec would have it. As tokd_notify().
 */
bool tokd_notify_draining(uint32_t drain_ms);

/*
 * Milliseconds between two signs of life: a third of what $WATCHDOG_USEC allows this process; 0 if
 * it asks for none.
 */
uint32_t tokd_notify_watchdog_ms(void);

#endif
