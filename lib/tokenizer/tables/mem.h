/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "tok.h"

/* The default allocator for tables: mmap, with huge pages where they help. */
extern const struct tok_mem tok_mem_default;
