/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hugging Face's tokenizer.json. The keys are those of the `tokenizers` crate's serialisation;
 * where its loader would put right what a file says (ids of added tokens) we refuse the file
 * instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_pretok.h"
#include "json_rules.h"
#include "load_bert_json.h"
#include "json_vocab.h"
#include "load_tekken.h"

static const struct tok_json_rule top_rules[] = {
	{"version", "\"1.0\"", "save the file with a current version of tokenizers", false},
	{"truncation", "null", "switch it off with no_truncation() and save the file", false},
	{"padding", "null", "switch it off with no_padding() and save the file", false},
	{"added_tokens", NULL, NULL, false},
	{"normalizer", NULL, NULL, false},
	{"pre_tokenizer", NULL, NULL, true},
	{"post_processor", NULL, NULL, false},
	{"decoder", NULL, NULL, true},
	{"model", NULL, NULL, true},
};

/* As post-processor and decoder ByteLevel changes no ids, whatever its fields. */
static const struct tok_json_rule no_ids_rules[] = {
	{"type", "\"ByteLevel\"", NULL, true},
	{"add_prefix_space", "true, false", NULL, false},
	{"trim_offsets", "true, false", NULL, false},
	{"use_regex", "true, false", NULL, false},
};

static const struct tok_json_rule model_rules[] = {
	{"type", "\"BPE\"", NULL, false}, /* absent: what has merges is BPE */
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

/* How an added token is found in text; special ones are taken as text, so that nothing is. */
static const struct tok_json_rule added_rules[] = {
	{"id", NULL, NULL, true},
	{"content", NULL, NULL, true},
	{"single_word", "true, false", NULL, false},
	{"lstrip", "true, false", NULL, false},
	{"rstrip", "true, false", NULL, false},
	{"normalized", "true, false", NULL, false},
	{"special", NULL, NULL, true},
};

#define N(rules) (sizeof(rules) / sizeof(rules[0]))

static bool
is_absent(const json_t *value)
{
	return value == NULL || json_is_null(value);
}

static bool
check_components(const char *file, json_t *root, struct tok_error *err)
{
	json_t *post = json_object_get(root, "post_processor");
	json_t *decoder = json_object_get(root, "decoder");

	return tok_json_check(file, "", root, top_rules, N(top_rules), err) &&
	       (is_absent(post) || tok_json_check_component(file, "post_processor", post,
					   "ByteLevel", no_ids_rules, N(no_ids_rules), err)) &&
	       /* Without one the reference would join tokens by blanks, byte letters and all. */
	       tok_json_check_component(
		       file, "decoder", decoder, "ByteLevel", no_ids_rules, N(no_ids_rules), err) &&
	       tok_json_check(file, "model", json_object_get(root, "model"), model_rules,
		       N(model_rules), err);
}

/*
 * One added token. Its id is decided by the reference (added_vocabulary.rs, add_tokens): that of
 * the model's vocabulary if the content is in it, else the next free one from the vocabulary's size
 * on.
 */
static bool
read_added(const char *file, size_t i, json_t *value, const json_t *vocab, json_int_t *next,
	struct tok_json_special *special, struct tok_error *err)
{
	const char *content = json_string_value(json_object_get(value, "content"));
	json_int_t id = json_integer_value(json_object_get(value, "id")), expected;
	const json_t *known;
	char what[40];

	snprintf(what, sizeof(what), "added_tokens[%zu]", i);
	if (!tok_json_check(file, what, value, added_rules, N(added_rules), err))
		return false;
	if (content == NULL || !json_is_integer(json_object_get(value, "id")) || id < 0 ||
		id >= TOK_MAX_IDS)
		return tok_fail(err, "%s: %s: expected a content and an id from 0 to %u", file,
			what, TOK_MAX_IDS - 1);
	if (!json_is_true(json_object_get(value, "special")))
		return tok_fail(err,
			"%s: added token %lld \"%.60s\" is not special: not implemented "
			"(implemented: special added tokens); remove it from added_tokens",
			file, (long long)id, content);
	known = json_object_get(vocab, content);
	expected = known != NULL ? json_integer_value(known) : *next;
	if (id != expected)
		return tok_fail(err,
			"%s: added token \"%.60s\" has id %lld, but tokenizers gives it %lld: "
			"load the file with tokenizers and save it again",
			file, content, (long long)id, (long long)expected);
	if (id >= *next)
		*next = id + 1;
	*special = (struct tok_json_special){(uint32_t)id, content};
	return true;
}

bool
tok_json_added(const char *file, json_t *added, const json_t *vocab,
	struct tok_json_special *special, struct tok_error *err)
{
	json_int_t next = (json_int_t)json_object_size(vocab);
	json_t *seen = json_object(), *value;
	bool ok = seen != NULL || tok_fail(err, "out of memory");
	size_t i;

	json_array_foreach (added, i, value) {
		ok = ok && read_added(file, i, value, vocab, &next, &special[i], err);
		if (!ok)
			break;
		if (json_object_get(seen, special[i].text) != NULL)
			ok = tok_fail(err, "%s: added token \"%.60s\" is there twice: remove one",
				file, special[i].text);
		else if (json_object_set_new(seen, special[i].text, json_true()) != 0)
			ok = tok_fail(err, "out of memory");
	}
	json_decref(seen);
	return ok;
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
read_model(const char *file, json_t *root, struct tok_json_special *special, struct tok_model *m,
	struct tok_error *err)
{
	json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
	json_t *merges = json_object_get(model, "merges");
	json_t *added = json_object_get(root, "added_tokens");
	struct tok_index x = {0};

	bool ok;

	m->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));

	if (!json_is_object(vocab))
		return tok_fail(err, "%s: model.vocab is not an object of tokens to ids", file);
	if (!json_is_array(merges) || json_array_size(merges) > TOK_MAX_IDS)
		return tok_fail(err, "%s: model.merges is not a list of at most %u merges", file,
			TOK_MAX_IDS);
	ok = tok_json_added(file, added, vocab, special, err) &&
	     tok_json_tokens(file, vocab, special, json_array_size(added),
		     (uint32_t)json_array_size(merges), m, err) &&
	     tok_index_init(&x, m, err);
	for (uint32_t id = 0; ok && id < m->n_tokens; id++)
		tok_index_add(&x, id); /* keys of an object differ, and so do their bytes */
	ok = ok && read_merges(file, merges, m, &x, err);
	tok_index_free(&x);
	return ok;
}

static bool
load(const char *file, json_t *root, struct tok_model *m, struct tok_error *err)
{
	json_t *added = json_object_get(root, "added_tokens");
	struct tok_json_special *special = NULL;
	const bool wordpiece = tok_json_is_bert(root);
	bool ok;

	*m = (struct tok_model){.format = "tokenizer.json"};
	if (wordpiece)
		ok = tok_json_bert_check(file, root, err);
	else
		ok = check_components(file, root, err) &&
		     tok_json_normalizer(file, root, &m->nfc, err) &&
		     tok_json_pretok(file, root, &m->pretok, err);
	if (ok && !is_absent(added) && !json_is_array(added))
		ok = tok_fail(err, "%s: added_tokens is not a list", file);
	if (ok) {
		special = calloc(json_array_size(added) + 1, sizeof(*special));
		ok = special != NULL || tok_fail(err, "out of memory");
	}
	if (ok)
		ok = wordpiece ? tok_json_bert_read(file, root, special, m, err)
			       : read_model(file, root, special, m, err);
	free(special);
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
	ok = tok_is_tekken(root) ? tok_load_tekken(file, root, m, err) : load(file, root, m, err);
	json_decref(root);
	if (!ok)
		tok_model_free(m);
	return ok;
}
