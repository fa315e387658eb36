/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOK_MEM_H
#define TOK_MEM_H

#include "tok.h"

/* The default allocator for tables: mmap, with huge pages where they help. */
extern const struct tok_mem tok_mem_default;

#endif
