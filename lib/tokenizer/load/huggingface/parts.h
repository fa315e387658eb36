/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that read a tokenizer.json: what each has for the others. Set-up only. */
#pragma once

#include "load/json_rules.h"
#include "load/json_vocab.h"

/* ---- added.c: the added tokens ---- */

/*
 * Read the list `added_tokens` of a file to added[], which has room. `vocab` is the model's
 * vocabulary: ids depend on it.
 */
bool tok_json_added_read(const char *file, const struct tok_json *root,
	const struct tok_json_vocab *vocab, struct tok_json_added *added, struct tok_error *err);

/* Put the tokens of those that are not in the vocabulary into the model. */
bool tok_json_added_put(const char *file, const struct tok_json_vocab *vocab,
	const struct tok_json_added *added, size_t n, struct tok_model *m, struct tok_error *err);

/* Store them in the model, which has their tokens already. */
bool tok_json_added_keep(
	const struct tok_json_added *added, size_t n, struct tok_model *m, struct tok_error *err);

/* ---- normalizer.c: normalizers as steps ---- */

/* What tok_json_step takes, for errors. */
#define TOK_JSON_STEPS                                                                             \
	"NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, BertNormalizer, Sequence"

/* Of a component that has a type alone, of Strip, and of Replace. */
extern const struct tok_json_rule tok_json_type_rules[1];
extern const struct tok_json_rule tok_json_strip_rules[3], tok_json_replace_rules[3];

/* Append the steps of one normalizer, or of a Sequence. `what`: its path in the file. */
bool tok_json_step(const char *file, const char *what, const struct tok_json *normalizer,
	struct tok_model_norm *norm, struct tok_error *err);

/* ---- metaspace.c: the component Metaspace ---- */

#define TOK_JSON_METASPACE_MARK "\"\u2581\""

/* Check a Metaspace, pretokenizer or decoder. `what`: its path. *split: split before each blank. */
bool tok_json_metaspace(const char *file, const char *what, const struct tok_json *component,
	enum tok_prefix *prefix, bool *split, struct tok_error *err);

/* ---- pretok.c: one pretokenizer with a name, or its regular expressions ---- */

bool tok_json_pretok(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/*
 * ---- word_ends.c: byte-level BPE whose tokens end words with a mark (CLIP) ----
 * In libtok the mark is a blank, which no word has: each byte is first merged with it.
 */

#define TOK_JSON_WORD_END "</w>"

/* Does the model have end_of_word_suffix? */
bool tok_json_has_word_ends(const struct tok_json *root);

/*
 * The pretokenizer: Split that removes the gaps, then ByteLevel. The expression must be known: its
 * matches have no white space, and its gaps nothing else.
 */
bool tok_json_word_ends_pretok(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/* Rewrite the tokens and merges that were read. There is room for a merge of each byte. */
bool tok_json_word_ends(const char *file, struct tok_model *m, struct tok_error *err);

/* ---- pieces.c: SentencePiece BPE (Llama 2, Gemma) ---- */

/* Is the model BPE on characters, with byte_fallback? */
bool tok_json_is_pieces(const struct tok_json *root);

/* Check all components except the tokens. Fills in m->pretok and m->metaspace. */
bool tok_json_pieces(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/* ---- bert.c: WordPiece and WordLevel ---- */

bool tok_json_is_bert(const struct tok_json *root);

/* Check all components. */
bool tok_json_bert_check(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/* Read the model of a file that has been checked. added[] has room for all added tokens. */
bool tok_json_bert_read(const struct tok_json_file *f, const struct tok_json_vocab *vocab,
	struct tok_json_added *added, struct tok_model *m, struct tok_error *err);

/* ---- unigram.c: Unigram (XLM-R, multilingual E5, T5) ---- */

bool tok_json_is_unigram(const struct tok_json *root);

/* Components that are not implemented are refused; what the others say goes to *m. */
bool tok_json_unigram_check(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);

/* The model of a file; added[] has room for its added tokens. */
bool tok_json_unigram_read(const struct tok_json_file *f, struct tok_json_added *added,
	struct tok_model *m, struct tok_error *err);

/* ---- scores.c: scores of a Unigram model, bit-exact with the reference ---- */

/*
 * Fill score[0 .. n) with the second values of the n pairs of model.vocab in the text of `file`,
 * which is known to be valid JSON.
 */
bool tok_json_scores(
	const char *file, char *text, double *score, uint32_t n, struct tok_error *err);

/* ---- shape.c: post_processor, truncation and padding ---- */

/* Fill in m->shape. The model must have its tokens: a template's ids must be among them. */
bool tok_json_shape(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err);
