/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that several kinds of vocabularies have: nodes, and classes of characters. Set-up only. */
#ifndef TOK_AUTOMATON_H
#define TOK_AUTOMATON_H

#include "unicode/pages.h"
#include "vocab.h"

struct tok_automaton_word {
	const uint8_t *p; /* at least one byte */
	uint32_t len;
	uint32_t token; /* what struct tok_node says of it */
};

/* Make the table of nodes from n words that differ; they are sorted on the way. */
bool tok_automaton_build(
	struct tok_vocab *v, struct tok_automaton_word *word, uint32_t n, struct tok_error *err);

/* Make the tables cat_page and cat of these classes by code point. */
bool tok_vocab_classes(struct tok_vocab *v, struct tok_runs runs, struct tok_error *err);

#endif
