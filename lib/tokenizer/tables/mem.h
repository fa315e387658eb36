/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOK_MEM_H
#define TOK_MEM_H

#include "tok.h"

/* Where tables live unless the caller says otherwise: mmap, with huge pages where they help. */
extern const struct tok_mem tok_mem_default;

#endif
