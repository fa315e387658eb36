/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte-level BPE whose tokens end words with a mark (CLIP). In libtok the mark is a blank, which no
 * word has: each byte is first merged with it. Set-up only.
 */
#pragma once

#include "load/json_rules.h"

#define TOK_JSON_WORD_END "</w>"

/* Does the model have end_of_word_suffix? */
bool tok_json_has_word_ends(const struct tok_json *root);

/*
 * The pretokenizer: Split that removes the gaps, then ByteLevel. The expression must be known: its
 * matches have no white space, and its gaps nothing else.
 */
bool tok_json_word_ends_pretok(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/* Rewrite the tokens and merges that were read. There is room for a merge of each byte. */
bool tok_json_word_ends(const char *file, struct tok_model *m, struct tok_error *err);
