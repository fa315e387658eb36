/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Train a vocabulary, byte-level BPE or WordPiece, from text files and write a tokenizer.json.
 * Merges and ids are those of Hugging Face `tokenizers` with the same settings
 * (doc/user/training.md lists where its results vary from run to run). Set-up code: it allocates,
 * and stops at the first error.
 */
#pragma once

#include "build/model.h"

enum tok_train_stage {
	TOK_TRAIN_COUNTS, /* progress in bytes of the files */
	TOK_TRAIN_MERGES, /* progress in tokens of the vocabulary */
};

/* Called from time to time to report progress. total 0: not known. */
struct tok_train_progress {
	void (*show)(void *ctx, enum tok_train_stage stage, uint64_t done, uint64_t total);
	void *ctx;
};

struct tok_train_options {
	enum tok_kind kind;
	uint32_t vocab_size; /* ids, including special tokens and alphabet; at most TOK_MAX_IDS */
	uint64_t min_frequency;	    /* do not merge rarer pairs */
	const char *const *special; /* special tokens: the first ids, in this order */
	uint32_t n_special;
	uint32_t max_token_length; /* merges make tokens of fewer characters (bytes); 0: any */
	struct tok_train_progress progress; /* show may be NULL */
	/* byte-level BPE */
	enum tok_pretok pretok;
	/* WordPiece */
	bool clean_text, handle_chinese_chars, lowercase; /* of BertNormalizer */
	int strip_accents;				  /* likewise: 0, 1, or -1: as lowercase */
	uint32_t limit_alphabet;      /* most characters that get a token; 0: no limit */
	const char *initial_alphabet; /* UTF-8: characters that always get a token; may be NULL */
};

/*
 * Train on files in order; "-" is standard input. Each line, with its end, is a separate text. The
 * vocabulary is written to `out`, which is replaced atomically. Equal input gives an equal file.
 * Memory is linear in the distinct words and the longest line. On error returns false and fills in
 * *err.
 */
bool tok_train(const struct tok_train_options *o, const char *const *files, uint32_t n_files,
	const char *out, struct tok_error *err);
