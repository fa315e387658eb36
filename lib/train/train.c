/* SPDX-License-Identifier: BSD-3-Clause */
/* Train a vocabulary from options and files. */
#include <stdlib.h>
#include <string.h>

#include "corpus.h"
#include "build/model_make.h"
#include "pretokenize/names.h"
#include "unicode/utf8.h"
#include "write.h"

static bool
is_text(const char *text)
{
	return tok_utf8_scan((const uint8_t *)text, strlen(text)).end == TOK_UTF8_WHOLE;
}

static bool
check_specials(const struct tok_train_options *o, struct tok_error *err)
{
	bool unk = false;

	for (uint32_t i = 0; i < o->n_special; i++) {
		const char *text = o->special[i];

		if (text[0] == '\0' || strlen(text) > TOK_ADDED_BYTES_MAX || !is_text(text))
			return tok_fail(err,
				"special token \"%.60s\": expected 1 to %u bytes of UTF-8", text,
				TOK_ADDED_BYTES_MAX);
		unk = unk || strcmp(text, "[UNK]") == 0;
	}
	return unk || o->kind != TOK_KIND_WORDPIECE ||
	       tok_fail(err, "WordPiece needs the special token [UNK]: name it among the others");
}

static bool
check(const struct tok_train_options *o, struct tok_error *err)
{
	if (o->vocab_size == 0 || o->vocab_size > TOK_MAX_IDS)
		return tok_fail(
			err, "vocabulary size %u: expected 1 to %u", o->vocab_size, TOK_MAX_IDS);
	if (o->kind == TOK_KIND_BPE && tok_pretok_regex(o->pretok, 0) == NULL)
		return tok_fail(err, "no pretokenizer is given");
	if (o->kind == TOK_KIND_BPE && o->pretok == TOK_PRETOK_CL100K)
		return tok_fail(err,
			"pretokenizer cl100k: a tokenizer.json cannot say it as tiktoken has it; "
			"llama3 differs in white space at the end of a text alone");
	if (o->initial_alphabet != NULL && !is_text(o->initial_alphabet))
		return tok_fail(err, "the initial alphabet is not UTF-8");
	return check_specials(o, err);
}

/* Check early, not after hours of work, that a file can be created in the folder of `out`. */
static bool
check_place(const char *out, struct tok_error *err)
{
	struct tok_whole_file probe;

	if (!tok_whole_file_begin(&probe, out, err))
		return false;
	tok_whole_file_drop(&probe);
	return true;
}

static bool
check_words(const struct train_words *w, struct tok_error *err)
{
	return w->n > 0 || tok_fail(err, "the files have no words: there is nothing to learn from");
}

/* Reject options for which the reference writes a file that it, or libtok, cannot load. */
static bool
check_alphabet(const struct tok_train_options *o, const struct train_alphabet *a,
	const struct train_tokens *t, struct tok_error *err)
{
	for (uint32_t i = 0; o->kind == TOK_KIND_BPE && i < TOK_BYTES; i++) {
		const uint32_t id = a->first[i];

		if (id < t->n_special)
			return tok_fail(err,
				"special token \"%.*s\" is a letter of the byte-level alphabet: "
				"take a longer one",
				(int)t->token[id].len, t->text + t->token[id].off);
	}
	if (o->kind == TOK_KIND_WORDPIECE && a->first[0] != TOK_NO_TOKEN)
		return tok_fail(err,
			"a word has a NUL, which no vocabulary file can have: do not keep controls");
	return t->n <= o->vocab_size ||
	       tok_fail(err, "vocabulary size %u: special tokens and the alphabet are %u already%s",
		       o->vocab_size, t->n,
		       o->kind == TOK_KIND_WORDPIECE ? "; --limit-alphabet makes it smaller" : "");
}

static bool
train(const struct tok_train_options *o, struct train_words *words, struct train_tokens *t,
	const char *out, struct tok_error *err)
{
	struct train_alphabet a = {0};
	struct train_merges merges = {0};
	bool ok = train_alphabet_make(&a, t, o, words, err) && check_alphabet(o, &a, t, err) &&
		  train_merge(o, words, &a, t, &merges, err) &&
		  train_write(o, t, &merges, out, err);

	train_alphabet_free(&a);
	free(merges.merge);
	return ok;
}

bool
tok_train(const struct tok_train_options *o, const char *const *files, uint32_t n_files,
	const char *out, struct tok_error *err)
{
	struct train_words words = {0};
	struct train_tokens tokens = {0};
	bool ok = check(o, err) && check_place(out, err) && train_words_init(&words, err) &&
		  train_tokens_init(&tokens, err) && train_count(o, files, n_files, &words, err) &&
		  check_words(&words, err) && train(o, &words, &tokens, out, err);

	train_words_free(&words);
	train_tokens_free(&tokens);
	return ok;
}
