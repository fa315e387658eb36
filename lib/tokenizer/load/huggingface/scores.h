/* SPDX-License-Identifier: BSD-3-Clause */
/* The scores of a tokenizer.json's Unigram model, to the last bit as the reference has them. Set-up
 * only. */
#ifndef TOK_JSON_SCORES_H
#define TOK_JSON_SCORES_H

#include "build/model.h"

/*
 * The second values of the n pairs in the list model.vocab of the file `path`, which has been
 * parsed as JSON before, to score[0 .. n).
 */
bool tok_json_scores(const char *path, double *score, uint32_t n, struct tok_error *err);

#endif
