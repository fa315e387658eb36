/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables in huge pages that are reserved, by libhugetlbfs where libtok is built with it. Set-up
 * only. */
#ifndef TOK_HUGE_H
#define TOK_HUGE_H

#include "tok.h"

/* Move all tables of a vocabulary there, read-only. False: they are where they were. */
bool tok_huge_move(struct tok_vocab *v, struct tok_error *err);

void tok_huge_free(void *pages);

#endif
