/* SPDX-License-Identifier: BSD-3-Clause */
/* Pretokenizers by name and by the regular expressions that files have for them. Set-up only. */
#ifndef TOK_PRETOK_NAMES_H
#define TOK_PRETOK_NAMES_H

#include "tables/kinds.h"

/* All names, for errors. */
#define TOK_PRETOK_NAMES "gpt2, cl100k, llama3, qwen2, o200k, tekken, deepseek"

const char *tok_pretok_name(enum tok_pretok kind);

/* What makes words of a text, for all kinds of vocabularies. */
const char *tok_words_name(enum tok_kind kind, enum tok_pretok pretok);

/* TOK_PRETOK_NONE: no such name. */
enum tok_pretok tok_pretok_by_name(const char *name);

/*
 * By the regular expressions of a file, one after the other, compared character by character; n at
 * least 1. TOK_PRETOK_NONE: not known.
 */
enum tok_pretok tok_pretok_by_regex(const char *const *regex, size_t n);

/* The i-th of the regular expressions that a file has for it; NULL: there are no more. */
const char *tok_pretok_regex(enum tok_pretok kind, size_t i);

#endif
