/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_DIAG_DRIVERS_H
#define TOKD_DIAG_DRIVERS_H

#include "options.h"

/* Becomes tokd-drivers; returns, an exit code, only where that is not possible. */
int drivers_exec(const struct options *o);

#endif
