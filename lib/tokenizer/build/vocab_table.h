/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that walk the list of a vocabulary's tables. Set-up only. */
#pragma once

#include "vocab.h"

/* A line of TOK_TABLES. */
struct tok_table_place {
	const char *name;
	size_t field;	  /* of its pointer in struct tok_vocab */
	uint32_t element; /* bytes */
};
extern const struct tok_table_place tok_table_places[TOK_N_TABLES];

/* A table's memory; NULL: the vocabulary has no such table. */
void *tok_vocab_table(const struct tok_vocab *v, enum tok_table which);

/* Give the vocabulary a table that lies at `p`; its memory is the caller's affair. */
void tok_vocab_table_set(struct tok_vocab *v, enum tok_table which, void *p, size_t bytes);

/* Elements of a table. */
uint32_t tok_vocab_table_n(const struct tok_vocab *v, enum tok_table which);

/*
 * Make a table of n elements: zeroed, aligned to a cache line, freed with the vocabulary. False if
 * memory is short.
 */
bool tok_vocab_table_make(struct tok_vocab *v, enum tok_table which, size_t n);

/* Free it again. */
void tok_vocab_table_drop(struct tok_vocab *v, enum tok_table which);

#define TOK_LAYOUT_PAGE 4096u

/*
 * Places for tables of such sizes, in the order of the list, after `from`: those of a page and
 * more at a page's beginning, others at a cache line's. Returns where the last one ends.
 */
uint64_t tok_vocab_layout(
	const size_t bytes[TOK_N_TABLES], uint64_t from, uint64_t off[TOK_N_TABLES]);

/* Give back the memory of all tables, whose pointers are then stale. */
void tok_vocab_leave(struct tok_vocab *v);

/*
 * Places that a search in open addressing looks at, at most. Tables are two thirds full, where a
 * run of 2048 does not come about by chance: tokens were chosen for their hashes.
 */
#define TOK_PROBES_MAX 2048u

/* What look-ups in open addressing go by, from how large those tables are that are there. */
void tok_vocab_shifts(struct tok_vocab *v);

/* Move all tables of a vocabulary to reserved huge pages, read-only. False: they were not moved, as
 * without libhugetlbfs. (huge.c) */
bool tok_huge_move(struct tok_vocab *v, struct tok_error *err);

void tok_huge_free(void *pages);
