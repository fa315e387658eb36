/* SPDX-License-Identifier: BSD-3-Clause */
/* The automaton of struct tok_node over the tokens of a vocabulary. Set-up only. */
#ifndef TOK_AUTOMATON_H
#define TOK_AUTOMATON_H

#include "vocab.h"

struct tok_automaton_word {
	const uint8_t *p; /* at least one byte */
	uint32_t len;
	uint32_t token; /* what struct tok_node says of it */
};

/* Make the table of nodes from n words that differ; they are sorted on the way. */
bool tok_automaton_build(
	struct tok_vocab *v, struct tok_automaton_word *word, uint32_t n, struct tok_error *err);

#endif
