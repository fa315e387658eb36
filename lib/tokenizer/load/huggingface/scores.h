/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the scores of a Unigram model in a tokenizer.json, bit-exact with the reference. Set-up
 * only.
 */
#pragma once

#include "build/model.h"

/*
 * Fill score[0 .. n) with the second values of the n pairs of model.vocab in the text of `file`,
 * which is known to be valid JSON.
 */
bool tok_json_scores(
	const char *file, char *text, double *score, uint32_t n, struct tok_error *err);
