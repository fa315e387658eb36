/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tokens of one token repeated, whose longer ones have the lesser ranks: runs of blanks, in
 * SentencePiece's models. As soon as two units are joined, what waited for that follows, and takes
 * units that others would have joined (merge_order.c). So such a run is encoded by what the list
 * of merges does to it alone: two tables, made by doing that.
 */
#ifndef TOK_REPEATS_H
#define TOK_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#define TOK_REPEATS_MAX 8
#define TOK_REPEAT_UNITS 64 /* tokens are of fewer */

/* A family of them. Rank ids are low .. high - 1; the merge of two units is the first. */
struct tok_repeat {
	uint32_t unit, low, high;
	uint8_t power[TOK_REPEAT_UNITS]; /* units, by rank id - low */
	uint8_t order[TOK_REPEAT_UNITS]; /* which merge of the family comes first, likewise; of
					    equal ones the leftmost */
};

struct tok_repeat_runs {
	uint8_t last[2 * TOK_REPEAT_UNITS]; /* units of the last token of a run of so many */
	uint64_t stands[TOK_REPEAT_UNITS];  /* bit j of i: tokens of i and j units stand */
	uint32_t rank[TOK_REPEAT_UNITS];    /* rank id of so many units, or TOK_NO_TOKEN */
};

#endif
