/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a vocabulary's tables, for what builds them. Set-up only. */
#ifndef TOK_VOCAB_TABLE_H
#define TOK_VOCAB_TABLE_H

#include "vocab.h"

/* Zeroed, aligned to a cache line, freed with the vocabulary; NULL if memory is short. */
void *tok_vocab_table(struct tok_vocab *v, size_t bytes);

#endif
