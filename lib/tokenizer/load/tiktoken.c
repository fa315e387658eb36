/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A .tiktoken file: lines "base64 rank". Ranks are ids; two parts are merged if their bytes are a
 * token, the lowest rank first. The file has neither the pretokenizer nor special tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "build/model_make.h"
#include "pretokenize/names.h"
#include "rank_model.h"

struct special {
	uint32_t id;
	const char *text;
};

#define SPECIALS_MAX 5 /* most of a known file */
#define SPECIAL_BYTES_MAX 16
#define SPECIAL_ID_MAX 22 /* at most this far above the ranks */

/* From tiktoken_ext/openai_public.py. */
static const struct known {
	uint32_t n_ranks, checksum; /* of the model in the file, without special tokens */
	enum tok_pretok pretok;
	struct special special[SPECIALS_MAX];
} known_files[] = {
	{50256, 0x34fe954du, TOK_PRETOK_GPT2, {{50256, "<|endoftext|>"}}},
	{100256, 0xbb526cfdu, TOK_PRETOK_CL100K,
		{{100257, "<|endoftext|>"}, {100258, "<|fim_prefix|>"}, {100259, "<|fim_middle|>"},
			{100260, "<|fim_suffix|>"}, {100276, "<|endofprompt|>"}}},
	{199998, 0x6153fb38u, TOK_PRETOK_O200K,
		{{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}}},
};

static bool
next_line(struct tok_lines *l)
{
	if (!tok_line_next(l))
		return false;
	l->len -= l->len > 0 && l->p[l->len - 1] == '\r';
	return true;
}

/* Blank lines are skipped, as tiktoken does. */
static uint32_t
count_ranks(char *text, char *end)
{
	struct tok_lines l = {.next = text, .end = end};
	uint32_t n = 0;

	while (next_line(&l))
		n += l.len > 0;
	return n;
}

static bool
parse_line(const char *line, size_t len, uint8_t *bytes, uint32_t *n, uint32_t *rank)
{
	const char *blank = memchr(line, ' ', len), *p;
	uint64_t value = 0;
	int got;

	if (blank == NULL || blank + 1 == line + len)
		return false;
	got = (int)tok_base64_decode(line, (size_t)(blank - line), TOK_MAX_TOKEN_BYTES, bytes);
	for (p = blank + 1; p < line + len; p++) {
		if (*p < '0' || *p > '9' || value > TOK_MAX_IDS)
			return false;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	*n = (uint32_t)got;
	*rank = (uint32_t)value;
	return got > 0;
}

static bool
parse(const char *file, char *text, size_t size, struct tok_model *m, struct tok_error *err)
{
	uint8_t bytes[TOK_MAX_TOKEN_BYTES + 4];
	uint32_t ranks = count_ranks(text, text + size), number = 0, len, rank;
	struct tok_lines l = {.next = text, .end = text + size};

	if (ranks < 256 || ranks > TOK_MAX_IDS - SPECIAL_ID_MAX)
		return tok_fail(err, "%s: %u lines with a rank, expected 256 to %u", file, ranks,
			TOK_MAX_IDS - SPECIAL_ID_MAX);
	if (!tok_model_init(m, ranks + SPECIAL_ID_MAX,
		    size + (size_t)SPECIALS_MAX * SPECIAL_BYTES_MAX, ranks, err))
		return false;
	m->n_tokens = ranks;
	while (next_line(&l)) {
		number++;
		if (l.len == 0)
			continue;
		if (!parse_line(l.p, l.len, bytes, &len, &rank))
			return tok_fail(err,
				"%s line %u: expected \"base64 rank\", a token of 1 to %u "
				"bytes",
				file, number, TOK_MAX_TOKEN_BYTES);
		if (rank >= ranks)
			return tok_fail(err, "%s line %u: rank %u, expected 0 to %u without gaps",
				file, number, rank, ranks - 1);
		if (m->token[rank].len != 0)
			return tok_fail(
				err, "%s line %u: rank %u a second time", file, number, rank);
		tok_model_put(m, rank, bytes, len, false);
	}
	return true;
}

static void
put_specials(struct tok_model *m, const struct known *k)
{
	for (size_t i = 0; i < SPECIALS_MAX && k->special[i].text != NULL; i++) {
		const struct special *special = &k->special[i];

		m->n_tokens = special->id + 1; /* ids ascend */
		tok_model_put(m, special->id, (const uint8_t *)special->text,
			(uint32_t)strlen(special->text), true);
	}
}

static bool
find_pretokenizer(
	const char *file, const char *pretokenizer, struct tok_model *m, struct tok_error *err)
{
	uint32_t checksum = tok_model_checksum(m);

	m->pretok = pretokenizer == NULL ? TOK_PRETOK_NONE : tok_pretok_by_name(pretokenizer);
	if (pretokenizer != NULL && m->pretok == TOK_PRETOK_NONE)
		return tok_fail(err,
			"%s: pretokenizer \"%s\" is not implemented (implemented: " TOK_PRETOK_NAMES
			")",
			file, pretokenizer);
	for (size_t i = 0; i < sizeof(known_files) / sizeof(known_files[0]); i++) {
		const struct known *k = &known_files[i];

		if (k->n_ranks != m->n_tokens || k->checksum != checksum)
			continue;
		m->pretok = k->pretok;
		put_specials(m, k);
		return true;
	}
	if (pretokenizer == NULL)
		return tok_fail(err,
			"%s: a .tiktoken file does not name its pretokenizer, and this one "
			"(%u ranks, checksum %08x) is not recognised by content (known: gpt2, "
			"cl100k_base, o200k_base); choose one with --pretokenizer: " TOK_PRETOK_NAMES,
			file, m->n_tokens, checksum);
	return true;
}

bool
tok_load_tiktoken(
	const char *path, const char *pretokenizer, struct tok_model *m, struct tok_error *err)
{
	const char *file = tok_shown_path(path);
	size_t size;
	char *text = tok_read_file(path, &size, err);
	bool ok;

	/* A pretoken that is a token is not merged (tiktoken's encode_ordinary). */
	*m = (struct tok_model){.format = "tiktoken", .ignore_merges = true};
	if (text == NULL)
		return false;
	ok = parse(file, text, size, m, err) && tok_rank_merges(file, m, err) &&
	     find_pretokenizer(file, pretokenizer, m, err);
	free(text);
	if (!ok)
		tok_model_free(m);
	return ok;
}
