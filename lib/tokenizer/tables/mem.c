/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem.h"

#define HUGE_PAGE ((size_t)2 << 20)

static size_t
round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* For at least a huge page: map memory aligned to one, and ask the kernel for huge pages. */
static void *
map_huge(size_t bytes)
{
	size_t size = round_up(bytes, HUGE_PAGE), spare = size + HUGE_PAGE;
	uint8_t *p = mmap(NULL, spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at;

	if (p == MAP_FAILED)
		return NULL;
	at = (uint8_t *)round_up((uintptr_t)p, HUGE_PAGE);
	if (at > p)
		munmap(p, (size_t)(at - p));
	if (at + size < p + spare)
		munmap(at + size, (size_t)(p + spare - at - size));
	madvise(at, size, MADV_HUGEPAGE); /* only advice: without it, pages are small */
	return at;
}

static void *
mem_alloc(void *ctx, size_t bytes, size_t align)
{
	void *p;

	(void)ctx;
	if (bytes >= HUGE_PAGE)
		return map_huge(bytes);
	p = aligned_alloc(align, round_up(bytes, align));
	return p == NULL ? NULL : memset(p, 0, bytes);
}

static void
mem_free(void *ctx, void *p, size_t bytes)
{
	(void)ctx;
	if (bytes >= HUGE_PAGE)
		munmap(p, round_up(bytes, HUGE_PAGE));
	else
		free(p);
}

size_t
tok_mem_shrink(void *p, size_t bytes, size_t used)
{
	const size_t mapped = round_up(bytes, HUGE_PAGE);
	const size_t kept = used == 0 ? HUGE_PAGE : round_up(used, HUGE_PAGE);

	if (bytes < HUGE_PAGE || kept >= mapped)
		return bytes;
	munmap((uint8_t *)p + kept, mapped - kept);
	return kept;
}

const struct tok_mem tok_mem_default = {mem_alloc, mem_free, NULL};
