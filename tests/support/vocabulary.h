/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <tok.h>

#define VOCABULARY_MERGES 20
#define VOCABULARY_SPECIALS 12

/* A byte-level BPE vocabulary of 256 bytes and the first n_merges of a few, made in memory. */
struct tok_vocab *vocabulary_make(uint32_t n_merges);
/* The same, with form C before it. */
struct tok_vocab *vocabulary_make_nfc(uint32_t n_merges);
/* The same, with special tokens behind. */
struct tok_vocab *vocabulary_make_special(uint32_t n_merges);
