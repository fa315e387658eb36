/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "names.h"

static const char *const names[] = {
	[TOK_PRETOK_NONE] = "none",
	[TOK_PRETOK_GPT2] = "gpt2",
	[TOK_PRETOK_CL100K] = "cl100k",
	[TOK_PRETOK_LLAMA3] = "llama3",
	[TOK_PRETOK_QWEN2] = "qwen2",
	[TOK_PRETOK_O200K] = "o200k",
	[TOK_PRETOK_TEKKEN] = "tekken",
	[TOK_PRETOK_DEEPSEEK] = "deepseek",
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))
static_assert(N_NAMES == TOK_PRETOK_LAST + 1, "each has a name");

#define REGEX_MAX 3

#define PREFIX "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPERS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Each expression as some file writes it. Two spellings of the same expression are two entries. */
static const struct {
	enum tok_pretok kind;
	const char *regex[REGEX_MAX]; /* NULL: no more */
} known[] = {
	{TOK_PRETOK_GPT2, {TOK_REGEX_GPT2}},
	{TOK_PRETOK_GPT2,
		{"'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|"
		 "\\s+(?!\\S)|\\s"}},
	{TOK_PRETOK_CL100K,
		{"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}|"
		 " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"}},
	{TOK_PRETOK_LLAMA3,
		{CONTRACTION "|" PREFIX
			     "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES}},
	{TOK_PRETOK_QWEN2,
		{CONTRACTION "|" PREFIX "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES}},
	{TOK_PRETOK_O200K, {PREFIX UPPERS "*" LOWERS "+" CONTRACTION "?|" PREFIX UPPERS "+" LOWERS
					  "*" CONTRACTION
					  "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES}},
	{TOK_PRETOK_TEKKEN, {PREFIX UPPERS "*" LOWERS "+|" PREFIX UPPERS "+" LOWERS
					   "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES}},
	/* The same with literal line ends instead of escapes. */
	{TOK_PRETOK_DEEPSEEK,
		{"\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
			"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
			"[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
			"\\s*[\r\n]+|\\s+(?!\\S)|\\s+"}},
};

const char *
tok_pretok_name(enum tok_pretok kind)
{
	if (kind == TOK_PRETOK_REGEX)
		return "regex";
	return kind == TOK_PRETOK_SENTENCEPIECE ? "none" : names[kind];
}

const char *
tok_words_name(enum tok_kind kind, enum tok_pretok pretok)
{
	switch (kind) {
	case TOK_KIND_BPE:
		break;
	case TOK_KIND_WORDPIECE:
		return pretok == TOK_PRETOK_BERT    ? "bert"
		       : pretok == TOK_PRETOK_WHITE ? "white space"
						    : "words";
	case TOK_KIND_UNIGRAM:
		return "metaspace";
	}
	return tok_pretok_name(pretok);
}

enum tok_pretok
tok_pretok_by_name(const char *name)
{
	for (size_t i = 1; i < N_NAMES; i++) {
		if (strcmp(names[i], name) == 0)
			return (enum tok_pretok)i;
	}
	return TOK_PRETOK_NONE;
}

enum tok_pretok
tok_pretok_by_regex(const char *const *regex, size_t n)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t k = 0;

		while (k < n && k < REGEX_MAX && known[i].regex[k] != NULL &&
			strcmp(known[i].regex[k], regex[k]) == 0)
			k++;
		if (k == n && (k == REGEX_MAX || known[i].regex[k] == NULL))
			return known[i].kind;
	}
	return TOK_PRETOK_NONE;
}

const char *
tok_pretok_regex(enum tok_pretok kind, size_t i)
{
	size_t k = 0;

	while (k < sizeof(known) / sizeof(known[0]) && known[k].kind != kind)
		k++;
	return k == sizeof(known) / sizeof(known[0]) || i >= REGEX_MAX ? NULL : known[k].regex[i];
}
