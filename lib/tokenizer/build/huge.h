/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables in reserved huge pages, if libtok is built with libhugetlbfs. Set-up only. */
#pragma once

#include "tok.h"

/* Move all tables of a vocabulary to huge pages, read-only. False: they were not moved. */
bool tok_huge_move(struct tok_vocab *v, struct tok_error *err);

void tok_huge_free(void *pages);
