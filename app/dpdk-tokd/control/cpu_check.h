/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_CPU_CHECK_H
#define TOKD_CPU_CHECK_H

#include "control/port/port.h"

/*
 * Warn of what makes workers slow: a CPU that is not isolated, CPU 0, an lcore on another NUMA node
 * than the port.
 */
void tokd_cpu_check(const struct tokd_port *port);

#endif
