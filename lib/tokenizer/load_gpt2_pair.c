/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPT-2's own pair of files: vocab.json (byte-level text to id) and merges.txt ("left right" a line,
 * in order of rank, after an optional "#version" line). The format has no word for special tokens. A token
 * that is neither a byte nor made by a merge can never be produced; it is taken as special if it
 * looks like GPT-2's own, <|...|>, and refused otherwise.
 */
#include <stdio.h>
#include <string.h>

#include "json_vocab.h"

static bool
looks_special(const char *text)
{
	size_t len = strlen(text);

	return len > 4 && strncmp(text, "<|", 2) == 0 && strcmp(text + len - 2, "|>") == 0;
}

/* Room for as many specials as the object has. */
static size_t
find_specials(json_t *vocab, struct tok_json_special *special)
{
	const char *key;
	json_t *value;
	size_t n = 0;

	json_object_foreach(vocab, key, value) {
		json_int_t id = json_integer_value(value);

		if (looks_special(key) && json_is_integer(value) && id >= 0 && id < TOK_MAX_IDS)
			special[n++] = (struct tok_json_special){(uint32_t)id, key};
	}
	return n;
}

static bool
parse_merges(const char *path, char *text, size_t size, struct tok_model *m,
	const struct tok_index *x, struct tok_error *err)
{
	char where[512], *end = text + size, *eol;
	uint32_t number = 0;

	for (char *p = text; p < end; p = eol + 1) {
		size_t len, fields = 1;
		char *blank;

		number++;
		eol = memchr(p, '\n', (size_t)(end - p));
		if (eol == NULL)
			eol = end;
		len = (size_t)(eol - p);
		if (len > 0 && p[len - 1] == '\r')
			len--;
		if ((number == 1 && len >= 8 && memcmp(p, "#version", 8) == 0) ||
			(len == 0 && eol + 1 >= end))
			continue;
		snprintf(where, sizeof(where), "%.400s line %u", path, number);
		for (size_t i = 0; i < len; i++)
			fields += p[i] == ' ';
		if (fields != 2)
			return tok_fail(err, "%s: expected two fields, found %zu", where,
				len == 0 ? 0 : fields);
		blank = memchr(p, ' ', len);
		if (!tok_json_merge(m, x, where, p, (size_t)(blank - p), blank + 1,
			    len - (size_t)(blank - p) - 1, err))
			return false;
	}
	return true;
}

/* Every token that is not a byte must be made by a merge, or nothing ever makes it. */
static bool
all_are_made(const char *path, const struct tok_model *m, struct tok_error *err)
{
	bool *made = calloc(m->n_tokens, sizeof(*made));
	bool ok = made != NULL || tok_fail(err, "out of memory");
	uint32_t i;

	for (i = 0; ok && i < m->n_merges; i++)
		made[m->merge[i].result] = true;
	for (i = 0; ok && i < m->n_tokens; i++) {
		const struct tok_model_token *t = &m->token[i];

		if (!t->special && t->len > 1 && !made[i])
			ok = tok_fail(err, "%s: id %u is made by no merge and is not of the form "
					   "<|...|>: is merges.txt whole?", path, i);
	}
	free(made);
	return ok;
}

bool
tok_load_gpt2_pair(const char *vocab_json, const char *merges_txt, struct tok_model *m,
	struct tok_error *err)
{
	json_t *vocab = tok_json_read(vocab_json, err);
	struct tok_json_special *special = NULL;
	struct tok_index x = {0};
	char *merges = NULL;
	size_t size;
	bool ok = false;

	*m = (struct tok_model){.format = "vocab.json", .pretok = TOK_PRETOK_GPT2};
	if (vocab == NULL)
		return false;
	merges = tok_read_file(merges_txt, &size, err);
	if (merges == NULL)
		goto out;
	special = calloc(json_object_size(vocab) + 1, sizeof(*special));
	if (special == NULL) {
		tok_fail(err, "out of memory");
		goto out;
	}
	/* A merge takes at least four bytes of its file: "a b\n". */
	if (!tok_json_tokens(vocab_json, vocab, special, find_specials(vocab, special),
		    (uint32_t)(size / 4 + 1), m, err) ||
		!tok_index_init(&x, m, err))
		goto out;
	for (uint32_t id = 0; id < m->n_tokens; id++)
		tok_index_add(&x, id); /* keys of an object differ, and so do their bytes */
	ok = parse_merges(merges_txt, merges, size, m, &x, err) && all_are_made(vocab_json, m, err);
out:
	tok_index_free(&x);
	free(special);
	free(merges);
	json_decref(vocab);
	if (!ok)
		tok_model_free(m);
	return ok;
}
