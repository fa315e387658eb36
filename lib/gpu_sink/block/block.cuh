/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block of threads: on a GPU, with a warp as a team; on a CPU one thread, which is block and
 * team. Code for thread tid of n is correct for both.
 *
 * With -DTOKG_FIBERS (only for tests) a block has many threads on a CPU, too: fibers.
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
	uint32_t index; /* CPU: of the block, see tokg_block_index */
	bool encodes;	/* TEXT slots; on a GPU a constant of its kernel */
	bool polite;	/* CPU: yields its core when idle */
	uint64_t idle;	/* CPU: idle since; 0: it is not */
};

#ifdef __CUDACC__
/* This thread's place in its block. */
static __device__ __forceinline__ tokg_block
tokg_block_here(bool encodes)
{
	tokg_block b = {};

	b.tid = threadIdx.x;
	b.n = TOKG_BLOCK;
	b.lane = b.tid % 32;
	b.lanes = 32;
	b.team = b.tid / 32;
	b.teams = TOKG_BLOCK / 32;
	b.encodes = encodes;
	return b;
}
#endif

#ifdef __CUDA_ARCH__

TOKG_DEV void
tokg_sync(tokg_block *b)
{
	__syncthreads();
}

/* Not from `b`: a register that would be held all the time. */
TOKG_DEV uint32_t
tokg_block_index(const tokg_block *b)
{
	return blockIdx.x;
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

/* Of a team: every thread gets the least. */
TOKG_DEV uint32_t
tokg_team_min(uint32_t v)
{
#if __CUDA_ARCH__ >= 800
	return __reduce_min_sync(0xffffffffu, v);
#else
	for (int o = 16; o > 0; o >>= 1)
		v = min(v, __shfl_xor_sync(0xffffffffu, v, o));
	return v;
#endif
}

/* What each thread of the team wrote before is seen by the others after. */
TOKG_DEV void
tokg_team_sync(tokg_block *b)
{
	__syncwarp();
}

/* The value of v in thread `lane` of the team. */
TOKG_DEV uint32_t
tokg_team_of(uint32_t v, uint32_t lane)
{
	return __shfl_sync(0xffffffffu, v, lane);
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

/* The sum of the threads before this one; *total: of all. All must call it; it synchronizes. */
TOKG_DEV uint32_t
tokg_prefix(tokg_block *b, uint32_t v, uint32_t *total)
{
	uint32_t sum = v, before = 0, all = 0;

	for (uint32_t o = 1; o < 32; o <<= 1) {
		const uint32_t lower = __shfl_up_sync(0xffffffffu, sum, o);

		sum += b->lane >= o ? lower : 0;
	}
	if (b->lane == 31)
		b->shared->part[b->team] = sum;
	__syncthreads();
	for (uint32_t i = 0; i < b->teams; i++) {
		const uint32_t part = (uint32_t)b->shared->part[i];

		before += i < b->team ? part : 0;
		all += part;
	}
	__syncthreads();
	*total = all;
	return before + sum - v;
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

/*
 * All threads of the block or team come here, each with a value. Returns the values of all *n of
 * them, in the order of their tids.
 */
#ifdef TOKG_FIBERS
extern "C" const uint64_t *tokg_meet(
	bool team, const char *what, const uint64_t *value, uint32_t *n);
#else
TOKG_DEV const uint64_t *
tokg_meet(bool team, const char *what, const uint64_t *value, uint32_t *n)
{
	/* The copy must not be read from the ring again. */
	__asm__ volatile("" : : : "memory");
	*n = 1;
	return value;
}
#endif

TOKG_DEV void
tokg_sync(tokg_block *b)
{
	const uint64_t none = 0;
	uint32_t n;

	tokg_meet(false, "tokg_sync", &none, &n);
}

TOKG_DEV void
tokg_team_sync(tokg_block *b)
{
	const uint64_t none = 0;
	uint32_t n;

	tokg_meet(true, "tokg_team_sync", &none, &n);
}

TOKG_DEV uint32_t
tokg_team_min(uint32_t v)
{
	const uint64_t own = v;
	uint32_t n;
	const uint64_t *const all = tokg_meet(true, "tokg_team_min", &own, &n);
	uint32_t least = v;

	for (uint32_t i = 0; i < n; i++)
		least = (uint32_t)all[i] < least ? (uint32_t)all[i] : least;
	return least;
}

TOKG_DEV uint64_t
tokg_sum(tokg_block *b, uint64_t v)
{
	uint32_t n;
	const uint64_t *const all = tokg_meet(false, "tokg_sum", &v, &n);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += all[i];
	return sum;
}

TOKG_DEV uint32_t
tokg_prefix(tokg_block *b, uint32_t v, uint32_t *total)
{
	const uint64_t own = v;
	uint32_t n, before = 0;
	const uint64_t *const all = tokg_meet(false, "tokg_prefix", &own, &n);

	*total = 0;
	for (uint32_t i = 0; i < n; i++) {
		before += i < b->tid ? (uint32_t)all[i] : 0;
		*total += (uint32_t)all[i];
	}
	return before;
}

/* In the order of the GPU's, so that it gives the same float. */
TOKG_DEV float
tokg_team_sumf(float v)
{
	float sum[32];
	uint64_t bits = 0;
	uint32_t n;

	__builtin_memcpy(&bits, &v, sizeof(v));
	const uint64_t *const all = tokg_meet(true, "tokg_team_sumf", &bits, &n);

	for (uint32_t i = 0; i < n; i++)
		__builtin_memcpy(&sum[i], &all[i], sizeof(v));
	for (uint32_t o = n / 2; o > 0; o >>= 1)
		for (uint32_t i = 0; i < o; i++)
			sum[i] += sum[i + o];
	return sum[0];
}

TOKG_DEV uint32_t
tokg_team_of(uint32_t v, uint32_t lane)
{
	const uint64_t own = v;
	uint32_t n;

	return (uint32_t)tokg_meet(true, "tokg_team_of", &own, &n)[lane];
}

TOKG_DEV uint32_t
tokg_count(uint32_t *count)
{
	return (*count)++;
}

TOKG_DEV uint32_t
tokg_block_index(const tokg_block *b)
{
	return b->index;
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
