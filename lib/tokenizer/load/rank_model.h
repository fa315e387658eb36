/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the loaders of rank lists. Set-up only. */
#pragma once

#include "build/model_make.h"

/*
 * Strict base64 (RFC 4648, section 4). Returns the number of bytes, or -1: not base64, or more than
 * `most` bytes. `out` needs room for 4 more than `most`.
 */
long tok_base64_decode(const char *p, size_t len, size_t most, uint8_t *out);

/* Recover the merges of all tokens that are not special. Their ids must ascend with their ranks. */
bool tok_rank_merges(const char *file, struct tok_model *m, struct tok_error *err);
