/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accesses to words that others write: NIC, host, other blocks, other threads. On a GPU these are
 * PTX loads and stores with the scope and order in their names, so that no incoherent cache is
 * used; on a CPU the compiler's atomics.
 *
 * Words that only the consumer's blocks look at have functions of their own (tokg_own_*): there a
 * release or acquire has the scope of the GPU, and does not wait until all that was written has
 * reached the host.
 *
 * With -DTOKG_INJECT (only for tests) every access to shared memory is atomic, and the test's
 * tokg_inject_step is called before it: it may schedule another thread, or never return.
 */
#pragma once

#include "ring/gpu_ring.h"

#ifdef __CUDACC__
#define TOKG_DEV static __device__ __forceinline__
#else
#include <time.h>
#define TOKG_DEV static inline
#endif

#ifdef TOKG_INJECT
extern "C" void tokg_inject_step(const char *what, const void *word);
#define TOKG_STEP(what, word) tokg_inject_step(what, word)
#else
#define TOKG_STEP(what, word) ((void)0)
#endif

struct tokg_vec16 {
	uint32_t w[4];
};

#ifdef __CUDA_ARCH__

TOKG_DEV uint64_t
tokg_ld(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

TOKG_DEV uint32_t
tokg_ld32(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

TOKG_DEV tokg_vec16
tokg_ld_vec16(const void *p)
{
	tokg_vec16 v;

	asm volatile("ld.relaxed.sys.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
		     : "l"(p)
		     : "memory");
	return v;
}

TOKG_DEV uint64_t
tokg_ld_acquire(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

TOKG_DEV uint64_t
tokg_own_ld(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

TOKG_DEV uint64_t
tokg_own_ld_acquire(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

TOKG_DEV void
tokg_own_st(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

TOKG_DEV void
tokg_own_st_release(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

/* True: the value was `was`. Orders nothing. */
TOKG_DEV bool
tokg_own_cas(uint64_t *p, uint64_t was, uint64_t now)
{
	uint64_t held;

	asm volatile("atom.relaxed.gpu.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(held)
		     : "l"(p), "l"(was), "l"(now)
		     : "memory");
	return held == was;
}

TOKG_DEV void
tokg_st(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

/*
 * Towards NIC and host: what this thread has done and seen is before what it stores after it, by
 * the two functions below. One fence for several words: each waits until all that was written is
 * visible beyond the GPU.
 */
TOKG_DEV void
tokg_fence(void)
{
	asm volatile("fence.acq_rel.sys;" : : : "memory");
}

TOKG_DEV void
tokg_st_fenced(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

TOKG_DEV void
tokg_own_fence(void)
{
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

/* True: the value was `was`. */
TOKG_DEV bool
tokg_cas_fenced(uint64_t *p, uint64_t was, uint64_t now)
{
	uint64_t held;

	asm volatile("atom.relaxed.sys.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(held)
		     : "l"(p), "l"(was), "l"(now)
		     : "memory");
	return held == was;
}

/* Returns the previous value. Orders nothing. */
TOKG_DEV uint64_t
tokg_own_add(uint64_t *p, uint64_t n)
{
	uint64_t was;

	asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;"
		     : "=l"(was)
		     : "l"(p), "l"(n)
		     : "memory");
	return was;
}

/* Between blocks of this kernel: acquire and release. Returns the previous value. */
TOKG_DEV uint64_t
tokg_add(uint64_t *p, uint64_t n)
{
	uint64_t was;

	asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;"
		     : "=l"(was)
		     : "l"(p), "l"(n)
		     : "memory");
	return was;
}

TOKG_DEV void
tokg_raise(uint64_t *p, uint64_t to)
{
	asm volatile("red.relaxed.gpu.max.u64 [%0], %1;" : : "l"(p), "l"(to) : "memory");
}

/* Nanoseconds; one clock for the whole GPU. */
TOKG_DEV uint64_t
tokg_now(void)
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Ticks of one multiprocessor; finer than tokg_now. */
TOKG_DEV uint64_t
tokg_ticks(void)
{
	uint64_t ticks;

	asm volatile("mov.u64 %0, %%clock64;" : "=l"(ticks) : : "memory");
	return ticks;
}

TOKG_DEV void
tokg_pause(void)
{
	__nanosleep(20);
}

#else /* a CPU; for nvcc's host pass, too, which compiles and never runs it */

TOKG_DEV uint64_t
tokg_ld(const uint64_t *p)
{
	TOKG_STEP("load", p);
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

TOKG_DEV uint32_t
tokg_ld32(const uint32_t *p)
{
	TOKG_STEP("load", p);
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Plain in the ordinary build, so that ThreadSanitizer sees a payload that is read too early. */
TOKG_DEV tokg_vec16
tokg_ld_vec16(const void *p)
{
	tokg_vec16 v;

#ifdef TOKG_INJECT
	for (int i = 0; i < 4; i++)
		v.w[i] = tokg_ld32((const uint32_t *)p + i);
#else
	for (int i = 0; i < 4; i++)
		v.w[i] = ((const uint32_t *)p)[i];
#endif
	return v;
}

TOKG_DEV uint64_t
tokg_ld_acquire(const uint64_t *p)
{
	TOKG_STEP("load acquire", p);
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

TOKG_DEV void
tokg_st(uint64_t *p, uint64_t v)
{
	TOKG_STEP("store", p);
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

TOKG_DEV uint64_t
tokg_own_ld(const uint64_t *p)
{
	return tokg_ld(p);
}

TOKG_DEV uint64_t
tokg_own_ld_acquire(const uint64_t *p)
{
	return tokg_ld_acquire(p);
}

TOKG_DEV void
tokg_own_st(uint64_t *p, uint64_t v)
{
	tokg_st(p, v);
}

TOKG_DEV void
tokg_own_st_release(uint64_t *p, uint64_t v)
{
	TOKG_STEP("store release", p);
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* The stores themselves are releases here: it costs nothing, and ThreadSanitizer knows no fence. */
TOKG_DEV void
tokg_fence(void)
{
}

TOKG_DEV void
tokg_st_fenced(uint64_t *p, uint64_t v)
{
	tokg_own_st_release(p, v);
}

TOKG_DEV void
tokg_own_fence(void)
{
	tokg_fence();
}

TOKG_DEV bool
tokg_cas_fenced(uint64_t *p, uint64_t was, uint64_t now)
{
	TOKG_STEP("cas", p);
	return __atomic_compare_exchange_n(p, &was, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

TOKG_DEV bool
tokg_own_cas(uint64_t *p, uint64_t was, uint64_t now)
{
	return tokg_cas_fenced(p, was, now);
}

TOKG_DEV uint64_t
tokg_add(uint64_t *p, uint64_t n)
{
	TOKG_STEP("add", p);
	return __atomic_fetch_add(p, n, __ATOMIC_ACQ_REL);
}

TOKG_DEV uint64_t
tokg_own_add(uint64_t *p, uint64_t n)
{
	return tokg_add(p, n);
}

TOKG_DEV void
tokg_raise(uint64_t *p, uint64_t to)
{
	uint64_t was = tokg_ld(p);

	while (was < to && !tokg_cas_fenced(p, was, to))
		was = tokg_ld(p);
}

TOKG_DEV uint64_t
tokg_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

TOKG_DEV uint64_t
tokg_ticks(void)
{
	return tokg_now();
}

#ifdef TOKG_FIBERS
extern "C" void tokg_let_others(void); /* of the same block */
#endif

TOKG_DEV void
tokg_pause(void)
{
	TOKG_STEP("pause", 0);
#ifdef TOKG_FIBERS
	tokg_let_others();
#endif
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb"); /* yield takes no time */
#endif
}

#endif

/*
 * Words of a header or payload, which an invalid producer may overwrite at any time: each is read
 * once; the copy is validated and used.
 */
TOKG_DEV uint64_t
tokg_read(const uint64_t *p)
{
#if defined(__CUDA_ARCH__) || defined(TOKG_INJECT)
	return tokg_ld(p);
#else
	return *(const volatile uint64_t *)p;
#endif
}

TOKG_DEV uint32_t
tokg_read32(const uint32_t *p)
{
#if defined(__CUDA_ARCH__) || defined(TOKG_INJECT)
	return tokg_ld32(p);
#else
	return *(const volatile uint32_t *)p;
#endif
}

TOKG_DEV tokg_vec16
tokg_read_vec16(const void *p)
{
#if defined(__CUDA_ARCH__)
	return tokg_ld_vec16(p);
#else
	const uint64_t lo = tokg_read((const uint64_t *)p), hi = tokg_read((const uint64_t *)p + 1);

	return {{(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)}};
#endif
}

/* Words published by a release of tokg_own_st_release: plain, except with TOKG_INJECT. */
TOKG_DEV void
tokg_put(uint64_t *p, uint64_t v)
{
#ifdef TOKG_INJECT
	tokg_st(p, v);
#else
	*p = v;
#endif
}

/* 16 bytes at once on a GPU, aligned to as many. */
TOKG_DEV void
tokg_put_vec16(void *p, tokg_vec16 v)
{
#ifdef __CUDA_ARCH__
	*(uint4 *)p = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
#else
	tokg_put((uint64_t *)p, v.w[0] | (uint64_t)v.w[1] << 32);
	tokg_put((uint64_t *)p + 1, v.w[2] | (uint64_t)v.w[3] << 32);
#endif
}

TOKG_DEV uint64_t
tokg_get(const uint64_t *p)
{
#if defined(__CUDA_ARCH__) || defined(TOKG_INJECT)
	return tokg_own_ld(p);
#else
	return *p;
#endif
}
