/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Training of vocabularies: text files to a tokenizer.json, byte-level BPE or WordPiece, with the
 * merges and ids that Hugging Face `tokenizers` gives for the same settings (doc/user/training.md
 * says where its own vary from run to run). Set-up code: it allocates, and stops at what is wrong.
 */
#ifndef TOK_TRAIN_H
#define TOK_TRAIN_H

#include "build/model.h"

enum tok_train_stage {
	TOK_TRAIN_COUNTS, /* of bytes of the files */
	TOK_TRAIN_MERGES, /* of tokens of the vocabulary */
};

/* Told now and then how far it is; total 0: not known. */
struct tok_train_progress {
	void (*show)(void *ctx, enum tok_train_stage stage, uint64_t done, uint64_t total);
	void *ctx;
};

struct tok_train_options {
	enum tok_kind kind;
	uint32_t vocab_size; /* ids, special tokens and alphabet with them; at most TOK_MAX_IDS */
	uint64_t min_frequency;	    /* of a pair that is merged */
	const char *const *special; /* special tokens: the first ids, in this order */
	uint32_t n_special;
	uint32_t max_token_length; /* merges make tokens of fewer characters (bytes); 0: any */
	struct tok_train_progress progress; /* show may be NULL */
	/* byte-level BPE */
	enum tok_pretok pretok;
	/* WordPiece */
	bool clean_text, handle_chinese_chars, lowercase; /* of BertNormalizer */
	int strip_accents;				  /* likewise: 0, 1, or -1: as lowercase */
	uint32_t limit_alphabet;      /* most characters that have a token; 0: any number */
	const char *initial_alphabet; /* UTF-8: characters that have one in any case; may be NULL */
};

/*
 * Train on files, one after the other; "-" is standard input. Each line with its end is a text by
 * itself. The vocabulary is written to `out`, as a whole or not at all, and equal for equal input.
 * Memory is linear in the distinct words and the longest line. False with *err filled in.
 */
bool tok_train(const struct tok_train_options *o, const char *const *files, uint32_t n_files,
	const char *out, struct tok_error *err);

#endif
