/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps a driver from unmapping memory during a worker's burst; unmap_guard.c has the reason. */
#pragma once

struct tokd_app;

/*
 * Guards the workers of *app, which must stay valid until the next call. NULL: the workers have
 * ended; waits, at most 2 s, until DPDK's interrupt thread has left the drivers.
 */
void tokd_unmap_guard(const struct tokd_app *app);
