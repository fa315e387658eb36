/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of all workers, one for each lcore, and of what they own. */
#pragma once

struct tokd_app;

/* Fills app->worker and app->ring. 0, or -errno with a message logged; close them in either case.
 */
int tokd_workers_open(struct tokd_app *app);
/* After the port is closed: its queues hold mbufs of these workers' pools. */
void tokd_workers_close(struct tokd_app *app);
