/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a loader hands to vocab_build.c: a byte-level BPE model, or a WordPiece one, as plain lists,
 * in ordinary heap memory, freed after the tables are built. Set-up only.
 */
#ifndef TOK_MODEL_H
#define TOK_MODEL_H

#include "tables/kinds.h"
#include "tables/metaspace.h"
#include "tables/repeats.h"

struct tok_model_token {
	uint32_t off; /* of its bytes in `bytes` */
	uint32_t len; /* 0: no token has this id */
	bool special; /* the model never produces it; decodes to its text */
	bool byte;    /* of pieces: stands for one byte of a character that is none */
	bool outside; /* nothing is encoded to it. WordPiece, Unigram: it was added to the model;
			 pieces: a byte that is a token as a character too, text that never comes */
};

/* A text that is an id wherever it stands. */
struct tok_model_added {
	uint32_t id;
	uint32_t what;	   /* enum tok_added_what */
	uint32_t off, len; /* of its text in added_bytes */
};

struct tok_model_merge {
	uint32_t left, right, result; /* ids */
	uint32_t
		rank; /* they rise; of equal ones, which SentencePiece has, the leftmost is first */
};

/* See repeats.h; ids, in the order of the model's merges. */
struct tok_model_repeat {
	uint32_t unit, n;
	uint32_t id[TOK_REPEAT_UNITS];
	uint8_t power[TOK_REPEAT_UNITS], order[TOK_REPEAT_UNITS];
};

/* BertNormalizer, the WordPiece model and its decoder. */
struct tok_model_bert {
	bool clean_text, handle_chinese_chars, strip_accents, lowercase;
	bool cleanup;	    /* decoding leaves out blanks before punctuation */
	uint32_t max_chars; /* longer words are unknown */
	uint32_t unk;	    /* id of the unknown token */
};

/*
 * A Unigram model, and what comes before and behind it. Where `blanks` is set, tokens have a blank
 * for U+2581. What is done to a text is done in the order of the fields. With `sentencepiece` it is
 * done as that package does it (spm_norm.h), and added tokens are its USER_DEFINED pieces. A BPE
 * model may have that too, in front of its merges: all but scores. Its USER_DEFINED pieces are
 * added tokens twice then, those that the normalizer leaves as they are and those of what is
 * normalized.
 */
struct tok_model_unigram {
	uint8_t *charsmap; /* units of its trie as the file has them, then texts; or NULL */
	size_t charsmap_bytes, charsmap_trie;
	bool strip_left, strip_right; /* of white space */
	bool squeeze;		      /* several blanks become one, or U+2581: */
	bool squeeze_to_mark;
	bool sentencepiece;
	enum tok_dummy dummy;
	bool words;		/* text is cut at white space, which is left out */
	bool blanks;		/* a blank and U+2581 are the same */
	enum tok_prefix prefix; /* TOK_PREFIX_EACH at most; with `words` before each word */
	bool split;		/* a blank begins a word */
	double *score;		/* by id */
	double unknown;		/* sentencepiece: of a character that is no piece */
	uint32_t n_pieces;	/* ids below are of the model */
	uint32_t unk;
	bool byte_fallback;
	bool decode_strips; /* blanks of the first token are left out; sentencepiece: one of them */
	struct tok_span unk_text; /* sentencepiece: in bytes, what `unk` decodes to */
};

struct tok_model {
	const char *format; /* static string, see tok_vocab_info */
	enum tok_kind kind;
	enum tok_pretok pretok;
	bool nfc;	   /* normalizer: form C */
	uint32_t n_tokens; /* ids are below this */
	uint32_t n_parts;  /* but for so many at the end: parts of characters, which are no ids */
	struct tok_metaspace metaspace;
	struct tok_model_token *token;
	uint8_t *bytes;
	size_t n_bytes;
	uint32_t n_added; /* of formats that list them; otherwise the special ones are */
	struct tok_model_added *added;
	uint8_t *added_bytes;
	uint32_t n_merges;
	struct tok_model_merge *merge;
	uint32_t n_repeats; /* set by tok_model_order_merges */
	struct tok_model_repeat repeat[TOK_REPEATS_MAX];
	bool ignore_merges;  /* a pretoken that is a token is that token, whatever merging makes of
				it */
	bool greedy;	     /* longest match within pretokens instead of merging */
	uint32_t n_unmerged; /* tokens that merging never makes; set by tok_model_live_merges */
	struct tok_model_bert bert;
	struct tok_model_unigram unigram;
	struct tok_shape shape; /* not in the checksum */
};

/* Loaders. Each returns false with *err filled in and leaves *m freed. path is a file. */
bool tok_load_tokenizer_json(const char *path, struct tok_model *m, struct tok_error *err);
bool tok_load_gpt2_pair(const char *vocab_json, const char *merges_txt, const char *pretokenizer,
	struct tok_model *m, struct tok_error *err);
/* pretokenizer: NULL, or the name the user gave for a file that is not known by its content. */
bool tok_load_tiktoken(
	const char *path, const char *pretokenizer, struct tok_model *m, struct tok_error *err);

/* Keep the merges that can happen, and count the tokens that none makes. */
bool tok_model_live_merges(struct tok_model *m, struct tok_error *err);

/* Put live merges into an order in which parts come before the whole. */
bool tok_model_order_merges(struct tok_model *m, struct tok_error *err);
/* A SentencePiece .model. */
bool tok_load_sp_model(const char *path, struct tok_model *m, struct tok_error *err);
/* A BERT vocab.txt; `pretokenizer`: NULL, "bert-uncased" or "bert-cased". */
bool tok_load_bert_vocab(
	const char *path, const char *pretokenizer, struct tok_model *m, struct tok_error *err);

/* Canonical checksum of a model (see tok_vocab_info.checksum). */
uint32_t tok_model_checksum(const struct tok_model *m);
void tok_model_free(struct tok_model *m);

/* Build the tables; drops the merges of *m that cannot happen. Frees nothing of *m. */
struct tok_vocab *tok_vocab_build(struct tok_model *m, const char *name, const char *path,
	const struct tok_mem *mem, struct tok_error *err);

#endif
