/* SPDX-License-Identifier: BSD-3-Clause */
/* What the modes of tokd-micro have in common. Each prints one line of JSON, and checks its work.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MICRO_LINE 64u
#define MICRO_BYTES_MAX (64ull << 30)

struct micro_options {
	uint64_t bytes;		  /* of the memory or the slot */
	uint64_t from;		  /* copy: bytes of the memory that slots come from */
	uint64_t ms;		  /* how long, at least */
	const char *text, *vocab; /* scan */
	uint32_t how;		  /* scan: index of micro.c's choices */
	int cpu;		  /* below 0: any */
};

/* 0; 1 if what was measured is wrong or cannot be. */
int micro_chase(const struct micro_options *o);
int micro_copy(const struct micro_options *o);
int micro_scan(const struct micro_options *o);
int micro_tsc(const struct micro_options *o);

/*
 * `bytes` of memory, all pages touched, of 2 MB where the kernel gives them; word i holds
 * i * MICRO_STEP. Ends the program if there is none. It is never given back.
 */
#define MICRO_STEP 0x9e3779b97f4a7c15ull
uint64_t *micro_memory(uint64_t bytes);
/* Bytes of this process's memory in huge pages. */
uint64_t micro_huge_bytes(void);

/* What lies in memory may have changed, and is used: no pass is left out or merged with another. */
static inline void
micro_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}
