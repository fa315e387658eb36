/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse a tokenizer.json without its large parts. Set-up only. */
#include <stdlib.h>
#include <string.h>

#include "json_vocab.h"
#include "tekken.h"

/* A part of the text that is left out. */
struct cut {
	const char *begin, *end;
	size_t at; /* its place in the rest */
};

/* Reject NUL in strings, because C strings end there. tekken.json is an exception: it has a NUL in
 * a string that is not read. */
static json_t *
parse(const char *text, size_t size, json_error_t *why)
{
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, why);
	json_error_t again;

	if (root != NULL || json_error_code(why) != json_error_null_character)
		return root;
	root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &again);
	if (root != NULL && tok_is_tekken(root))
		return root;
	json_decref(root);
	return NULL;
}

/* The value of a key of the model, if it begins with `open`. */
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

static int
count_lines(const char *p, const char *end)
{
	int n = 0;

	for (; p < end; p++)
		n += *p == '\n';
	return n;
}

/* Parse what is left of the text without the parts cut[0 .. n), which are in order. */
static json_t *
parse_rest(const char *text, size_t size, struct cut *cut, uint32_t n, json_error_t *why)
{
	char *rest = malloc(size + 1);
	const char *from = text;
	size_t have = 0;
	json_t *root;

	if (rest == NULL)
		return NULL;
	for (uint32_t i = 0; i <= n; i++) {
		const char *end = i < n ? cut[i].begin : text + size;

		memcpy(rest + have, from, (size_t)(end - from));
		have += (size_t)(end - from);
		if (i < n) {
			cut[i].at = have;
			from = cut[i].end;
		}
	}
	root = parse(rest, have, why);
	free(rest);
	for (uint32_t i = 0; root == NULL && i < n; i++) {
		if ((size_t)why->position > cut[i].at)
			why->line += count_lines(cut[i].begin, cut[i].end);
	}
	return root;
}

bool
tok_json_open_text(
	struct tok_json_file *f, const char *shown, char *text, size_t size, struct tok_error *err)
{
	json_error_t why = {.text = "out of memory"};
	struct cut cut[2] = {0};
	uint32_t n = 0;
	char *model;

	*f = (struct tok_json_file){.shown = shown, .text = text};
	model = tok_json_find(tok_json_blanks(f->text), "model");
	f->vocab = find_part(model, "vocab", '{', &cut[n]);
	n += f->vocab != NULL;
	f->merges = find_part(model, "merges", '[', &cut[n]);
	f->merges_end = cut[n].end;
	n += f->merges != NULL;
	if (n == 2 && cut[1].begin < cut[0].begin) {
		const struct cut first = cut[1];

		cut[1] = cut[0];
		cut[0] = first;
	}
	f->root = parse_rest(f->text, size, cut, n, &why);
	if (f->root != NULL && json_is_object(f->root))
		return true;
	if (f->root == NULL)
		tok_fail(err, "%s line %d: %s", f->shown, why.line, why.text);
	else
		tok_fail(err, "%s: expected a JSON object", f->shown);
	tok_json_close_file(f);
	return false;
}

void
tok_json_close_file(struct tok_json_file *f)
{
	json_decref(f->root);
	free(f->text);
}
