/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hugging Face's tokenizer.json, as the `tokenizers` crate writes it. Where its loader would
 * correct a file (ids of added tokens), the file is rejected here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "added.h"
#include "pieces.h"
#include "pretok.h"
#include "load/json_rules.h"
#include "shape.h"
#include "bert.h"
#include "unigram.h"
#include "load/json_vocab.h"
#include "load/tekken.h"
#include "build/pieces.h"

/* ByteLevel decodes the same with any fields. */
static const struct tok_json_rule decoder_rules[] = {
	{"type", "\"ByteLevel\"", NULL, true},
	{"add_prefix_space", "true, false", NULL, false},
	{"trim_offsets", "true, false", NULL, false},
	{"use_regex", "true, false", NULL, false},
};

static const struct tok_json_rule model_rules[] = {
	{"type", "\"BPE\"", NULL, false}, /* absent: a model with merges is BPE */
	{"dropout", "null, 0, 0.0", "dropout makes ids random: set it to null", false},
	{"unk_token", "null", "a byte-level vocabulary needs none", false},
	{"continuing_subword_prefix", "null, \"\"", NULL, false},
	{"end_of_word_suffix", "null, \"\"", NULL, false},
	{"fuse_unk", "false", "without unk_token it does nothing: set it to false", false},
	{"byte_fallback", "false", NULL, false},
	{"ignore_merges", "true, false", NULL, false},
	{"vocab", NULL, NULL, true},
	{"merges", NULL, NULL, true},
};

#define N(rules) (sizeof(rules) / sizeof(rules[0]))

static bool
check_components(const char *file, json_t *root, struct tok_error *err)
{
	json_t *decoder = json_object_get(root, "decoder");

	/* Without a decoder the reference would join tokens by blanks, as byte-level letters. */
	return tok_json_check_component(file, "decoder", decoder, "ByteLevel", decoder_rules,
		       N(decoder_rules), err) &&
	       tok_json_check(file, "model", json_object_get(root, "model"), model_rules,
		       N(model_rules), err);
}

/* A merge is "left right" or ["left", "right"]. */
static bool
read_merges(const char *file, json_t *merges, struct tok_model *m, const struct tok_index *x,
	struct tok_error *err)
{
	json_t *value;
	size_t i;

	json_array_foreach (merges, i, value) {
		const char *left = json_string_value(value), *right;
		size_t left_len;
		char where[TOK_SHOWN_MAX + 32];

		snprintf(where, sizeof(where), "%s: merge %zu", file, i);
		if (left != NULL) {
			const char *blank = strchr(left, ' ');

			if (blank == NULL || strchr(blank + 1, ' ') != NULL)
				return tok_fail(
					err, "%s: expected two fields: \"%.60s\"", where, left);
			left_len = (size_t)(blank - left);
			right = blank + 1;
		} else {
			left = json_string_value(json_array_get(value, 0));
			right = json_string_value(json_array_get(value, 1));
			if (left == NULL || right == NULL || json_array_size(value) != 2)
				return tok_fail(err, "%s: expected two strings", where);
			left_len = strlen(left);
		}
		if (!tok_json_merge(m, x, where, left, left_len, right, strlen(right), err))
			return false;
	}
	return true;
}

static bool
read_model(const char *file, json_t *root, struct tok_json_added *added, struct tok_model *m,
	struct tok_error *err)
{
	json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
	json_t *merges = json_object_get(model, "merges");
	const size_t n = json_array_size(json_object_get(root, "added_tokens"));
	struct tok_index x = {0};
	bool ok;

	m->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));

	if (!json_is_object(vocab))
		return tok_fail(err, "%s: model.vocab is not an object of tokens to ids", file);
	if (!json_is_array(merges) || json_array_size(merges) > TOK_MAX_IDS)
		return tok_fail(err, "%s: model.merges is not a list of at most %u merges", file,
			TOK_MAX_IDS);
	ok = tok_json_added_read(file, root, vocab, added, err) &&
	     tok_json_tokens(file, vocab, added, n, (uint32_t)json_array_size(merges), m, err) &&
	     tok_json_added_keep(added, n, m, err) &&
	     (m->pretok != TOK_PRETOK_SENTENCEPIECE || tok_piece_characters(m, file, err)) &&
	     tok_index_init(&x, m, err);
	for (uint32_t id = 0; ok && id < m->n_tokens; id++)
		tok_index_add(&x, id); /* keys of an object differ, so the bytes do too */
	ok = ok && read_merges(file, merges, m, &x, err);
	tok_index_free(&x);
	return ok;
}

static bool
load(const char *path, json_t *root, struct tok_model *m, struct tok_error *err)
{
	const char *file = tok_shown_path(path);
	json_t *list = json_object_get(root, "added_tokens");
	struct tok_json_added *added = NULL;
	const bool wordpiece = tok_json_is_bert(root), unigram = tok_json_is_unigram(root);
	bool ok;

	*m = (struct tok_model){.format = "tokenizer.json"};
	if (!tok_json_check_top(file, root, err))
		return false;
	if (wordpiece)
		ok = tok_json_bert_check(file, root, err);
	else if (tok_json_is_pieces(root))
		ok = tok_json_pieces(file, root, m, err);
	else if (unigram)
		ok = tok_json_unigram_check(file, root, m, err);
	else
		ok = check_components(file, root, err) &&
		     tok_json_normalizer(file, root, &m->nfc, err) &&
		     tok_json_pretok(file, root, m, err);
	if (ok && !tok_json_is_absent(list) && !json_is_array(list))
		ok = tok_fail(err, "%s: added_tokens is not a list", file);
	if (ok) {
		added = calloc(json_array_size(list) + 1, sizeof(*added));
		ok = added != NULL || tok_fail(err, "out of memory");
	}
	if (ok)
		ok = wordpiece ? tok_json_bert_read(file, root, added, m, err)
		     : unigram ? tok_json_unigram_read(path, root, added, m, err)
			       : read_model(file, root, added, m, err);
	ok = ok && tok_json_shape(file, root, m, err);
	free(added);
	return ok;
}

bool
tok_load_tokenizer_json(const char *path, struct tok_model *m, struct tok_error *err)
{
	const char *file = tok_shown_path(path);
	json_t *root = tok_json_read(path, err);
	bool ok;

	*m = (struct tok_model){0};
	if (root == NULL)
		return false;
	ok = tok_is_tekken(root) ? tok_load_tekken(file, root, m, err) : load(path, root, m, err);
	json_decref(root);
	if (!ok)
		tok_model_free(m);
	return ok;
}
