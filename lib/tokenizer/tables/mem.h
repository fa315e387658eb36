/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "tok.h"

/* The default allocator for tables: mmap, with huge pages where they help. */
extern const struct tok_mem tok_mem_default;

/*
 * Give back the end of a block of tok_mem_default of which only the first `used` bytes are wanted.
 * Returns how many it now has, which is what it is freed with.
 */
size_t tok_mem_shrink(void *p, size_t bytes, size_t used);
