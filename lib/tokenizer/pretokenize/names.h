/* SPDX-License-Identifier: BSD-3-Clause */
/* Find pretokenizers by name, or by the regular expressions in a file. Set-up only. */
#pragma once

#include "tables/kinds.h"

/* All names, for error messages. */
#define TOK_PRETOK_NAMES "gpt2, cl100k, llama3, qwen2, o200k, tekken, deepseek"

/* What "ByteLevel" splits by itself. */
#define TOK_REGEX_GPT2                                                                             \
	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* Not regular expressions, but in place of one: the characters of "Punctuation" and "Digits". */
#define TOK_REGEX_PUNCTUATION "(?punctuation)"
#define TOK_REGEX_NUMERIC "(?numeric)"

const char *tok_pretok_name(enum tok_pretok kind);

/* Name of what splits a text into words, for all kinds of vocabularies. */
const char *tok_words_name(enum tok_kind kind, enum tok_pretok pretok);

/* The pretokenizer with this name, or TOK_PRETOK_NONE. */
enum tok_pretok tok_pretok_by_name(const char *name);

/*
 * The pretokenizer whose n >= 1 regular expressions, applied in order, are exactly these strings,
 * or TOK_PRETOK_NONE.
 */
enum tok_pretok tok_pretok_by_regex(const char *const *regex, size_t n);

/* The i-th regular expression of a pretokenizer; NULL: there are no more. */
const char *tok_pretok_regex(enum tok_pretok kind, size_t i);
