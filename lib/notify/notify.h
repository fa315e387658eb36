/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notifies systemd (sd_notify(3)) by a datagram to $NOTIFY_SOCKET; does nothing if that is not set.
 * The protocol is stable and small; its manual advises to implement it instead of using libsystemd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Any thread. "READY=1", "STATUS=loading", ... False: no socket, or it failed. */
bool tokd_notify(const char *state);

/*
 * Any thread. The service is stopping and drains for up to drain_ms: extends TimeoutStopSec by as
 * much. As tokd_notify().
 */
bool tokd_notify_draining(uint32_t drain_ms);

/*
 * Milliseconds between watchdog notifications: a third of $WATCHDOG_USEC; 0: no watchdog.
 */
uint32_t tokd_notify_watchdog_ms(void);

/*
 * Is standard error the journal's? It takes "<3>" to "<6>" in front of a line as its level
 * (sd-daemon(3)). $JOURNAL_STREAM alone may be inherited.
 */
bool tokd_notify_is_journal(void);
