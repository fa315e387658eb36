/* SPDX-License-Identifier: BSD-3-Clause */
/* Compatibility decompositions and combining marks. Data in compat_tables.c (generated). */
#pragma once

#include <stdint.h>

#define TOK_COMPAT_PARTS 18 /* most code points that one becomes */

/*
 * Characters whose compatibility decomposition is not their canonical one, ascending: code point
 * << 24 | run << 17 | first part << 5 | parts. The parts are not decomposed further by either. As
 * many code points as `run` says follow the first: each becomes the code point that follows that of
 * the one before.
 */
extern const uint64_t tok_compat[];
extern const uint32_t tok_compat_n;
extern const uint32_t tok_compat_part[];

/* Combining marks (general category M): where a run begins, where it ends, and so on. */
extern const uint32_t tok_marks[];
extern const uint32_t tok_marks_n;
