/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What systemd is told of the service (sd_notify(3)): a datagram to $NOTIFY_SOCKET. Nothing happens where it
 * is not set. The protocol is stable and a few lines long: libsystemd would be a library for these alone, and
 * its manual advises the same.
 */
#ifndef TOKD_NOTIFY_H
#define TOKD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Any thread. "READY=1", "STOPPING=1\nSTATUS=draining", ... False if there is nobody or it failed. */
bool tokd_notify(const char *state);

/*
 * Milliseconds between two signs of life: a third of what $WATCHDOG_USEC allows this process; 0 if it
 * asks for none.
 */
uint32_t tokd_notify_watchdog_ms(void);

#endif
