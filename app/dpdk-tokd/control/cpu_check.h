/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "control/port/port.h"

/*
 * Warn of what makes workers slow: a CPU that is not isolated, CPU 0, an lcore on another NUMA node
 * than the port.
 */
void tokd_cpu_check(const struct tokd_port *port);
