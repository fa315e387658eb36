/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tries of longest.h. Set-up only. */
#pragma once

#include "vocab.h"

/* A token, and the trie that it belongs to. */
struct tok_longest_piece {
	const uint8_t *p;
	uint32_t len, id; /* outside id */
	uint32_t root;	  /* TOK_LONGEST_BEGIN or TOK_LONGEST_GO_ON */
};

/*
 * Build the tries of n pieces in the tables `nodes` and `pops` of *l, which is a part of *v. Sorts
 * piece[]. Equal pieces are an error.
 */
bool tok_longest_build(struct tok_vocab *v, struct tok_longest *l, enum tok_table nodes,
	enum tok_table pops, struct tok_longest_piece *piece, uint32_t n, struct tok_error *err);
