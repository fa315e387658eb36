/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where memory of this process lies. Built with -DTOKG_NO_NUMA, for machines without libnuma,
 * memory lies wherever the operating system puts it, and nothing else changes.
 */
#ifndef TOKG_NUMA_PLACE_H
#define TOKG_NUMA_PLACE_H

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

/* Memory that nobody has touched yet, to that node; below 0: to any. */
static inline void
tokg_numa_place(void *at, size_t bytes, int node)
{
	if (node >= 0 && numa_available() >= 0)
		numa_tonode_memory(at, bytes, node);
}

/* Of a CPU; -1: unknown, or the CPU is below 0. */
static inline int
tokg_numa_node_of(int cpu)
{
	return cpu >= 0 && numa_available() >= 0 ? numa_node_of_cpu(cpu) : -1;
}

#endif

#endif
