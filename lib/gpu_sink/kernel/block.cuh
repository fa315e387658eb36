/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block of threads: on a GPU, with a warp as a team; on a CPU one thread, which is block and
 * team. Code for thread tid of n is correct for both.
 */
#pragma once

#include "words.cuh"

#ifndef __CUDA_ARCH__
#include <sched.h>
#endif

#define TOKG_BLOCK 256 /* threads of a block of the GPU */

/* In shared memory on a GPU. */
struct tokg_reduce {
	uint64_t part[TOKG_BLOCK / 32];
};

struct tokg_block {
	uint32_t tid, n;      /* in the block */
	uint32_t lane, lanes; /* in the team */
	uint32_t team, teams;
	tokg_reduce *shared;
	bool polite;   /* CPU: yields its core when idle */
	uint64_t idle; /* CPU: idle since; 0: it is not */
};

#ifdef __CUDA_ARCH__

TOKG_DEV void
tokg_sync(tokg_block *b)
{
	__syncthreads();
}

TOKG_DEV uint64_t
tokg_team_sum(uint64_t v)
{
	for (int o = 16; o > 0; o >>= 1)
		v += __shfl_xor_sync(0xffffffffu, v, o);
	return v;
}

TOKG_DEV float
tokg_team_sumf(float v)
{
	for (int o = 16; o > 0; o >>= 1)
		v += __shfl_xor_sync(0xffffffffu, v, o);
	return v;
}

/* All threads get the sum. All must call it; it synchronizes. */
TOKG_DEV uint64_t
tokg_sum(tokg_block *b, uint64_t v)
{
	uint64_t sum = 0;

	v = tokg_team_sum(v);
	if (b->lane == 0)
		b->shared->part[b->team] = v;
	__syncthreads();
	for (uint32_t i = 0; i < b->teams; i++)
		sum += b->shared->part[i];
	__syncthreads();
	return sum;
}

/* In shared memory. Returns the previous value. */
TOKG_DEV uint32_t
tokg_count(uint32_t *count)
{
	return atomicAdd(count, 1u);
}

/* After each poll: hundreds of blocks poll memory that one of them writes. */
TOKG_DEV void
tokg_idle(tokg_block *b, bool found)
{
	if (!found)
		tokg_pause();
}

#else

TOKG_DEV void
tokg_sync(tokg_block *b)
{
	/* The copy must not be read from the ring again. */
	__asm__ volatile("" : : : "memory");
}

TOKG_DEV uint64_t
tokg_sum(tokg_block *b, uint64_t v)
{
	return v;
}

TOKG_DEV float
tokg_team_sumf(float v)
{
	return v;
}

TOKG_DEV uint32_t
tokg_count(uint32_t *count)
{
	return (*count)++;
}

#define TOKG_IDLE_YIELD 50000	/* ns without work after which a polite thread yields ... */
#define TOKG_IDLE_SLEEP 2000000 /* ... and after which it sleeps, TOKG_IDLE_NAP at a time */
#define TOKG_IDLE_NAP 50000

/* After each poll for work. */
TOKG_DEV void
tokg_idle(tokg_block *b, bool found)
{
	const struct timespec nap = {0, TOKG_IDLE_NAP};
	uint64_t now;

	tokg_pause();
	if (!b->polite)
		return;
	if (found) {
		b->idle = 0;
		return;
	}
	now = tokg_now();
	if (b->idle == 0)
		b->idle = now;
	if (now - b->idle > TOKG_IDLE_SLEEP)
		nanosleep(&nap, NULL);
	else if (now - b->idle > TOKG_IDLE_YIELD)
		sched_yield();
}

#endif
