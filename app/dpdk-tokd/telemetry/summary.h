/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_SUMMARY_H
#define TOKD_SUMMARY_H

#include <stdio.h>

struct tokd_app;

/*
 * What each worker counted (always packets and texts, the rest where it is not zero), the device,
 * and the readers. After the workers, before the port is closed.
 */
void tokd_summary_print(FILE *to, struct tokd_app *app);

#endif
