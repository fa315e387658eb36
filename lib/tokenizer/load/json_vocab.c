/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "unicode/bytelevel.h"
#include "json_vocab.h"
#include "tekken.h"
#include "build/pieces.h"

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

json_t *
tok_json_read(const char *path, struct tok_error *err)
{
	const char *file = tok_shown_path(path);
	json_error_t why;
	size_t size;
	char *text = tok_read_file(path, &size, err);
	json_t *root;

	if (text == NULL)
		return NULL;
	root = parse(text, size, &why);
	free(text);
	if (root == NULL)
		tok_fail(err, "%s line %d: %s", file, why.line, why.text);
	else if (!json_is_object(root)) {
		tok_fail(err, "%s: expected a JSON object", file);
		json_decref(root);
		return NULL;
	}
	return root;
}

/*
 * Write the bytes that a token's text stands for to `out`, which has room. False: it stands for
 * none.
 */
static bool
text_bytes(const struct tok_model *m, const char *text, size_t len, uint8_t *out, size_t *n)
{
	if (m->pretok != TOK_PRETOK_SENTENCEPIECE)
		return tok_bytelevel_decode(text, len, out, n) && *n > 0;
	*n = tok_piece_bytes(text, len, out);
	return *n > 0;
}

/*
 * Write the bytes that an added token's text stands for to `out`, which has room; return their
 * number. As in the reference's decoder, byte-level letters stand for bytes and U+2581 for a blank;
 * any other text stands for itself.
 */
static size_t
special_bytes(const struct tok_model *m, const char *text, uint8_t *out)
{
	size_t len = strlen(text), n;

	if (text_bytes(m, text, len, out, &n))
		return n;
	memcpy(out, text, len);
	return len;
}

static bool
is_special(const struct tok_model *m, uint32_t id, const char *text)
{
	const struct tok_model_token *t = &m->token[id];
	uint8_t bytes[2 * TOK_MAX_TOKEN_BYTES]; /* the length has been checked */

	return t->special && t->len == special_bytes(m, text, bytes) &&
	       memcmp(m->bytes + t->off, bytes, t->len) == 0;
}

bool
tok_json_measure(const char *file, json_t *vocab, size_t most, uint32_t *n_ids, size_t *bytes,
	struct tok_error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach (vocab, key, value) {
		json_int_t id = json_integer_value(value);

		if (!json_is_integer(value) || id < 0 || id >= TOK_MAX_IDS)
			return tok_fail(err, "%s: id of \"%.60s\" is not a number from 0 to %u",
				file, key, TOK_MAX_IDS - 1);
		if (strlen(key) > most)
			return tok_fail(err,
				"%s: token %lld has %zu bytes of text, the limit is %zu", file,
				(long long)id, strlen(key), most);
		if ((uint32_t)id >= *n_ids)
			*n_ids = (uint32_t)id + 1;
		*bytes += strlen(key);
	}
	return true;
}

/* Is it an ordinary token of the model? Special ones are not, because no merge makes them. */
static bool
is_ordinary(const struct tok_model *m, const json_t *vocab, const struct tok_json_added *added)
{
	uint8_t bytes[TOK_ADDED_BYTES_MAX];
	size_t len;

	return !(added->what & TOK_ADDED_SPECIAL) && json_object_get(vocab, added->text) != NULL &&
	       text_bytes(m, added->text, strlen(added->text), bytes, &len);
}

static bool
put_added(const char *file, const json_t *vocab, const struct tok_json_added *added, size_t n,
	struct tok_model *m, struct tok_error *err)
{
	uint8_t bytes[TOK_ADDED_BYTES_MAX]; /* the length has been checked */

	for (size_t i = 0; i < n; i++) {
		if (is_ordinary(m, vocab, &added[i]))
			continue;
		if (m->token[added[i].id].len != 0)
			return tok_fail(err, "%s: two added tokens have id %u", file, added[i].id);
		tok_model_put(m, added[i].id, bytes,
			(uint32_t)special_bytes(m, added[i].text, bytes), true);
	}
	return true;
}

static bool
put_entry(
	const char *file, const char *key, uint32_t id, struct tok_model *m, struct tok_error *err)
{
	uint8_t bytes[2 * TOK_MAX_TOKEN_BYTES]; /* the length has been checked */
	size_t len;

	if (is_special(m, id, key))
		return true;
	if (m->token[id].len != 0)
		return tok_fail(
			err, "%s: id %u has two tokens, one of them \"%.60s\"", file, id, key);
	if (m->pretok == TOK_PRETOK_SENTENCEPIECE && key[0] != '\0') {
		if (strlen(key) > TOK_MAX_TOKEN_BYTES)
			return tok_fail(err, "%s: token %u has %zu bytes, the limit is %u", file,
				id, strlen(key), TOK_MAX_TOKEN_BYTES);
		tok_piece_put(m, id, key, strlen(key), tok_piece_byte(key, strlen(key)));
		return true;
	}
	if (!tok_bytelevel_decode(key, strlen(key), bytes, &len) || len == 0)
		return tok_fail(err,
			"%s: token %u \"%.60s\" is not byte-level text: not implemented "
			"(implemented: byte-level vocabularies)",
			file, id, key);
	if (len > TOK_MAX_TOKEN_BYTES)
		return tok_fail(err, "%s: token %u has %zu bytes, the limit is %u", file, id, len,
			TOK_MAX_TOKEN_BYTES);
	tok_model_put(m, id, bytes, (uint32_t)len, false);
	return true;
}

bool
tok_json_tokens(const char *file, const json_t *vocab, const struct tok_json_added *added,
	size_t n_added, uint32_t n_merges, struct tok_model *m, struct tok_error *err)
{
	json_t *object = (json_t *)(uintptr_t)vocab; /* jansson's iterators take no const */
	uint32_t n_ids = 0;
	size_t n_bytes = 0, i;
	const char *key;
	json_t *value;

	if (!tok_json_measure(file, object, 2 * TOK_MAX_TOKEN_BYTES, &n_ids, &n_bytes, err))
		return false;
	for (i = 0; i < n_added; i++) {
		if (added[i].id >= n_ids)
			n_ids = added[i].id + 1;
		n_bytes += strlen(added[i].text);
	}
	if (n_ids == 0)
		return tok_fail(err, "%s: the vocabulary is empty", file);
	if (!(m->pretok == TOK_PRETOK_SENTENCEPIECE
			    ? tok_piece_init(m, n_ids, n_bytes, n_merges, err)
			    : tok_model_init(m, n_ids, n_bytes, n_merges, err)) ||
		!put_added(file, vocab, added, n_added, m, err))
		return false;
	json_object_foreach (object, key, value) {
		if (!put_entry(file, key, (uint32_t)json_integer_value(value), m, err))
			return false;
	}
	return true;
}

bool
tok_json_merge(struct tok_model *m, const struct tok_index *x, const char *where, const char *left,
	size_t left_len, const char *right, size_t right_len, struct tok_error *err)
{
	const char *part[2] = {left, right};
	const size_t part_len[2] = {left_len, right_len};
	uint8_t bytes[4 * TOK_MAX_TOKEN_BYTES]; /* each byte is written as one or two */
	size_t len, total = 0;
	uint32_t id[2], result;

	for (int i = 0; i < 2; i++) {
		if (part_len[i] > 2 * TOK_MAX_TOKEN_BYTES ||
			!text_bytes(m, part[i], part_len[i], bytes + total, &len))
			return tok_fail(err, "%s: \"%.*s\" is not byte-level text", where,
				part_len[i] < 60 ? (int)part_len[i] : 60, part[i]);
		id[i] = tok_index_find(x, bytes + total, (uint32_t)len);
		if (id[i] == TOK_NO_TOKEN)
			return tok_fail(err,
				"%s: \"%.*s\" is not in the vocabulary, or is special: remove the "
				"merge, or add it as a token that is not special",
				where, part_len[i] < 60 ? (int)part_len[i] : 60, part[i]);
		total += len;
	}
	result = tok_index_find(x, bytes, (uint32_t)total);
	if (result == TOK_NO_TOKEN)
		return tok_fail(
			err, "%s: its result is not in the vocabulary, or is special", where);
	tok_model_put_merge(m, id[0], id[1], result);
	return true;
}
