/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer.json of WordPiece or WordLevel: supported components, their meaning. Set-up only. */
#include <string.h>

#include "parts.h"

static const struct tok_json_rule pre_tokenizer_rules[] = {
	{"type", "\"BertPreTokenizer\", \"Whitespace\", \"WhitespaceSplit\"", NULL, true},
};

static const struct tok_json_rule words_rules[] = {
	{"type", "\"WordLevel\"", NULL, true},
	{"unk_token", NULL, NULL, true},
	{"vocab", NULL, NULL, true},
};

static const struct tok_json_rule decoder_rules[] = {
	{"type", "\"WordPiece\"", NULL, true},
	{"prefix", "\"##\"", NULL, true},
	{"cleanup", "true, false", NULL, true},
};

static const struct tok_json_rule model_rules[] = {
	{"type", "\"WordPiece\"", NULL, true},
	{"unk_token", NULL, NULL, true},
	{"continuing_subword_prefix", "\"##\"", NULL, true},
	{"max_input_chars_per_word", NULL, NULL, true},
	{"vocab", NULL, NULL, true},
};

/* WordLevel is WordPiece without tokens that continue a word. */
static bool
is_words(const struct tok_json *root)
{
	return tok_json_is_type(tok_json_get(root, "model"), "WordLevel");
}

bool
tok_json_is_bert(const struct tok_json *root)
{
	return tok_json_is_type(tok_json_get(root, "model"), "WordPiece") || is_words(root);
}

/* Is some added token searched in normalized text? */
static bool
any_normalized(const struct tok_json *root)
{
	const struct tok_json *one;
	size_t i;

	tok_json_array_foreach (tok_json_get(root, "added_tokens"), i, one) {
		if (tok_json_is_on(one, "normalized"))
			return true;
	}
	return false;
}

/*
 * BertNormalizer is one with the split into words (bert_norm.h), unless something lies between
 * them, added tokens or the borders of Whitespace; then it is steps, as other normalizers are.
 */
static bool
read_normalizer(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *normalizer = tok_json_get(root, "normalizer");
	const struct tok_json *strip = tok_json_get(normalizer, "strip_accents");
	struct tok_model_bert *b = &m->bert;

	if (tok_json_is_absent(normalizer))
		return true;
	if (!tok_json_step(file, "normalizer", normalizer, &m->norm, err))
		return false;
	if (!tok_json_is_type(normalizer, "BertNormalizer") || any_normalized(root) ||
		tok_json_is_type(tok_json_get(root, "pre_tokenizer"), "Whitespace"))
		return true;
	m->norm = (struct tok_model_norm){0};
	b->clean_text = tok_json_is_on(normalizer, "clean_text");
	b->handle_chinese_chars = tok_json_is_on(normalizer, "handle_chinese_chars");
	b->lowercase = tok_json_is_on(normalizer, "lowercase");
	b->strip_accents = tok_json_is_absent(strip) ? b->lowercase : tok_json_is_true(strip);
	return true;
}

static bool
read_pre_tokenizer(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *pre_tokenizer = tok_json_get(root, "pre_tokenizer");

	m->pretok = tok_json_is_type(pre_tokenizer, "Whitespace")	 ? TOK_PRETOK_WORDS
		    : tok_json_is_type(pre_tokenizer, "WhitespaceSplit") ? TOK_PRETOK_WHITE
									 : TOK_PRETOK_BERT;
	return tok_json_check(file, "pre_tokenizer", pre_tokenizer, pre_tokenizer_rules,
		N(pre_tokenizer_rules), err);
}

/* Without one the reference joins tokens by blanks. */
static bool
check_decoder(const char *file, const struct tok_json *root, struct tok_error *err)
{
	const struct tok_json *decoder = tok_json_get(root, "decoder");

	if (!is_words(root))
		return tok_json_check_component(file, "decoder", decoder, "WordPiece",
			decoder_rules, N(decoder_rules), err);
	return tok_json_is_absent(decoder) ||
	       tok_json_refuse(file, "decoder", decoder, "null with WordLevel", err);
}

bool
tok_json_bert_check(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *model = tok_json_get(root, "model");

	return read_normalizer(file, root, m, err) && read_pre_tokenizer(file, root, m, err) &&
	       check_decoder(file, root, err) &&
	       (is_words(root) ? tok_json_check(
					 file, "model", model, words_rules, N(words_rules), err)
			       : tok_json_check(
					 file, "model", model, model_rules, N(model_rules), err));
}

static bool
read_options(const char *file, const struct tok_json *root, const struct tok_json_vocab *vocab,
	struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *model = tok_json_get(root, "model");
	const struct tok_json *max = tok_json_get(model, "max_input_chars_per_word");
	const char *unk = tok_json_string_value(tok_json_get(model, "unk_token"));
	const struct tok_json_entry *unk_id =
		unk == NULL ? NULL : tok_json_vocab_find(vocab, unk, strlen(unk));

	m->bert.whole = is_words(root);
	if (!m->bert.whole && (!tok_json_is_integer(max) || tok_json_integer_value(max) < 1 ||
				      tok_json_integer_value(max) > TOK_WORD_MAX))
		return tok_fail(err,
			"%s: model.max_input_chars_per_word: expected a number from 1 to %u "
			"(BERT's is 100)",
			file, TOK_WORD_MAX);
	if (unk_id == NULL)
		return tok_fail(err, "%s: model.unk_token \"%.60s\" is not in model.vocab", file,
			unk == NULL ? "" : unk);
	m->bert.cleanup = tok_json_is_on(tok_json_get(root, "decoder"), "cleanup");
	m->bert.max_chars = m->bert.whole ? TOK_WORD_MAX : (uint32_t)tok_json_integer_value(max);
	m->bert.unk = unk_id->id;
	return true;
}

/* Words are encoded to tokens of the model, also to special ones. */
static bool
put_tokens(const char *file, const struct tok_json_vocab *vocab, struct tok_model *m,
	struct tok_error *err)
{
	for (uint32_t i = 0; i < vocab->n; i++) {
		const struct tok_json_entry *e = &vocab->entry[i];

		if (m->token[e->id].len != 0)
			return tok_fail(err, "%s: id %u has two tokens, one of them \"%.60s\"",
				file, e->id, e->text);
		if (m->bert.whole && e->len > TOK_WORD_MAX)
			return tok_fail(err, "%s: word %u has %u bytes, the limit is %u", file,
				e->id, e->len, TOK_WORD_MAX);
		tok_model_put(m, e->id, (const uint8_t *)e->text, e->len, false);
	}
	return true;
}

bool
tok_json_bert_read(const struct tok_json_file *f, const struct tok_json_vocab *vocab,
	struct tok_json_added *added, struct tok_model *m, struct tok_error *err)
{
	const size_t n = tok_json_array_size(tok_json_get(f->root, "added_tokens"));
	const char *file = f->shown;
	size_t bytes = vocab->bytes;
	uint32_t n_ids = vocab->n_ids;

	m->kind = TOK_KIND_WORDPIECE;
	if (!read_options(file, f->root, vocab, m, err) ||
		!tok_json_added_read(file, f->root, vocab, added, err))
		return false;
	for (size_t i = 0; i < n; i++) {
		n_ids = added[i].id >= n_ids ? added[i].id + 1 : n_ids;
		bytes += strlen(added[i].text);
	}
	return tok_model_init(m, n_ids, bytes, 0, err) && put_tokens(file, vocab, m, err) &&
	       tok_json_added_put(file, vocab, added, n, m, err) &&
	       tok_json_added_keep(added, n, m, err);
}
