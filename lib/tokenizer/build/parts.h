/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of vocab_build.c: each makes its tables of a model. Set-up only. */
#ifndef TOK_PARTS_H
#define TOK_PARTS_H

#include "model.h"
#include "vocab.h"

/* ---- added tokens (added_build.c) ---- */

/* What is known of the sets by their tables. */
void tok_added_sum(struct tok_vocab *v);

/* The two sets of the vocabulary. */
bool tok_added_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

/* ---- merges (pairs_build.c) ---- */

/* The tables that find a merge. Splits are there. */
bool tok_pairs_build(struct tok_vocab *v, struct tok_error *err);

/* ---- runs of one token (repeats.c) ---- */

/* Fill in v->repeat_runs. False: a family is not what it says. */
bool tok_repeats_fill(struct tok_vocab *v);

/* ---- what the tokens below a node share (stems.c) ---- */

/* Fill in the stems of the automaton's nodes, and which are runs. Splits and nodes are there. */
void tok_stems_fill(struct tok_vocab *v);

/*
 * Does a node say what tok_stems_fill() makes of it and its children? Splits are looked at, and the
 * bytes of the tokens below it.
 */
bool tok_stem_fits(const struct tok_vocab *v, uint32_t at);

/* ---- WordPiece (bert_norm.c, wordpiece_build.c) ---- */

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

/* Likewise of a BPE model, what comes before its merges: the normalizer, and what ids decode to. */
bool tok_unigram_build_normalizer(
	struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

/* What is known by the tables. */
void tok_unigram_sum(struct tok_vocab *v);

/* ---- SentencePiece's normalizer (spm_norm_build.c) ---- */

/* m->charsmap has n bytes as files have a map: a trie's size, the trie and its texts. False: not.
 */
bool tok_spm_split_charsmap(struct tok_model_unigram *m, size_t n);

/* The tables, and what is known by them. */
bool tok_spm_norm_build(
	struct tok_vocab *v, const struct tok_model_unigram *m, struct tok_error *err);

/*
 * What is wrong with a vocabulary's map, or NULL; then the ids that a byte of text may become go to
 * *ids_per_byte.
 */
const char *tok_spm_norm_check(const struct tok_vocab *v, uint32_t *ids_per_byte);

/* What is known by tables that have been checked. */
void tok_spm_norm_sum(struct tok_vocab *v);

/* The normal form of n bytes that are a text, to out[0 .. room). False: it has no room. */
bool tok_spm_normalize(const struct tok_vocab *v, const uint8_t *p, size_t n, uint8_t *out,
	size_t room, size_t *len);

#endif
