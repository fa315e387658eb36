/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hugging Face's tokenizer.json, as the `tokenizers` crate writes it. Where its loader would
 * correct a file (ids of added tokens), the file is rejected here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "load/tekken.h"
#include "build/pieces.h"
#include "unicode/bytelevel.h"

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

/* The same for tokens that end words with </w>. All bytes are tokens: none is unknown. */
static const struct tok_json_rule words_rules[] = {
	{"type", "\"BPE\"", NULL, false},
	{"dropout", "null, 0, 0.0", "dropout makes ids random: set it to null", false},
	{"unk_token", NULL, NULL, false},
	{"continuing_subword_prefix", "null, \"\"", NULL, false},
	{"end_of_word_suffix", "\"" TOK_JSON_WORD_END "\"", NULL, true},
	{"fuse_unk", "true, false", NULL, false},
	{"byte_fallback", "false", NULL, false},
	{"ignore_merges", "false", NULL, false},
	{"vocab", NULL, NULL, true},
	{"merges", NULL, NULL, true},
};

static bool
check_components(const char *file, const struct tok_json *root, struct tok_error *err)
{
	const struct tok_json *decoder = tok_json_get(root, "decoder");
	const struct tok_json *model = tok_json_get(root, "model");

	/* Without a decoder the reference would join tokens by blanks, as byte-level letters. */
	return tok_json_check_component(file, "decoder", decoder, "ByteLevel", decoder_rules,
		       N(decoder_rules), err) &&
	       (tok_json_has_word_ends(root) ? tok_json_check(file, "model", model, words_rules,
						       N(words_rules), err)
					     : tok_json_check(file, "model", model, model_rules,
						       N(model_rules), err));
}

static bool
read_steps(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const struct tok_json *normalizer = tok_json_get(root, "normalizer");

	return tok_json_is_absent(normalizer) ||
	       tok_json_step(file, "normalizer", normalizer, &m->norm, err);
}

/* At least as many merges as a list has: each has two quotation marks or more. */
static uint32_t
most_merges(const char *p, const char *end)
{
	uint32_t quotes = 0;

	for (; p < end; p++)
		quotes += *p == '"';
	return quotes / 2 < TOK_MAX_IDS ? quotes / 2 : TOK_MAX_IDS;
}

/* A merge is "left right" or ["left", "right"]. On invalid JSON sets t->why and returns true. */
static bool
read_merge(const char *where, uint32_t number, struct tok_json_text *t, struct tok_json_merge *g,
	struct tok_error *err)
{
	struct tok_json_string part[3];
	bool first = true;
	uint32_t n = 0;

	if (*t->p == '"') {
		char *blank;

		if (!tok_json_string(t, &part[0]))
			return true;
		blank = memchr(part[0].p, ' ', part[0].len);
		if (blank == NULL || strchr(blank + 1, ' ') != NULL)
			return tok_fail(err, "%s %u: expected two fields: \"%.60s\"", where, number,
				part[0].p);
		*g = tok_json_join(
			part[0].p, (size_t)(blank - part[0].p), blank + 1, strlen(blank + 1));
		return true;
	}
	if (*t->p == '[') {
		t->p++;
		while (n < 3 && tok_json_next(t, ']', &first) && *t->p == '"' &&
			tok_json_string(t, &part[n]))
			n++;
		if (n == 2 && t->why == NULL && t->p[-1] == ']')
			*g = tok_json_join(part[0].p, part[0].len, part[1].p, part[1].len);
		else
			n = 0;
	}
	return n == 2 || t->why != NULL ||
	       tok_fail(err, "%s %u: expected two strings", where, number);
}

static bool
read_merges(const struct tok_json_file *f, const struct tok_json_vocab *vocab, struct tok_model *m,
	struct tok_error *err)
{
	struct tok_json_merge merge[TOK_JSON_MERGES];
	struct tok_json_text t = {.p = f->merges};
	char where[TOK_SHOWN_MAX + 32];
	bool first = true, ok = true, more = true;
	uint32_t done = 0;

	snprintf(where, sizeof(where), "%s: merge", f->shown);
	tok_json_open(&t, '[');
	while (ok && more) {
		uint32_t n = 0;

		while (ok && n < TOK_JSON_MERGES &&
			(more = tok_json_next(&t, ']', &first) && t.why == NULL)) {
			ok = read_merge(where, done + n, &t, &merge[n], err);
			more = t.why == NULL;
			n += more;
		}
		if (done + n > TOK_MAX_IDS)
			return tok_fail(err, "%s: model.merges is not a list of at most %u merges",
				f->shown, TOK_MAX_IDS);
		ok = ok && tok_json_merges(m, vocab, where, done, merge, n, err);
		done += n;
	}
	return t.why == NULL ? ok : tok_json_fail(f->shown, f->text, &t, err);
}

/* Drop the merges that join a byte which is a number to another one. */
static void
keep_digits_apart(struct tok_model *m)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < m->n_merges; i++) {
		const struct tok_model_token *left = &m->token[m->merge[i].left];
		const struct tok_model_token *right = &m->token[m->merge[i].right];

		if (tok_bytelevel_is_number(m->bytes[left->off + left->len - 1]) ==
			tok_bytelevel_is_number(m->bytes[right->off]))
			m->merge[kept++] = m->merge[i];
	}
	m->n_merges = kept;
}

static bool
read_model(const struct tok_json_file *f, const struct tok_json_vocab *vocab,
	struct tok_json_added *added, struct tok_model *m, struct tok_error *err)
{
	const size_t n = tok_json_array_size(tok_json_get(f->root, "added_tokens"));
	const struct tok_json *model = tok_json_get(f->root, "model");

	m->ignore_merges = tok_json_is_true(tok_json_get(model, "ignore_merges"));
	if (m->ignore_merges && m->digits_apart)
		return tok_fail(err,
			"%s: model.ignore_merges with Digits after ByteLevel is not implemented",
			f->shown);
	if (f->merges == NULL)
		return tok_fail(err, "%s: model.merges is not a list of at most %u merges",
			f->shown, TOK_MAX_IDS);
	if (!tok_json_added_read(f->shown, f->root, vocab, added, err) ||
		!tok_json_tokens(f->shown, vocab, added, n,
			most_merges(f->merges, f->merges_end) + 256, m, err) ||
		!tok_json_added_keep(added, n, m, err) ||
		(m->pretok == TOK_PRETOK_SENTENCEPIECE &&
			!tok_piece_characters(m, f->shown, err)) ||
		!read_merges(f, vocab, m, err))
		return false;
	if (m->digits_apart)
		keep_digits_apart(m);
	return !m->word_end || tok_json_word_ends(f->shown, m, err);
}

/* Read a model whose vocabulary is an object. */
static bool
read_object(const struct tok_json_file *f, bool wordpiece, struct tok_json_added *added,
	struct tok_model *m, struct tok_error *err)
{
	const uint32_t most = wordpiece ? TOK_MAX_TOKEN_BYTES : 2 * TOK_MAX_TOKEN_BYTES;
	struct tok_json_vocab vocab = {0};
	bool ok;

	if (f->vocab == NULL)
		return tok_fail(err, "%s: model.vocab is not an object of tokens to ids", f->shown);
	ok = tok_json_vocab_read(&vocab, f->shown, f->text, f->vocab, most, NULL, err) &&
	     (wordpiece ? tok_json_bert_read(f, &vocab, added, m, err)
			: read_model(f, &vocab, added, m, err));
	tok_json_vocab_free(&vocab);
	return ok;
}

static bool
check_kind(const char *file, const struct tok_json *root, struct tok_error *err)
{
	static const char *const kinds[] = {"BPE", "WordPiece", "WordLevel", "Unigram"};
	const struct tok_json *model = tok_json_get(root, "model");

	if (tok_json_get(model, "type") == NULL) /* BPE */
		return true;
	for (size_t i = 0; i < N(kinds); i++) {
		if (tok_json_is_type(model, kinds[i]))
			return true;
	}
	return tok_json_refuse(
		file, "model", model, "\"BPE\", \"WordPiece\", \"WordLevel\", \"Unigram\"", err);
}

static bool
load(const struct tok_json_file *f, struct tok_model *m, struct tok_error *err)
{
	const char *file = f->shown;
	const struct tok_json *root = f->root, *list = tok_json_get(root, "added_tokens");
	struct tok_json_added *added = NULL;
	const bool wordpiece = tok_json_is_bert(root), unigram = tok_json_is_unigram(root);
	bool ok;

	*m = (struct tok_model){.format = "tokenizer.json"};
	if (!tok_json_check_top(file, root, err) || !check_kind(file, root, err))
		return false;
	if (wordpiece)
		ok = tok_json_bert_check(file, root, m, err);
	else if (tok_json_is_pieces(root))
		ok = tok_json_pieces(file, root, m, err);
	else if (unigram)
		ok = tok_json_unigram_check(file, root, m, err);
	else
		ok = check_components(file, root, err) && read_steps(file, root, m, err) &&
		     (tok_json_has_word_ends(root) ? tok_json_word_ends_pretok(file, root, m, err)
						   : tok_json_pretok(file, root, m, err));
	if (ok && !tok_json_is_absent(list) && !tok_json_is_array(list))
		ok = tok_fail(err, "%s: added_tokens is not a list", file);
	if (ok) {
		added = calloc(tok_json_array_size(list) + 1, sizeof(*added));
		ok = added != NULL || tok_fail(err, "out of memory");
	}
	if (ok)
		ok = unigram ? tok_json_unigram_read(f, added, m, err)
			     : read_object(f, wordpiece, added, m, err);
	ok = ok && tok_json_shape(file, root, m, err);
	free(added);
	return ok;
}

bool
tok_load_tokenizer_json(
	const char *path, char *text, size_t size, struct tok_model *m, struct tok_error *err)
{
	struct tok_json_file f;
	bool ok;

	*m = (struct tok_model){0};
	if (text == NULL)
		text = tok_read_file(path, &size, err);
	if (text == NULL || !tok_json_open_text(&f, tok_shown_path(path), text, size, err))
		return false;
	ok = tok_is_tekken(f.root) ? tok_load_tekken(f.shown, f.root, m, err) : load(&f, m, err);
	tok_json_close_file(&f);
	if (!ok)
		tok_model_free(m);
	return ok;
}
