/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The distinct words as one array of tokens. A token of n characters takes n places. The first and
 * the last hold its id, so both neighbours of a token are found directly. TRAIN_END separates words
 * and stands at both ends of the array.
 *
 *   place   0    1  2  3    4    5  6    7
 *   word    #    t  h  e    #    o  f    #
 *   merged  #   th th  e    #   of of    #
 */
#pragma once

#include "queue.h"
#include "tokens.h"

#define TRAIN_END 0xffffffffu	 /* of a word */
#define TRAIN_INSIDE 0xfffffffeu /* of a token, where another began */

struct train_place {
	uint32_t token;
	uint32_t word;
};

struct train_text {
	struct train_place *place;
	uint64_t n;
	uint64_t *count; /* by word: how often it occurs */
	uint32_t n_words;
};

/* Add the words with at least two characters that have tokens. Other characters are dropped. */
bool train_text_make(struct train_text *x, const struct tok_train_options *o,
	const struct train_words *w, const struct train_alphabet *a, struct tok_error *err);
void train_text_free(struct train_text *x);

/* Insert all pairs of neighbours into the queue. */
bool train_text_pairs(const struct train_text *x, struct train_queue *q, struct tok_error *err);
