/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands under /tokd/ for dpdk-telemetry.py. */
#pragma once

struct tokd_app;

/* Returns 0, or -errno with a message logged. *app must be valid until telemetry_stop. */
int tokd_telemetry_start(struct tokd_app *app);

/* DPDK cannot unregister commands: from now on they answer with an error. */
void tokd_telemetry_stop(void);
