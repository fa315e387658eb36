/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same model is written in two ways: with a normalizer that replaces blanks by U+2581 and may
 * put one before the text, or with the pretokenizer Metaspace, which may split.
 */
#include <stdio.h>
#include <string.h>

#include "parts.h"

static const struct tok_json_rule model_rules[] = {
	{"type", "\"BPE\"", NULL, false},
	{"dropout", "null, 0, 0.0", "dropout makes ids random: set it to null", false},
	{"unk_token", NULL, NULL, false}, /* never used: all bytes are tokens */
	{"continuing_subword_prefix", "null, \"\"", NULL, false},
	{"end_of_word_suffix", "null, \"\"", NULL, false},
	{"fuse_unk", "true, false", NULL, false}, /* never used either */
	{"byte_fallback", "true", NULL, true},
	{"ignore_merges", "false", NULL, false},
	{"vocab", NULL, NULL, true},
	{"merges", NULL, NULL, true},
};

static const struct tok_json_rule replace_rules[] = {
	{"type", "\"Replace\"", NULL, true},
	{"pattern", NULL, NULL, true},
	{"content", TOK_JSON_METASPACE_MARK, NULL, true},
};

static const struct tok_json_rule prepend_rules[] = {
	{"type", "\"Prepend\"", NULL, true},
	{"prepend", TOK_JSON_METASPACE_MARK, NULL, true},
};

static const struct tok_json_rule blank_rules[] = {
	{"String", "\" \"", NULL, true},
};

static const struct tok_json_rule normalizers_rules[] = {
	{"type", "\"Sequence\"", NULL, true},
	{"normalizers", NULL, NULL, true},
};

/* The text has no blanks by now. */
static const struct tok_json_rule split_rules[] = {
	{"type", "\"Split\"", NULL, true},
	{"pattern", NULL, NULL, true},
	{"behavior",
		"\"MergedWithPrevious\", \"MergedWithNext\", \"Isolated\", \"Removed\", "
		"\"Contiguous\"",
		NULL, true},
	{"invert", "false", NULL, true},
};

static const struct tok_json_rule decoders_rules[] = {
	{"type", "\"Sequence\"", NULL, true},
	{"decoders", NULL, NULL, true},
};

static const struct tok_json_rule back_rules[] = {
	{"type", "\"Replace\"", NULL, true},
	{"pattern", NULL, NULL, true},
	{"content", "\" \"", NULL, true},
};

static const struct tok_json_rule meta_rules[] = {
	{"String", TOK_JSON_METASPACE_MARK, NULL, true},
};

static const struct tok_json_rule strip_rules[] = {
	{"type", "\"Strip\"", NULL, true},
	{"content", "\" \"", NULL, true},
	{"start", "0, 1", NULL, true},
	{"stop", "0", NULL, true},
};

bool
tok_json_is_pieces(const struct tok_json *root)
{
	const struct tok_json *model = tok_json_get(root, "model");

	return tok_json_is_true(tok_json_get(model, "byte_fallback")) &&
	       (tok_json_is_type(model, "BPE") || tok_json_get(model, "merges") != NULL);
}

/* Check a Replace of blanks by U+2581. */
static bool
check_replace(
	const char *file, const char *what, const struct tok_json *replace, struct tok_error *err)
{
	char pattern[80];

	snprintf(pattern, sizeof(pattern), "%s.pattern", what);
	return tok_json_check_component(
		       file, what, replace, "Replace", replace_rules, N(replace_rules), err) &&
	       tok_json_check(file, pattern, tok_json_get(replace, "pattern"), blank_rules,
		       N(blank_rules), err);
}

static bool
read_normalizer(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *normalizer = tok_json_get(root, "normalizer"), *list;
	struct tok_metaspace *meta = &m->metaspace;
	char what[60];
	bool prepends;
	size_t n;

	if (tok_json_is_absent(normalizer))
		return true;
	meta->stage = TOK_METASPACE_NORMALIZER;
	if (!tok_json_is_type(normalizer, "Sequence"))
		return check_replace(file, "normalizer", normalizer, err);
	list = tok_json_get(normalizer, "normalizers");
	n = tok_json_array_size(list);
	if (!tok_json_check(
		    file, "normalizer", normalizer, normalizers_rules, N(normalizers_rules), err))
		return false;
	if (n < 1)
		return tok_fail(err,
			"%s: normalizer \"Sequence\" of none is not implemented (implemented: "
			"\"Replace\" of blanks last, and \"Prepend\" before it)",
			file);
	prepends = n > 1 && tok_json_is_type(tok_json_at(list, n - 2), "Prepend");
	for (size_t i = 0; i < n; i++) {
		const struct tok_json *one = tok_json_at(list, i);

		snprintf(what, sizeof(what), "normalizer.normalizers[%zu]", i);
		if (!(i == n - 1 ? check_replace(file, what, one, err)
			    : prepends && i == n - 2
				    ? tok_json_check_component(file, what, one, "Prepend",
					      prepend_rules, N(prepend_rules), err)
				    : tok_json_step(file, what, one, &m->norm, err)))
			return false;
	}
	meta->prefix = prepends ? TOK_PREFIX_ANYWAY : meta->prefix;
	return true;
}

static bool
read_pretok(const char *file, const struct tok_json *root, struct tok_metaspace *meta,
	struct tok_error *err)
{
	const struct tok_json *pretok = tok_json_get(root, "pre_tokenizer");
	bool split;

	if (meta->stage == TOK_METASPACE_NORMALIZER && tok_json_is_type(pretok, "Split"))
		return tok_json_check(
			       file, "pre_tokenizer", pretok, split_rules, N(split_rules), err) &&
		       tok_json_check(file, "pre_tokenizer.pattern",
			       tok_json_get(pretok, "pattern"), blank_rules, N(blank_rules), err);
	if (tok_json_is_absent(pretok)) {
		return meta->stage != TOK_METASPACE_OFF ||
		       tok_fail(err,
			       "%s: nothing replaces blanks by U+2581: not implemented (implemented: "
			       "normalizer \"Replace\", pre_tokenizer \"Metaspace\")",
			       file);
	}
	if (meta->stage != TOK_METASPACE_OFF)
		return tok_fail(err,
			"%s: both the normalizer and the pre_tokenizer replace blanks: not "
			"implemented",
			file);
	meta->stage = TOK_METASPACE_PRETOKENIZER;
	if (!tok_json_metaspace(file, "pre_tokenizer", pretok, &meta->prefix, &split, err))
		return false;
	return !split ||
	       tok_fail(err,
		       "%s: pre_tokenizer.split true is not implemented with BPE (implemented: "
		       "false)",
		       file);
}

/* Replace, ByteFallback, Fuse, and with a prefix also Strip. */
static bool
read_decoder(const char *file, const struct tok_json *root, struct tok_metaspace *meta,
	struct tok_error *err)
{
	static const char *const types[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
	const struct tok_json *decoder = tok_json_get(root, "decoder"), *list;
	const size_t n = tok_json_array_size(tok_json_get(decoder, "decoders"));
	char what[40];

	if (!tok_json_check_component(
		    file, "decoder", decoder, "Sequence", decoders_rules, N(decoders_rules), err))
		return false;
	if (n != N(types) && n != N(types) - 1)
		return tok_fail(err,
			"%s: decoder \"Sequence\" of %zu is not implemented (implemented: "
			"\"Replace\", \"ByteFallback\", \"Fuse\", and \"Strip\" or not)",
			file, n);
	list = tok_json_get(decoder, "decoders");
	for (size_t i = 0; i < n; i++) {
		static const struct {
			const struct tok_json_rule *rule;
			size_t n;
		} rules[] = {{back_rules, N(back_rules)},
			{tok_json_type_rules, N(tok_json_type_rules)},
			{tok_json_type_rules, N(tok_json_type_rules)},
			{strip_rules, N(strip_rules)}};

		snprintf(what, sizeof(what), "decoder.decoders[%zu]", i);
		if (!tok_json_check_component(file, what, tok_json_at(list, i), types[i],
			    rules[i].rule, rules[i].n, err))
			return false;
	}
	meta->strip = n == N(types) &&
		      tok_json_integer_value(tok_json_get(tok_json_at(list, n - 1), "start")) == 1;
	return tok_json_check(file, "decoder.decoders[0].pattern",
		tok_json_get(tok_json_at(list, 0), "pattern"), meta_rules, N(meta_rules), err);
}

bool
tok_json_pieces(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	m->pretok = TOK_PRETOK_SENTENCEPIECE;
	return read_normalizer(file, root, m, err) && read_pretok(file, root, &m->metaspace, err) &&
	       read_decoder(file, root, &m->metaspace, err) &&
	       tok_json_check(file, "model", tok_json_get(root, "model"), model_rules,
		       N(model_rules), err);
}
