/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of vocabularies and of their parts, and limits that loaders, tables and the hot path share.
 */
#pragma once

#include "tok.h"

#define TOK_MAX_IDS (1u << 21)	 /* limit of the packed pair table */
#define TOK_MAX_TOKEN_BYTES 1024 /* longest token accepted */
#define TOK_SPLITS_MAX 8	 /* regular expressions of a pretokenizer, applied in order */
#define TOK_NO_TOKEN 0xffffffffu

enum tok_kind {
	TOK_KIND_BPE = 0,	/* byte-level */
	TOK_KIND_WORDPIECE = 1, /* BERT */
	TOK_KIND_UNIGRAM = 2,	/* SentencePiece */
};

/* Pretokenizers, named after their first user; pretokenize/names.c has their regular expressions.
 */
enum tok_pretok {
	TOK_PRETOK_NONE = 0,   /* the file does not name it */
	TOK_PRETOK_GPT2 = 1,   /* also GPT-NeoX, ModernBERT */
	TOK_PRETOK_CL100K = 2, /* as in tiktoken: white space at the text's end is one */
	TOK_PRETOK_LLAMA3 = 3, /* cl100k as in Hugging Face files */
	TOK_PRETOK_QWEN2 = 4,  /* llama3, but each digit alone */
	TOK_PRETOK_O200K = 5,
	TOK_PRETOK_TEKKEN = 6,		       /* o200k without contractions, each digit alone */
	TOK_PRETOK_DEEPSEEK = 7,	       /* DeepSeek-V3, R1 and V4 */
	TOK_PRETOK_LAST = TOK_PRETOK_DEEPSEEK, /* with a regular expression */
	TOK_PRETOK_BERT = 16,
	TOK_PRETOK_SENTENCEPIECE = 17, /* text is split into characters */
	TOK_PRETOK_REGEX = 18,	       /* any other regular expressions */
	TOK_PRETOK_WHITE = 19,	       /* WordPiece: white space separates words */
	TOK_PRETOK_WORDS = 20,	       /* also where word characters meet others */
};

/* What becomes of a split's matches and of the gaps between them. */
enum tok_behavior {
	TOK_SPLIT_ISOLATED = 0,	     /* each is a piece */
	TOK_SPLIT_CONTIGUOUS = 1,    /* the same, but matches in a row are one piece */
	TOK_SPLIT_WITH_PREVIOUS = 2, /* a gap and the match after it are one piece */
	TOK_SPLIT_WITH_NEXT = 3,     /* a match and the gap after it are */
	TOK_SPLIT_REMOVED = 4,	     /* matches are removed */
	TOK_SPLIT_REMOVED_GAPS = 5,  /* gaps are */
};

/* BPE whose tokens end words with a mark. */
enum tok_word_end {
	TOK_WORD_END_NONE = 0,
	TOK_WORD_END_MARK = 1,
	/* also, as CLIP has it since transformers 5: where a word begins, "<|startoftext|>" and
	   "<|endoftext|>" end where they end, whatever follows */
	TOK_WORD_END_SPECIALS = 2,
};

struct tok_pretok_split {
	const char *regex;
	enum tok_behavior behavior;
};

struct tok_span {
	uint32_t off, len;
};

enum tok_added_what {
	TOK_ADDED_SPECIAL = 1 << 0,
	TOK_ADDED_LSTRIP = 1 << 1,	/* takes the white space before it */
	TOK_ADDED_RSTRIP = 1 << 2,	/* takes the white space after it */
	TOK_ADDED_SINGLE_WORD = 1 << 3, /* not beside a word character */
	TOK_ADDED_NORMALIZED = 1 << 4,	/* its normal form is searched in the normalized text */
};

/* A blank that sentencepiece puts beside a text. */
enum tok_dummy {
	TOK_DUMMY_NONE = 0,
	TOK_DUMMY_PREFIX = 1,
	TOK_DUMMY_SUFFIX = 2,
};

/* Always false, so that `return tok_fail(err, ...)` reads well. */
bool tok_fail(struct tok_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));
