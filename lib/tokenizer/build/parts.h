/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of vocab_build.c: each makes its tables of a model. Set-up only. */
#pragma once

#include "longest_build.h"
#include "model.h"
#include "unicode/pages.h"
#include "vocab.h"

/* ---- nodes and classes of characters, of several kinds (vocab_build.c) ---- */

/* Make the table of nodes from n words that differ; they are sorted on the way. */
bool tok_automaton_build(
	struct tok_vocab *v, struct tok_trie_word *word, uint32_t n, struct tok_error *err);

/* Make the tables cat_page and cat of these classes by code point. */
bool tok_vocab_classes(struct tok_vocab *v, struct tok_runs runs, struct tok_error *err);

/* ---- added tokens (added_build.c) ---- */

/* Compute the fields of the sets that follow from their tables. */
void tok_added_sum(struct tok_vocab *v);

/* Build the two sets of the vocabulary. */
bool tok_added_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

/* ---- words that are one token (words_build.c) ---- */

/* Make the tables from n ids, whose texts differ. */
bool tok_words_build(struct tok_vocab *v, const uint32_t *id, uint32_t n, struct tok_error *err);

/* The same for WordPiece and Unigram, whose other tables are there: from frequent tokens whose text
 * is encoded as the token. */
bool tok_words_choose(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

/* ---- merges (pairs_build.c) ---- */

/* Build the tables that find a merge. Needs the splits. */
bool tok_pairs_build(struct tok_vocab *v, struct tok_error *err);

/* ---- runs of one token (repeats.c) ---- */

/* Fill in v->repeat_runs. False: a family is invalid. */
bool tok_repeats_fill(struct tok_vocab *v);

/* ---- runs of one byte (repeats.c) ---- */

/* Fill in v->byte_runs. All other tables of merges and nodes are there. */
void tok_byte_runs_fill(struct tok_vocab *v);

/* ---- what the tokens below a node share (stems.c) ---- */

/* Fill in stem, limit and extends of all nodes. Needs the splits and the nodes. */
void tok_stems_fill(struct tok_vocab *v);

/* ---- the steps of a normalizer (normalize/) ---- */

bool tok_norm_build(struct tok_vocab *v, const struct tok_model_norm *norm, struct tok_error *err);

/* Fill in the fields of v->norm that follow from its tables, which are valid. */
void tok_norm_sum(struct tok_vocab *v);

/* The same for v->ids_per_byte, when all else is there. Returns NULL, or what is wrong. */
const char *tok_norm_bound(struct tok_vocab *v);

/*
 * What the steps make of n bytes: out[0 .. *len). False: that has more than `room` bytes, or
 * exceeds a limit of normalization.
 */
bool tok_norm_apply(const struct tok_vocab *v, const uint8_t *p, size_t n, uint8_t *out,
	size_t room, size_t *len);

/* ---- WordPiece (normalize/bert_norm.c, wordpiece_build.c) ---- */

/* BertNormalizer's own list of CJK blocks: first, last. */
#define TOK_BERT_CJK_BLOCKS 7
extern const uint32_t tok_bert_cjk[TOK_BERT_CJK_BLOCKS][2];
bool tok_bert_is_cjk(uint32_t cp);

/* The tables of v->wordpiece.norm. */
bool tok_bert_norm_build(
	struct tok_vocab *v, const struct tok_model_bert *options, struct tok_error *err);

/* `plain`, once the tables are there. */
void tok_bert_norm_plain(struct tok_bert_norm *t);

/* v->span and v->bytes are there. */
bool tok_wordpiece_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

/* ---- Unigram (unigram_build.c) ---- */

/* v->span and v->bytes are there. */
bool tok_unigram_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

/* For a BPE model with SentencePiece's normalizer: build the normalizer, and the texts of ids. */
bool tok_unigram_build_normalizer(
	struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

/* Compute the fields that follow from the tables. */
void tok_unigram_sum(struct tok_vocab *v);

/* ---- SentencePiece's normalizer (normalize/spm_norm_build.c) ---- */

/* Split the n bytes of m->charsmap, a map in the file's format: size of the trie, trie, texts.
 * False: it has another format. */
bool tok_spm_split_charsmap(struct tok_model_unigram *m, size_t n);

/* The tables, and what is known by them. */
bool tok_spm_norm_build(
	struct tok_vocab *v, const struct tok_model_unigram *m, struct tok_error *err);

/*
 * Check a vocabulary's map. Returns what is wrong, or NULL; then *ids_per_byte is the most ids that
 * a byte of text can give, and *several a character of a key that has several.
 */
const char *tok_spm_norm_check(
	const struct tok_vocab *v, uint32_t *ids_per_byte, uint32_t *several);

/* Compute the fields that follow from tables that have been checked. */
void tok_spm_norm_sum(struct tok_vocab *v);

/* Normalize a text of n bytes to out[0 .. room). False: it does not fit. */
bool tok_spm_normalize(const struct tok_vocab *v, const uint8_t *p, size_t n, uint8_t *out,
	size_t room, size_t *len);
