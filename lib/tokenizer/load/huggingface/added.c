/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

static const struct tok_json_rule rules[] = {
	{"id", NULL, NULL, true},
	{"content", NULL, NULL, true},
	{"single_word", "true, false", NULL, false},
	{"lstrip", "true, false", NULL, false},
	{"rstrip", "true, false", NULL, false},
	{"normalized", "true, false", NULL, false},
	{"special", "true, false", NULL, true},
};

static const struct {
	const char *key;
	uint32_t what;
} flags[] = {
	{"single_word", TOK_ADDED_SINGLE_WORD},
	{"lstrip", TOK_ADDED_LSTRIP},
	{"rstrip", TOK_ADDED_RSTRIP},
	{"normalized", TOK_ADDED_NORMALIZED},
	{"special", TOK_ADDED_SPECIAL},
};

/*
 * Read one added token. As in the reference (added_vocabulary.rs, add_tokens), its id is that of
 * the model's vocabulary if this has the content; else the next free one, starting at the
 * vocabulary's size.
 */
static bool
read_one(const char *file, size_t i, const struct tok_json *value,
	const struct tok_json_vocab *vocab, int64_t *next, struct tok_json_added *added,
	struct tok_error *err)
{
	const char *content = tok_json_string_value(tok_json_get(value, "content"));
	int64_t id = tok_json_integer_value(tok_json_get(value, "id")), expected;
	const struct tok_json_entry *known;
	char what[40];

	snprintf(what, sizeof(what), "added_tokens[%zu]", i);
	if (!tok_json_check(file, what, value, rules, N(rules), err))
		return false;
	if (content == NULL || !tok_json_is_integer(tok_json_get(value, "id")) || id < 0 ||
		id >= TOK_MAX_IDS)
		return tok_fail(err, "%s: %s: expected a content and an id from 0 to %u", file,
			what, TOK_MAX_IDS - 1);
	if (strlen(content) == 0 || strlen(content) > TOK_ADDED_BYTES_MAX)
		return tok_fail(err, "%s: added token %lld has %zu bytes, expected 1 to %u", file,
			(long long)id, strlen(content), TOK_ADDED_BYTES_MAX);
	known = tok_json_vocab_find(vocab, content, strlen(content));
	expected = known != NULL ? known->id : *next;
	if (id != expected)
		return tok_fail(err,
			"%s: added token \"%.60s\" has id %lld, but tokenizers gives it %lld: "
			"load the file with tokenizers and save it again",
			file, content, (long long)id, (long long)expected);
	if (id >= *next)
		*next = id + 1;
	*added = (struct tok_json_added){.id = (uint32_t)id, .text = content};
	for (size_t k = 0; k < N(flags); k++)
		added->what |=
			tok_json_is_true(tok_json_get(value, flags[k].key)) ? flags[k].what : 0;
	return true;
}

bool
tok_json_added_read(const char *file, const struct tok_json *root,
	const struct tok_json_vocab *vocab, struct tok_json_added *added, struct tok_error *err)
{
	int64_t next = vocab->n;
	const struct tok_json *value;
	struct tok_json_vocab seen = {0};
	bool ok = true;
	size_t i;

	tok_json_array_foreach (tok_json_get(root, "added_tokens"), i, value) {
		ok = ok && read_one(file, i, value, vocab, &next, &added[i], err);
		if (!ok)
			break;
		ok = tok_json_vocab_add(&seen, file,
			(struct tok_json_entry){
				added[i].text, (uint32_t)strlen(added[i].text), added[i].id},
			err);
	}
	ok = ok && tok_json_vocab_index(&seen, file, err); /* no text twice */
	tok_json_vocab_free(&seen);
	return ok;
}

bool
tok_json_added_put(const char *file, const struct tok_json_vocab *vocab,
	const struct tok_json_added *added, size_t n, struct tok_model *m, struct tok_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t *text = (const uint8_t *)added[i].text;
		struct tok_model_token *t = &m->token[added[i].id];

		if (tok_json_vocab_find(vocab, added[i].text, strlen(added[i].text)) == NULL) {
			if (t->len != 0)
				return tok_fail(err,
					"%s: id %u has two tokens, one of them \"%.60s\"", file,
					added[i].id, added[i].text);
			tok_model_put(m, added[i].id, text, (uint32_t)strlen(added[i].text), true);
			t->outside = true;
		}
		t->special |= added[i].what & TOK_ADDED_SPECIAL;
	}
	return true;
}

bool
tok_json_added_keep(
	const struct tok_json_added *added, size_t n, struct tok_model *m, struct tok_error *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += strlen(added[i].text);
	m->added = calloc(n + 1, sizeof(*m->added));
	m->added_bytes = malloc(bytes + 1);
	if (m->added == NULL || m->added_bytes == NULL)
		return tok_fail(err, "out of memory for %zu added tokens", n);
	bytes = 0;
	for (size_t i = 0; i < n; i++) {
		const uint32_t len = (uint32_t)strlen(added[i].text);

		memcpy(m->added_bytes + bytes, added[i].text, len);
		m->added[m->n_added++] = (struct tok_model_added){.id = added[i].id,
			.what = added[i].what,
			.off = (uint32_t)bytes,
			.len = len};
		bytes += len;
	}
	return true;
}
