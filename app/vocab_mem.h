/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_VOCAB_MEM_H
#define TOKD_VOCAB_MEM_H

#include <tok.h>

/*
 * Memory for a vocabulary's tables: EAL's, which is huge pages unless --no-huge, on NUMA node
 * *node, or on another with a warning when that has none left. *node must outlive the vocabulary.
 */
struct tok_mem tokd_vocab_mem(int *node);

#endif
