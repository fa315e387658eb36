/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a vocabulary's tables, for what builds them. Set-up only. */
#ifndef TOK_VOCAB_TABLE_H
#define TOK_VOCAB_TABLE_H

#include "vocab.h"

/* Zeroed, aligned to a cache line, freed with the vocabulary; NULL if memory is short. */
void *tok_vocab_table(struct tok_vocab *v, size_t bytes);

/*
 * Index of the page that equals `page` among the *n at `pages`, each of so many bytes; it is put
 * behind them if there is none. `page` may lie in the same memory, not before their end.
 */
uint16_t tok_vocab_page(void *pages, uint32_t *n, const void *page, size_t bytes);

#endif
