/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VOCABULARY_H
#define VOCABULARY_H

#include <tok.h>

/* A byte-level BPE vocabulary of 256 bytes and a few merges, made in memory. */
struct tok_vocab *vocabulary_make(void);

#endif
