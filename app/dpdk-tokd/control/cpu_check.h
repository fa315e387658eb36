/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_CPU_CHECK_H
#define TOKD_CPU_CHECK_H

#include "control/port/port.h"

/*
 * Warn of what makes a worker slow or late without making it wrong: a CPU that is not isolated or
 * is CPU 0, an lcore on another NUMA node than the port.
 */
void tokd_cpu_check(const struct tokd_port *port);

#endif
