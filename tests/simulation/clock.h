/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included by the compiler before each source of the appliance: the simulation's seam for the TSC,
 * which DPDK reads in an inline function. All other seams are made by the linker (seams.c).
 */
#pragma once

#include <rte_cycles.h>

/* Ticks of the worker in virtual time, at SIM_TSC_HZ. */
uint64_t sim_tsc(void);

#define rte_rdtsc sim_tsc
