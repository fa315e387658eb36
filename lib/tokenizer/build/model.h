/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model as plain lists: loaders fill it in, vocab_build.c reads it. It is in heap memory, and is
 * freed after the tables are built. Set-up only.
 */
#pragma once

#include "tables/kinds.h"
#include "tables/metaspace.h"
#include "tables/norm.h"
#include "tables/repeats.h"

struct tok_model_token {
	uint32_t off; /* of its bytes in `bytes` */
	uint32_t len; /* 0: no token has this id */
	bool special; /* the model never produces it; decodes to its text */
	bool byte;    /* SentencePiece: stands for one byte of a character that is not a piece */
	bool outside; /* encoding never gives it. WordPiece, Unigram: added to the model.
			 SentencePiece: a byte that is also a character's token, or text that cannot
			 occur */
};

/* An added token. */
struct tok_model_added {
	uint32_t id;
	uint32_t what;	   /* enum tok_added_what */
	uint32_t off, len; /* of its text in added_bytes */
};

struct tok_model_merge {
	uint32_t left, right, result; /* ids */
	uint32_t
		rank; /* ascending; of equal ranks (SentencePiece) the leftmost merge comes first */
};

/* See repeats.h; ids, in the order of the model's merges. */
struct tok_model_repeat {
	uint32_t unit, n;
	uint32_t id[TOK_REPEAT_UNITS];
	uint8_t power[TOK_REPEAT_UNITS], order[TOK_REPEAT_UNITS];
};

/* What a map does to each character, one after the other. */
enum tok_map_op_kind {
	TOK_OP_LOWER,	/* lower case */
	TOK_OP_COMPAT,	/* compatibility decomposition, which is not ordered yet */
	TOK_OP_MARKS,	/* combining marks are dropped */
	TOK_OP_ACCENTS, /* the same, but only nonspacing ones, as BERT does */
	TOK_OP_CLEAN,	/* BERT: control characters are dropped, white space is a blank */
	TOK_OP_AROUND,	/* BERT: a blank before and after each ideograph */
	TOK_OP_CHAR,	/* one character becomes a text */
};

struct tok_map_op {
	enum tok_map_op_kind kind;
	uint32_t cp; /* TOK_OP_CHAR */
	uint8_t n_to, to[TOK_LITERAL_BYTES];
};
#define TOK_MAP_OPS_MAX 6

struct tok_model_step {
	enum tok_norm_kind kind;
	uint32_t n_ops; /* TOK_NORM_MAP */
	struct tok_map_op op[TOK_MAP_OPS_MAX];
	struct tok_literal literal; /* TOK_NORM_LITERAL */
	uint32_t arg;		    /* TOK_NORM_SQUEEZE, _STRIP */
};

/* The steps of a normalizer. Zero bytes: none. */
struct tok_model_norm {
	uint32_t n;
	struct tok_model_step step[TOK_NORMS_MAX];
};

/* Is it form C alone? */
static inline bool
tok_norm_is_form_c(const struct tok_model_norm *norm)
{
	return norm->n == 1 && norm->step[0].kind == TOK_NORM_FORM_C;
}

/* BertNormalizer, the WordPiece model and its decoder. */
struct tok_model_bert {
	bool clean_text, handle_chinese_chars, strip_accents, lowercase;
	bool cleanup;	    /* decoding drops blanks before punctuation */
	uint32_t max_chars; /* longer words are unknown */
	uint32_t unk;	    /* id of the unknown token */
	bool whole;	    /* WordLevel: no token continues a word */
};

/*
 * A Unigram model with its normalizer and decoder. If `blanks` is set, tokens have a blank instead
 * of U+2581. The steps of normalization are applied in the order of the fields. `sentencepiece`:
 * normalize as that package does (spm_norm.h); added tokens are its USER_DEFINED pieces.
 *
 * A BPE model may use all of this except scores, before its merges. Then each USER_DEFINED piece is
 * an added token twice: once for the normalizer, which keeps it, and once for normalized text.
 */
struct tok_model_unigram {
	uint8_t *charsmap; /* units of its trie in the file's format, then texts; or NULL */
	size_t charsmap_bytes, charsmap_trie;
	bool strip_left, strip_right; /* of white space */
	bool squeeze;		      /* replace several blanks by one, or by U+2581: */
	bool squeeze_to_mark;
	bool sentencepiece;
	enum tok_dummy dummy;
	bool words;		/* split text at white space, which is dropped */
	bool blanks;		/* a blank and U+2581 are the same */
	enum tok_prefix prefix; /* TOK_PREFIX_EACH at most; with `words` before each word */
	bool split;		/* a blank begins a word */
	double *score;		/* by id */
	double unknown;		/* sentencepiece: score of a character that is not a piece */
	uint32_t n_pieces;	/* ids below this are the model's */
	uint32_t unk;
	bool byte_fallback;
	bool decode_strips; /* drop the blanks that the first token begins with; sentencepiece: only
			       one */
	struct tok_span unk_text; /* sentencepiece: in bytes, what `unk` decodes to */
};

struct tok_model {
	const char *format; /* static string, see tok_vocab_info */
	enum tok_kind kind;
	enum tok_pretok pretok;
	char *regex[TOK_SPLITS_MAX]; /* TOK_PRETOK_REGEX: applied in order; NULL: no more */
	enum tok_behavior behavior[TOK_SPLITS_MAX];
	struct tok_model_norm norm; /* before all others, which are BERT's and Unigram's */
	uint32_t n_tokens;	    /* ids are below this */
	uint32_t n_parts; /* the last n_parts tokens are parts of characters and not real ids */
	struct tok_metaspace metaspace;
	struct tok_model_token *token;
	uint8_t *bytes;
	size_t n_bytes;
	uint32_t n_added; /* 0 if the format does not list them: then the special tokens are used */
	struct tok_model_added *added;
	uint8_t *added_bytes;
	uint32_t n_merges;
	struct tok_model_merge *merge;
	uint32_t n_repeats; /* set by tok_model_order_merges */
	struct tok_model_repeat repeat[TOK_REPEATS_MAX];
	/* see tok_vocab.word_end; all bytes are there with and without */
	enum tok_word_end word_end;
	bool ignore_merges;  /* a pretoken that is a token is not merged */
	bool digits_apart;   /* see tok_vocab.digits_apart; no merge joins them */
	bool greedy;	     /* longest match within pretokens instead of merging */
	uint32_t n_unmerged; /* tokens that no merge makes; set by tok_model_live_merges */
	struct tok_model_bert bert;
	struct tok_model_unigram unigram;
	struct tok_shape shape; /* not in the checksum */
};

/* Loaders. Each returns false with *err filled in and leaves *m freed. path is a file. */
/* text: NULL, or the file's: `size` bytes, then a NUL, which it frees. */
bool tok_load_tokenizer_json(
	const char *path, char *text, size_t size, struct tok_model *m, struct tok_error *err);
bool tok_load_gpt2_pair(const char *vocab_json, const char *merges_txt, const char *pretokenizer,
	struct tok_model *m, struct tok_error *err);
/* pretokenizer: NULL, or the user's choice for a file that is not recognised by its content. */
bool tok_load_tiktoken(
	const char *path, const char *pretokenizer, struct tok_model *m, struct tok_error *err);

/* Keep the merges that can be applied, and count the tokens that no merge makes. */
bool tok_model_live_merges(struct tok_model *m, struct tok_error *err);

/* Order live merges so that the parts of a token are made before the token. */
bool tok_model_order_merges(struct tok_model *m, struct tok_error *err);
/* A SentencePiece .model. */
bool tok_load_sp_model(const char *path, struct tok_model *m, struct tok_error *err);
/* A BERT vocab.txt; `pretokenizer`: NULL, "bert-uncased" or "bert-cased". */
bool tok_load_bert_vocab(
	const char *path, const char *pretokenizer, struct tok_model *m, struct tok_error *err);

/* Canonical checksum of a model (see tok_vocab_info.checksum). */
uint32_t tok_model_checksum(const struct tok_model *m);
void tok_model_free(struct tok_model *m);

/* Build the tables. Drops the merges of *m that can never be applied. Does not free *m. */
struct tok_vocab *tok_vocab_build(struct tok_model *m, const char *name, const char *path,
	const struct tok_mem *mem, struct tok_error *err);
