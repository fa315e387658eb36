/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tekken.json: special tokens, then a list of ranks with their bytes in base64. Only the first
 * config.default_vocab_size ids are used (mistral-common, tekken.py). Settings for images and audio
 * are ignored.
 */
#include <stdio.h>
#include <string.h>

#include "json_rules.h"
#include "tekken.h"
#include "pretokenize/names.h"
#include "rank_model.h"

#define SPECIAL_MAX_BYTES 64 /* most bytes of its text */

static const struct tok_json_rule top_rules[] = {
	{"config", NULL, NULL, true},
	{"vocab", NULL, NULL, true},
	{"special_tokens", NULL, NULL, false},
	{"image", NULL, NULL, false},
	{"multimodal", NULL, NULL, false},
	{"audio", NULL, NULL, false},
	{"model_settings_builder", NULL, NULL, false},
};

static const struct tok_json_rule config_rules[] = {
	{"pattern", NULL, NULL, true},
	{"num_vocab_tokens", NULL, NULL, false},
	{"default_vocab_size", NULL, NULL, true},
	{"default_num_special_tokens", NULL, NULL, true},
	{"version", NULL, NULL, true},
};

/* The special tokens of versions up to v7, whose files do not list them. */
static const char *const old_specials[] = {"<unk>", "<s>", "</s>", "[INST]", "[/INST]",
	"[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
	"[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
	"[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"};

bool
tok_is_tekken(const struct tok_json *root)
{
	return tok_json_is_object(tok_json_get(root, "config")) &&
	       tok_json_is_array(tok_json_get(root, "vocab"));
}

/* Read config.`key`, a number from `least` to `most`. */
static bool
read_number(const char *file, const struct tok_json *config, const char *key, int64_t least,
	int64_t most, uint32_t *value, struct tok_error *err)
{
	const struct tok_json *number = tok_json_get(config, key);
	int64_t v = tok_json_integer_value(number);

	if (!tok_json_is_integer(number) || v < least || v > most)
		return tok_fail(err, "%s: config.%s: expected a number from %lld to %lld", file,
			key, (long long)least, (long long)most);
	*value = (uint32_t)v;
	return true;
}

static bool
put_special(
	const char *file, struct tok_model *m, uint32_t id, const char *text, struct tok_error *err)
{
	size_t len = strlen(text);

	if (len == 0 || len > SPECIAL_MAX_BYTES || m->token[id].len != 0)
		return tok_fail(err,
			"%s: special token %u \"%.64s\": expected 1 to %u bytes, and each rank once",
			file, id, text, SPECIAL_MAX_BYTES);
	tok_model_put(m, id, (const uint8_t *)text, (uint32_t)len, true);
	return true;
}

/* Those listed, or those of old files. Ids without one get a filler. */
static bool
put_specials(const char *file, const struct tok_json *list, uint32_t n, struct tok_model *m,
	struct tok_error *err)
{
	const struct tok_json *value;
	size_t i;

	if (list == NULL) {
		for (i = 0; i < N(old_specials) && i < n; i++)
			put_special(file, m, (uint32_t)i, old_specials[i], err);
	} else if (!tok_json_is_array(list)) {
		return tok_fail(err, "%s: special_tokens is not a list", file);
	}
	tok_json_array_foreach (list, i, value) {
		const struct tok_json *rank = tok_json_get(value, "rank");
		const char *text = tok_json_string_value(tok_json_get(value, "token_str"));

		if (!tok_json_is_integer(rank) || tok_json_integer_value(rank) < 0 ||
			tok_json_integer_value(rank) >= n || text == NULL)
			return tok_fail(err,
				"%s: special_tokens[%zu]: expected a rank from 0 to %u and a token_str",
				file, i, n - 1);
		if (!put_special(file, m, (uint32_t)tok_json_integer_value(rank), text, err))
			return false;
	}
	for (uint32_t id = 0; id < n; id++) {
		char filler[32];

		snprintf(filler, sizeof(filler), "<SPECIAL_%u>", id);
		if (m->token[id].len == 0)
			put_special(file, m, id, filler, err);
	}
	return true;
}

/* An upper limit of the bytes of all tokens. */
static size_t
base64_bytes(const struct tok_json *vocab)
{
	const struct tok_json *entry;
	size_t i, bytes = 0;

	tok_json_array_foreach (vocab, i, entry)
		bytes += tok_json_string_length(tok_json_get(entry, "token_bytes"));
	return bytes;
}

static bool
put_ranks(const char *file, const struct tok_json *vocab, uint32_t n, uint32_t n_special,
	struct tok_model *m, struct tok_error *err)
{
	uint8_t bytes[TOK_MAX_TOKEN_BYTES + 4];

	for (uint32_t i = 0; i < n; i++) {
		const struct tok_json *entry = tok_json_at(vocab, i),
				      *rank = tok_json_get(entry, "rank");
		const struct tok_json *base64 = tok_json_get(entry, "token_bytes");
		int len = -1;

		if (tok_json_is_string(base64))
			len = (int)tok_base64_decode(tok_json_string_value(base64),
				tok_json_string_length(base64), TOK_MAX_TOKEN_BYTES, bytes);
		if (len <= 0 || !tok_json_is_integer(rank) || tok_json_integer_value(rank) != i)
			return tok_fail(err,
				"%s: vocab[%u]: expected rank %u and token_bytes, 1 to %u in base64",
				file, i, i, TOK_MAX_TOKEN_BYTES);
		tok_model_put(m, n_special + i, bytes, (uint32_t)len, false);
	}
	return true;
}

static bool
find_pretok(
	const char *file, const struct tok_json *config, struct tok_model *m, struct tok_error *err)
{
	const char *pattern = tok_json_string_value(tok_json_get(config, "pattern"));

	m->pretok = pattern == NULL ? TOK_PRETOK_NONE : tok_pretok_by_regex(&pattern, 1);
	return m->pretok != TOK_PRETOK_NONE ||
	       tok_fail(err,
		       "%s: config.pattern %.120s is not known (implemented: those of " TOK_PRETOK_NAMES
		       ")",
		       file, pattern == NULL ? "" : pattern);
}

bool
tok_load_tekken(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *config = tok_json_get(root, "config"),
			      *vocab = tok_json_get(root, "vocab");
	const size_t listed = tok_json_array_size(vocab);
	uint32_t n_special = 0, n_ids = 0;

	*m = (struct tok_model){.format = "tekken.json", .ignore_merges = true};
	if (!tok_json_check(file, "", root, top_rules, N(top_rules), err) ||
		!tok_json_check(file, "config", config, config_rules, N(config_rules), err) ||
		!find_pretok(file, config, m, err))
		return false;
	if (listed < 256 || listed > TOK_MAX_IDS / 2)
		return tok_fail(err, "%s: vocab has %zu tokens, expected 256 to %u", file, listed,
			TOK_MAX_IDS / 2);
	if (!read_number(file, config, "default_num_special_tokens", 0, TOK_MAX_IDS / 2, &n_special,
		    err) ||
		!read_number(file, config, "default_vocab_size", (int64_t)n_special + 256,
			(int64_t)(n_special + listed), &n_ids, err))
		return false;
	return tok_model_init(m, n_ids, (size_t)n_special * SPECIAL_MAX_BYTES + base64_bytes(vocab),
		       n_ids, err) &&
	       put_specials(file, tok_json_get(root, "special_tokens"), n_special, m, err) &&
	       put_ranks(file, vocab, n_ids - n_special, n_special, m, err) &&
	       tok_rank_merges(file, m, err);
}
