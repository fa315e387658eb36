/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse a tokenizer.json without its large parts. Set-up only. */
#include <stdlib.h>
#include <string.h>

#include "json_vocab.h"
#include "tekken.h"

/* A part of the text that is left out. */
struct cut {
	const char *begin, *end;
};

/* tekken.json has a NUL in a string that is not read; elsewhere it is rejected. */
static bool
looks_like_tekken(char *text)
{
	const char *config = tok_json_find(tok_json_blanks(text), "config");
	const char *vocab;

	if (config == NULL || *config != '{')
		return false;
	vocab = tok_json_find(tok_json_blanks(text), "vocab");
	return vocab != NULL && *vocab == '[';
}

/* The value of a key of the model (tok_json_find), if it begins with `open`. */
static char *
find_part(char *model, const char *key, char open, struct cut *c)
{
	char *p = tok_json_find(model, key);

	if (p == NULL || *p != open)
		return NULL;
	c->begin = p + 1; /* the brackets stay */
	c->end = tok_json_skip(p);
	if (c->end == NULL)
		return NULL;
	c->end--;
	return p;
}

/* Read f->text without the parts cut[0 .. n), which are in order. nul: as of tok_json_text. */
static bool
read_rest(struct tok_json_file *f, size_t size, bool nul, const struct cut *cut, uint32_t n,
	struct tok_error *err)
{
	struct tok_json_text at = {.nul = nul};
	const char *from = f->text;
	size_t have = 0, place;

	f->rest = malloc(size + 1);
	if (f->rest == NULL)
		return tok_fail(err, "%s: out of memory for %zu bytes", f->shown, size);
	for (uint32_t i = 0; i <= n; i++) {
		const char *end = i < n ? cut[i].begin : f->text + size;

		memcpy(f->rest + have, from, (size_t)(end - from));
		have += (size_t)(end - from);
		from = i < n ? cut[i].end : end;
	}
	f->rest[have] = '\0';
	if (tok_json_tree_read(&f->tree, f->rest, have, &at))
		return true;
	place = (size_t)(at.p - f->rest);
	for (uint32_t i = 0; i < n && (size_t)(cut[i].begin - f->text) <= place; i++)
		place += (size_t)(cut[i].end - cut[i].begin);
	at.p = f->text + place;
	return tok_json_fail(f->shown, f->text, &at, err);
}

bool
tok_json_open_text(
	struct tok_json_file *f, const char *shown, char *text, size_t size, struct tok_error *err)
{
	struct cut cut[2] = {0};
	uint32_t n = 0;
	char *model;

	*f = (struct tok_json_file){.shown = shown, .text = text};
	model = tok_json_find(tok_json_blanks(f->text), "model");
	f->vocab = find_part(model, "vocab", '{', &cut[n]);
	n += f->vocab != NULL;
	if (n > 0) { /* usually after the vocabulary, which is long: it is skipped once */
		f->merges = find_part(tok_json_blanks(f->text + (cut[0].end + 1 - f->text)),
			"merges", '[', &cut[n]);
		if (f->merges == NULL)
			f->merges = find_part(model, "merges", '[', &cut[n]);
	}
	f->merges_end = cut[n].end;
	n += f->merges != NULL;
	if (n == 2 && cut[1].begin < cut[0].begin) {
		const struct cut first = cut[1];

		cut[1] = cut[0];
		cut[0] = first;
	}
	if (read_rest(f, size, model == NULL && looks_like_tekken(f->text), cut, n, err)) {
		f->root = f->tree.root;
		if (tok_json_is_object(f->root))
			return true;
		tok_fail(err, "%s: expected a JSON object", f->shown);
	}
	tok_json_close_file(f);
	return false;
}

void
tok_json_close_file(struct tok_json_file *f)
{
	tok_json_tree_free(&f->tree);
	free(f->rest);
	free(f->text);
}
