/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NUMA placement of this process's memory. With -DTOKG_NO_NUMA, for machines without libnuma, it is
 * left to the operating system.
 */
#pragma once

#include <stddef.h>

#ifdef TOKG_NO_NUMA

static inline void
tokg_numa_place(void *at, size_t bytes, int node)
{
	(void)at;
	(void)bytes;
	(void)node;
}

static inline int
tokg_numa_node_of(int cpu)
{
	(void)cpu;
	return -1;
}

#else

#include <numa.h>

/* Binds memory that is not touched yet to a node; below 0: any. */
static inline void
tokg_numa_place(void *at, size_t bytes, int node)
{
	if (node >= 0 && numa_available() >= 0)
		numa_tonode_memory(at, bytes, node);
}

/* The node of a CPU; -1: unknown, or the CPU is below 0. */
static inline int
tokg_numa_node_of(int cpu)
{
	return cpu >= 0 && numa_available() >= 0 ? numa_node_of_cpu(cpu) : -1;
}

#endif
