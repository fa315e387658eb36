/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory for a device: shared with other processes, or private. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tokg_memory {
	void *at;	/* NULL: none */
	uint64_t bytes; /* of the mapping */
	int fd;		/* -1: private to this process */
	bool huge;
};

/*
 * `bytes` or more, zeroed. With a name a memfd, on 2 MB pages if enough are free, sealed against
 * resizing and by `seals` (F_SEAL_*); without a name private. On a NUMA node, -1: any. False and
 * `err`; call tokg_memory_free in any case.
 */
bool tokg_memory_get(struct tokg_memory *m, uint64_t bytes, const char *name, int seals, int node,
	struct tokg_error *err);
/*
 * `bytes` or more, zeroed, which others write and this process reads. A memfd that others cannot
 * seal; on 4 KB pages, because a hole punched in a larger one could be SIGBUS here. If `m` has been
 * got before: new memory at the same address, and what is stored into the old one is not seen any
 * more. False and `err`: `m` is as before.
 */
bool tokg_memory_of_others(
	struct tokg_memory *m, uint64_t bytes, const char *name, int node, struct tokg_error *err);
/* Also of one that tokg_memory_none made. */
void tokg_memory_free(struct tokg_memory *m);

static inline struct tokg_memory
tokg_memory_none(void)
{
	struct tokg_memory m = {0, 0, -1, false};

	return m;
}

/* For order_why. */
static inline const char *
tokg_memory_pages(const struct tokg_memory *m)
{
	return m->huge ? "2 MB pages" : "4 KB pages (too few 2 MB pages are free)";
}

#ifdef __cplusplus
}
#endif
