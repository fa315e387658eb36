/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Families of tokens that repeat one token (the unit), where longer tokens have lower ranks: runs
 * of blanks in SentencePiece's models. As soon as two units merge, the merges of longer tokens come
 * next, and they take units that other merges would have joined (merge_order.c). So such a run is
 * encoded on its own, by two tables that are made by applying the merges to runs of all lengths.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOK_REPEATS_MAX 8
#define TOK_REPEAT_UNITS 64 /* tokens have fewer units */

/* A family of them. Rank ids are low .. high - 1; the merge of two units is the first. */
struct tok_repeat {
	uint32_t unit, low, high;
	uint8_t power[TOK_REPEAT_UNITS]; /* by rank id - low: number of units */
	uint8_t order[TOK_REPEAT_UNITS]; /* by rank id - low: order of the merge in the family; of
					    equal ones the leftmost comes first */
};

/* Number of units of a token of the family, or 0. */
static inline uint32_t
tok_repeat_units(const struct tok_repeat *f, uint32_t token)
{
	if (token == f->unit)
		return 1;
	return token - f->low < f->high - f->low ? f->power[token - f->low] : 0;
}

struct tok_repeat_runs {
	uint8_t last[2 * TOK_REPEAT_UNITS]; /* [n]: units of the last token of a run of n */
	uint64_t stands[TOK_REPEAT_UNITS];  /* [i] bit j: tokens of i and j units stand side by side
					     */
	uint32_t rank[TOK_REPEAT_UNITS]; /* [n]: rank id of the token of n units, or TOK_NO_TOKEN */
};

/*
 * Runs of one byte: the length of the last token of the encoding of each run, up to twice the
 * longest token. Two tokens of i and j such bytes stand side by side if and only if the last token
 * of i + j bytes has j. Undoing their merges would take as many steps as they have bytes.
 */
#define TOK_BYTE_RUN_MAX 255 /* bytes of a token; if one is longer, its byte has no table */
#define TOK_BYTE_RUN_NONE UINT16_MAX
struct tok_byte_runs {
	uint16_t from[256]; /* by byte: where its table begins in last[], or TOK_BYTE_RUN_NONE */
	/* [from + n]: bytes of the last token of a run of n; with room for any two tokens */
	uint8_t last[8192 + 2 * TOK_BYTE_RUN_MAX];
};
