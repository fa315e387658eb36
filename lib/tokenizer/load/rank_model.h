/* SPDX-License-Identifier: BSD-3-Clause */
/* What loaders of tiktoken's kind share. Set-up only. */
#ifndef TOK_RANK_MODEL_H
#define TOK_RANK_MODEL_H

#include "build/model_make.h"

/*
 * Strict base64 (RFC 4648, section 4). How many bytes; -1 if it is not, or they are more than
 * `most`. out has room for 4 more.
 */
long tok_base64_decode(const char *p, size_t len, size_t most, uint8_t *out);

/* The merges of the tokens that are not special, whose ids rise with their ranks. */
bool tok_rank_merges(const char *file, struct tok_model *m, struct tok_error *err);

#endif
