/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included by the compiler before each source of test_ring_stall: the time in which a reader holds
 * a ring passes when the test says so, not while the test has no CPU.
 */
#pragma once

#include <rte_cycles.h>

extern uint64_t clock_tsc;

#define rte_rdtsc() clock_tsc
