/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdio.h>

struct tokd_app;

/*
 * Prints the counters of each worker (packets and texts always, others if not zero), of the device
 * and of the readers. After the workers have returned, before the port is closed.
 */
void tokd_summary_print(FILE *to, struct tokd_app *app);
