/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPT-2's own pair of files: vocab.json (byte-level text to id) and merges.txt ("left right" a
 * line, in order of rank, after an optional "#version" line).
 *
 * The format does not mark special tokens. GPT-2's file has 50257 entries: 256 bytes, 50000 results
 * of merges, and <|endoftext|>. Encoding never produces an entry that is neither a byte nor made by
 * a merge. Such an entry is special if it looks like GPT-2's own: <|...|> in printable ASCII, which
 * is the same in byte-level and plain text. Any other is rejected: merges.txt is probably
 * incomplete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_vocab.h"

/* The vocabulary of GPT-2's own files. The checksum is that of tok_model_checksum(). */
#define GPT2_TOKENS 50257
#define GPT2_CHECKSUM 0x68850f16u

static bool
looks_special(const uint8_t *text, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (text[i] < 0x21 || text[i] > 0x7e)
			return false;
	}
	return len > 4 && memcmp(text, "<|", 2) == 0 && memcmp(text + len - 2, "|>", 2) == 0;
}

static bool
parse_merges(const char *file, char *text, size_t size, uint32_t limit, struct tok_model *m,
	const struct tok_json_vocab *vocab, struct tok_error *err)
{
	struct tok_lines l = {.next = text, .end = text + size};
	char where[TOK_SHOWN_MAX + 32];

	snprintf(where, sizeof(where), "%s line", file);
	for (uint32_t number = 1; tok_line_next(&l); number++) {
		const size_t len = l.len - (l.len > 0 && l.p[l.len - 1] == '\r');
		struct tok_json_merge merge;
		size_t fields = 1;
		char *p = l.p, *blank;

		if ((number == 1 && len >= 8 && memcmp(p, "#version", 8) == 0) ||
			(len == 0 && l.next == l.end))
			continue;
		if (m->n_merges == limit)
			return tok_fail(err,
				"%s %u: more merges than the %u tokens of the vocabulary", where,
				number, limit);
		for (size_t i = 0; i < len; i++)
			fields += p[i] == ' ';
		if (fields != 2)
			return tok_fail(err, "%s %u: expected two fields, found %zu", where, number,
				len == 0 ? 0 : fields);
		blank = memchr(p, ' ', len);
		merge = tok_json_join(
			p, (size_t)(blank - p), blank + 1, len - (size_t)(blank - p) - 1);
		if (!tok_json_merges(m, vocab, where, number, &merge, 1, err))
			return false;
	}
	return true;
}

/* Mark what no merge makes as special; see the rule at the top. */
static bool
mark_specials(const char *file, struct tok_model *m, struct tok_error *err)
{
	bool *made = calloc(m->n_tokens, sizeof(*made));
	bool ok = made != NULL || tok_fail(err, "out of memory");
	uint32_t i;

	for (i = 0; ok && i < m->n_merges; i++)
		made[m->merge[i].result] = true;
	for (i = 0; ok && i < m->n_tokens; i++) {
		struct tok_model_token *t = &m->token[i];

		if (t->len <= 1 || made[i])
			continue;
		t->special = looks_special(m->bytes + t->off, t->len);
		if (!t->special)
			ok = tok_fail(err,
				"%s: id %u \"%.*s\" is made by no merge and does not look "
				"like a special token, <|...|>: is merges.txt complete?",
				file, i, t->len < 60 ? (int)t->len : 60, m->bytes + t->off);
	}
	free(made);
	return ok;
}

/*
 * Other models have such a pair too, with other pretokenizers. Taken for GPT-2, they would give
 * wrong ids.
 */
static bool
check_pretokenizer(const char *file, const char *pretokenizer, const struct tok_model *m,
	struct tok_error *err)
{
	const uint32_t checksum = tok_model_checksum(m);

	if (pretokenizer == NULL && (m->n_tokens != GPT2_TOKENS || checksum != GPT2_CHECKSUM))
		return tok_fail(err,
			"%s: vocab.json with merges.txt do not name their pretokenizer. These (%u "
			"tokens, checksum %08x) are not recognised by content (known: gpt2). If "
			"it is GPT-2's, add --pretokenizer gpt2; else load the model's "
			"tokenizer.json",
			file, m->n_tokens, checksum);
	if (pretokenizer != NULL && strcmp(pretokenizer, "gpt2") != 0)
		return tok_fail(err,
			"%s: pretokenizer \"%s\" is not implemented (implemented: gpt2)", file,
			pretokenizer);
	return true;
}

bool
tok_load_gpt2_pair(const char *vocab_json, const char *merges_txt, const char *pretokenizer,
	struct tok_model *m, struct tok_error *err)
{
	const char *file = tok_shown_path(vocab_json);
	struct tok_json_vocab vocab = {0};
	char *text, *merges = NULL;
	size_t size;
	bool ok;

	*m = (struct tok_model){.format = "vocab.json", .pretok = TOK_PRETOK_GPT2};
	text = tok_read_file(vocab_json, &size, err);
	if (text == NULL)
		return false;
	ok = tok_json_vocab_read(
		&vocab, file, text, text, 2 * TOK_MAX_TOKEN_BYTES, text + size, err);
	if (ok)
		merges = tok_read_file(merges_txt, &size, err);
	/* No merges share a result, so there is room for all. */
	ok = merges != NULL && tok_json_tokens(file, &vocab, NULL, 0, vocab.n, m, err) &&
	     parse_merges(tok_shown_path(merges_txt), merges, size, vocab.n, m, &vocab, err) &&
	     mark_specials(file, m, err) && check_pretokenizer(file, pretokenizer, m, err);
	tok_json_vocab_free(&vocab);
	free(merges);
	free(text);
	if (!ok)
		tok_model_free(m);
	return ok;
}
