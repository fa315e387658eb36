/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands under /tokd/ for dpdk-telemetry.py. */
#ifndef TOKD_TELEMETRY_H
#define TOKD_TELEMETRY_H

struct tokd_app;

/* Returns 0 or -errno with a message logged. *app must stand until telemetry_stop. */
int tokd_telemetry_start(struct tokd_app *app);

/* DPDK cannot take commands back: they stay registered, and answer with an error from now on. */
void tokd_telemetry_stop(void);

#endif
