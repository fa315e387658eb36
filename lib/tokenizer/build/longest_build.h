/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tries of longest.h. Set-up only. */
#pragma once

#include "vocab.h"

/* A token of a trie: its bytes, what stands for it in a node, and for longest.h which trie. */
struct tok_trie_word {
	const uint8_t *p; /* at least one byte */
	uint32_t len, id;
	uint32_t root;	/* TOK_LONGEST_BEGIN or TOK_LONGEST_GO_ON; elsewhere 0 */
	uint64_t first; /* tok_trie_sort(): its first bytes */
};

/*
 * Sort n words by root, then by bytes. False with *err filled in: two are equal, or memory is
 * short.
 */
bool tok_trie_sort(struct tok_trie_word *word, uint32_t n, struct tok_error *err);

/*
 * Build the tries of n pieces in the tables `nodes` and `pops` of *l, which is a part of *v. Sorts
 * piece[]. Equal pieces are an error.
 */
bool tok_longest_build(struct tok_vocab *v, struct tok_longest *l, enum tok_table nodes,
	enum tok_table pops, struct tok_trie_word *piece, uint32_t n, struct tok_error *err);
