/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer.json with a Unigram model: supported components and their meaning. Set-up only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "build/parts.h"
#include "load/rank_model.h"
#include "normalize/spm_norm.h"
#include "unicode/utf8.h"

static const struct tok_json_rule model_rules[] = {
	{"type", "\"Unigram\"", NULL, true},
	{"unk_id", NULL, NULL, true},
	{"vocab", NULL, NULL, true},
	{"byte_fallback", "true, false", NULL, false},
};

static const struct tok_json_rule precompiled_rules[] = {
	{"type", NULL, NULL, true},
	{"precompiled_charsmap", NULL, NULL, true},
};

bool
tok_json_is_unigram(const struct tok_json *root)
{
	return tok_json_is_type(tok_json_get(root, "model"), "Unigram");
}

static bool
refuse(const char *file, const char *what, const struct tok_json *component,
	const char *implemented, struct tok_error *err)
{
	const char *type = tok_json_string_value(tok_json_get(component, "type"));

	return tok_fail(err, "%s: %s \"%.60s\" is not implemented with Unigram (implemented: %s)",
		file, what, type == NULL ? "null" : type, implemented);
}

/* The list `key` of a Sequence, with at most `most` entries. On error NULL, and fills in *err. */
static const struct tok_json *
sequence(const char *file, const char *what, const struct tok_json *component, const char *key,
	size_t most, struct tok_error *err)
{
	const struct tok_json *list = tok_json_get(component, key);

	if (!tok_json_is_array(list) || tok_json_object_size(component) != 2 ||
		tok_json_array_size(list) > most) {
		tok_fail(err, "%s: %s: expected a list \"%s\" of at most %zu", file, what, key,
			most);
		return NULL;
	}
	return list;
}

/* ---- normalizer ---- */

static bool
read_charsmap(const char *file, const struct tok_json *component, struct tok_model_unigram *u,
	struct tok_error *err)
{
	const struct tok_json *text = tok_json_get(component, "precompiled_charsmap");
	const size_t len = tok_json_string_length(text);
	long n;

	if (!tok_json_check(
		    file, "normalizer", component, precompiled_rules, N(precompiled_rules), err))
		return false;
	u->charsmap = malloc(len + 4);
	if (u->charsmap == NULL)
		return tok_fail(err, "out of memory for a map of %zu bytes", len);
	n = tok_json_is_string(text)
		    ? tok_base64_decode(tok_json_string_value(text), len, TOK_FILE_MAX, u->charsmap)
		    : -1;
	if (n < 0 || !tok_spm_split_charsmap(u, (size_t)n))
		return tok_fail(err,
			"%s: normalizer.precompiled_charsmap: expected base64 of a trie's size, "
			"the trie and its texts",
			file);
	return true;
}

/* What sentencepiece's normalizer (spm_norm.h) has for a component. */
enum spm_part {
	SPM_NONE,
	SPM_CHARSMAP,
	SPM_STRIP,
	SPM_SQUEEZE,
	SPM_SQUEEZE_TO_MARK,
};

static enum spm_part
spm_part_of(const struct tok_json *component)
{
	const struct tok_json *pattern = tok_json_get(component, "pattern");
	const char *regex = tok_json_string_value(tok_json_get(pattern, "Regex"));
	const char *content = tok_json_string_value(tok_json_get(component, "content"));

	if (tok_json_is_type(component, "Precompiled"))
		return SPM_CHARSMAP;
	if (tok_json_is_type(component, "Strip"))
		return SPM_STRIP;
	if (!tok_json_is_type(component, "Replace") || tok_json_object_size(pattern) != 1 ||
		regex == NULL || strcmp(regex, " {2,}") != 0 || content == NULL)
		return SPM_NONE;
	return strcmp(content, " ") == 0	     ? SPM_SQUEEZE
	       : strcmp(content, TOK_METASPACE) == 0 ? SPM_SQUEEZE_TO_MARK
						     : SPM_NONE;
}

/*
 * Of n normalizers the first that sentencepiece's stage takes, with all after it: the map comes
 * first, blanks are replaced once, and U+2581, which is no white space, is not stripped.
 */
static size_t
first_of_spm(const struct tok_json *const *normalizer, size_t n)
{
	bool strips = false, squeezes = false;

	for (; n > 0; n--) {
		const enum spm_part part = spm_part_of(normalizer[n - 1]);

		if (part == SPM_CHARSMAP)
			return n - 1;
		if (part == SPM_NONE || (part != SPM_STRIP && squeezes) ||
			(part == SPM_SQUEEZE_TO_MARK && strips))
			break;
		strips = strips || part == SPM_STRIP;
		squeezes = squeezes || part != SPM_STRIP;
	}
	return n;
}

static bool
read_spm(const char *file, const struct tok_json *component, struct tok_model_unigram *u,
	struct tok_error *err)
{
	const enum spm_part part = spm_part_of(component);

	if (part == SPM_CHARSMAP)
		return read_charsmap(file, component, u, err);
	if (part == SPM_STRIP) {
		u->strip_left |= tok_json_is_on(component, "strip_left");
		u->strip_right |= tok_json_is_on(component, "strip_right");
		return tok_json_check(file, "normalizer", component, tok_json_strip_rules,
			N(tok_json_strip_rules), err);
	}
	u->squeeze = true;
	u->squeeze_to_mark = part == SPM_SQUEEZE_TO_MARK;
	return tok_json_check(file, "normalizer", component, tok_json_replace_rules,
		N(tok_json_replace_rules), err);
}

static bool
read_step(const char *file, const struct tok_json *component, size_t i, struct tok_model_norm *norm,
	struct tok_error *err)
{
	char what[60];

	snprintf(what, sizeof(what), "normalizer.normalizers[%zu]", i);
	if (spm_part_of(component) == SPM_CHARSMAP)
		return tok_fail(err,
			"%s: %s: Precompiled is only implemented once, and only with Strip and "
			"one Replace of blanks after it",
			file, what);
	return tok_json_step(file, what, component, norm, err);
}

#define NORMALIZERS_MAX 10

/* The last ones are sentencepiece's normalizer, as many as it takes; those before are steps. */
static bool
read_normalizers(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *normalizer[NORMALIZERS_MAX] = {tok_json_get(root, "normalizer")};
	const struct tok_json *list, *one;
	size_t n = 1, from, i;

	if (tok_json_is_absent(normalizer[0]))
		return true;
	if (tok_json_is_type(normalizer[0], "Sequence")) {
		list = sequence(
			file, "normalizer", normalizer[0], "normalizers", NORMALIZERS_MAX, err);
		if (list == NULL)
			return false;
		n = tok_json_array_size(list);
		tok_json_array_foreach (list, i, one)
			normalizer[i] = one;
	}
	from = first_of_spm(normalizer, n);
	for (i = 0; i < n; i++) {
		if (!(i < from ? read_step(file, normalizer[i], i, &m->norm, err)
			       : read_spm(file, normalizer[i], &m->unigram, err)))
			return false;
	}
	return true;
}

/* ---- pre_tokenizer, decoder ---- */

static bool
read_pre_tokenizer(const char *file, const struct tok_json *component, struct tok_model_unigram *u,
	struct tok_error *err)
{
	if (tok_json_is_type(component, "WhitespaceSplit") && !u->blanks) {
		u->words = true;
		return tok_json_check(file, "pre_tokenizer", component, tok_json_type_rules,
			N(tok_json_type_rules), err);
	}
	if (!tok_json_is_type(component, "Metaspace") || u->blanks)
		return refuse(file, "pre_tokenizer", component,
			"null, WhitespaceSplit, Metaspace, Sequence of the two", err);
	u->blanks = true;
	return tok_json_metaspace(file, "pre_tokenizer", component, &u->prefix, &u->split, err);
}

static bool
read_pre_tokenizers(const char *file, const struct tok_json *root, struct tok_model_unigram *u,
	struct tok_error *err)
{
	const struct tok_json *component = tok_json_get(root, "pre_tokenizer"), *one;
	const struct tok_json *list;
	size_t i;

	if (tok_json_is_absent(component))
		return true;
	if (!tok_json_is_type(component, "Sequence"))
		return read_pre_tokenizer(file, component, u, err);
	list = sequence(file, "pre_tokenizer", component, "pretokenizers", 2, err);
	if (list == NULL)
		return false;
	tok_json_array_foreach (list, i, one) {
		if (!read_pre_tokenizer(file, one, u, err))
			return false;
	}
	return true;
}

static bool
read_decoder(const char *file, const struct tok_json *root, struct tok_model_unigram *u,
	struct tok_error *err)
{
	const struct tok_json *decoder = tok_json_get(root, "decoder");
	enum tok_prefix prefix;
	bool split;

	if (tok_json_is_type(decoder, "Sequence")) {
		const struct tok_json *list =
			sequence(file, "decoder", decoder, "decoders", 1, err);

		if (list == NULL)
			return false;
		decoder = tok_json_at(list, 0);
	}
	if (!tok_json_is_type(decoder, "Metaspace"))
		return refuse(file, "decoder", decoder, "Metaspace", err);
	if (!tok_json_metaspace(file, "decoder", decoder, &prefix, &split, err))
		return false;
	u->decode_strips = prefix != TOK_PREFIX_NONE;
	return true;
}

/*
 * With "first" the reference asks whether text is at offset 0 of the original; these steps may
 * change that.
 */
static bool
check_first(const char *file, const struct tok_json *root, const struct tok_model *m,
	struct tok_error *err)
{
	const struct tok_model_unigram *u = &m->unigram;
	const struct tok_json *added = tok_json_get(root, "added_tokens");
	const struct tok_json *one;
	const char *why = u->words	  ? "WhitespaceSplit"
			  : m->norm.n > 0 ? "these normalizers"
			  : u->strip_left ? "Strip of strip_left"
					  : NULL;
	size_t i;

	if (u->prefix != TOK_PREFIX_FIRST)
		return true;
	tok_json_array_foreach (added, i, one) {
		if (tok_json_is_on(one, "normalized") && u->charsmap != NULL)
			why = "Precompiled and added tokens that are normalized";
	}
	return why == NULL ||
	       tok_fail(err,
		       "%s: pre_tokenizer.prepend_scheme \"first\" is not implemented with %s: whether "
		       "text comes first is decided before they change it",
		       file, why);
}

bool
tok_json_unigram_check(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	struct tok_model_unigram *u = &m->unigram;

	return tok_json_check(file, "model", tok_json_get(root, "model"), model_rules,
		       N(model_rules), err) &&
	       read_normalizers(file, root, m, err) && read_pre_tokenizers(file, root, u, err) &&
	       read_decoder(file, root, u, err) && check_first(file, root, m, err);
}

/* ---- model ---- */

/* Index the list of tokens by text. */
static bool
index_vocab(const char *file, const struct tok_json *list, struct tok_json_vocab *vocab,
	struct tok_error *err)
{
	const struct tok_json *pair;
	size_t id;

	tok_json_array_foreach (list, id, pair) {
		const struct tok_json *text = tok_json_at(pair, 0);
		const struct tok_json_entry e = {tok_json_string_value(text),
			(uint32_t)tok_json_string_length(text), (uint32_t)id};

		if (e.len == 0 || tok_json_array_size(pair) != 2)
			return tok_fail(err,
				"%s: model.vocab[%zu]: expected a text that is not empty, and a score",
				file, id);
		if (e.len > TOK_MAX_TOKEN_BYTES)
			return tok_fail(err, "%s: token %zu has %u bytes, the limit is %u", file,
				id, e.len, TOK_MAX_TOKEN_BYTES);
		if (!tok_json_vocab_add(vocab, file, e, err))
			return false;
	}
	return tok_json_vocab_index(vocab, file, err);
}

/*
 * Add a token, with blanks for U+2581. A text with a blank of its own never occurs after Metaspace.
 */
static void
put_piece(struct tok_model *m, uint32_t id, const char *text)
{
	uint8_t bytes[TOK_MAX_TOKEN_BYTES]; /* the length has been checked */
	const uint32_t len = (uint32_t)strlen(text);
	const bool as_it_is = !m->unigram.blanks || strchr(text, ' ') != NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < len;) {
		const bool mark =
			!as_it_is && strncmp(text + i, TOK_METASPACE, TOK_METASPACE_BYTES) == 0;

		bytes[n++] = mark ? ' ' : (uint8_t)text[i];
		i += mark ? TOK_METASPACE_BYTES : 1;
	}
	tok_model_put(m, id, bytes, n, false);
	m->token[id].outside = m->unigram.blanks && as_it_is;
}

static bool
read_options(const char *file, const struct tok_json *model, size_t n, struct tok_model *m,
	struct tok_error *err)
{
	const struct tok_json *unk = tok_json_get(model, "unk_id");

	if (!tok_json_is_integer(unk) || tok_json_integer_value(unk) < 0 ||
		(size_t)tok_json_integer_value(unk) >= n)
		return tok_fail(err,
			"%s: model.unk_id is not an id of model.vocab: without one the reference "
			"fails on unknown characters",
			file);
	m->unigram.n_pieces = (uint32_t)n;
	m->unigram.unk = (uint32_t)tok_json_integer_value(unk);
	m->unigram.byte_fallback = tok_json_is_on(model, "byte_fallback");
	return true;
}

static bool
read_tokens(const struct tok_json_file *f, const struct tok_json_vocab *vocab,
	const struct tok_json_added *added, size_t n_added, struct tok_model *m,
	struct tok_error *err)
{
	const char *file = f->shown;
	uint32_t n_ids = vocab->n;
	size_t bytes = vocab->bytes;

	for (size_t i = 0; i < n_added; i++) {
		n_ids = added[i].id >= n_ids ? added[i].id + 1 : n_ids;
		bytes += strlen(added[i].text);
	}
	if (!tok_model_init(m, n_ids, bytes, 0, err))
		return false;
	m->unigram.score = calloc(n_ids, sizeof(*m->unigram.score));
	if (m->unigram.score == NULL)
		return tok_fail(err, "out of memory for %u scores", n_ids);
	for (uint32_t i = 0; i < vocab->n; i++)
		put_piece(m, i, vocab->entry[i].text);
	if (m->token[m->unigram.unk].outside)
		return tok_fail(err, "%s: the unknown token has a blank: not implemented", file);
	return tok_json_added_put(file, vocab, added, n_added, m, err) &&
	       tok_json_added_keep(added, n_added, m, err) &&
	       tok_json_scores(file, f->text, m->unigram.score, vocab->n, err);
}

bool
tok_json_unigram_read(const struct tok_json_file *f, struct tok_json_added *added,
	struct tok_model *m, struct tok_error *err)
{
	const char *file = f->shown;
	const struct tok_json *model = tok_json_get(f->root, "model"),
			      *list = tok_json_get(model, "vocab");
	const size_t n = tok_json_array_size(list);
	struct tok_json_vocab vocab = {0};
	bool ok;

	m->kind = TOK_KIND_UNIGRAM;
	if (!tok_json_is_array(list) || n == 0 || n > TOK_MAX_IDS)
		return tok_fail(
			err, "%s: model.vocab is not a list of 1 to %u tokens", file, TOK_MAX_IDS);
	ok = index_vocab(file, list, &vocab, err) && read_options(file, model, n, m, err) &&
	     tok_json_added_read(file, f->root, &vocab, added, err) &&
	     read_tokens(f, &vocab, added,
		     tok_json_array_size(tok_json_get(f->root, "added_tokens")), m, err);
	tok_json_vocab_free(&vocab);
	return ok;
}
