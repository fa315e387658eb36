/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "unicode/bytelevel.h"
#include "json_vocab.h"
#include "build/pieces.h"

/* ---- ids by text ---- */

static uint64_t *
find_slot(const struct tok_json_vocab *x, const char *text, size_t len, uint32_t hash)
{
	uint32_t i = hash & x->mask;

	for (; x->slot[i] != 0; i = (i + 1) & x->mask) {
		const struct tok_json_entry *e = &x->entry[(uint32_t)x->slot[i] - 1];

		if (x->slot[i] >> 32 == hash && e->len == len && memcmp(e->text, text, len) == 0)
			break;
	}
	return &x->slot[i];
}

static uint32_t
hash_of(const struct tok_json_vocab *x, const char *text, size_t len)
{
	return tok_hash_bytes(x->seed, (const uint8_t *)text, (uint32_t)len);
}

const struct tok_json_entry *
tok_json_vocab_find(const struct tok_json_vocab *x, const char *text, size_t len)
{
	const uint32_t found =
		x->n == 0 ? 0 : (uint32_t)*find_slot(x, text, len, hash_of(x, text, len));

	return found == 0 ? NULL : &x->entry[found - 1];
}

#define ROOM_MIN 4096u

bool
tok_json_vocab_add(
	struct tok_json_vocab *x, const char *file, struct tok_json_entry e, struct tok_error *err)
{
	if (x->n == x->room) {
		const uint32_t room = x->room == 0 ? ROOM_MIN : 2 * x->room;
		struct tok_json_entry *entry = realloc(x->entry, room * sizeof(*entry));

		if (entry == NULL)
			return tok_fail(err, "%s: out of memory for %u tokens", file, room);
		x->entry = entry;
		x->room = room;
	}
	x->entry[x->n++] = e;
	x->n_ids = e.id >= x->n_ids ? e.id + 1 : x->n_ids;
	x->bytes += e.len;
	return true;
}

#define AHEAD 32u /* entries whose slots are fetched from memory at a time */

bool
tok_json_vocab_index(struct tok_json_vocab *x, const char *file, struct tok_error *err)
{
	uint32_t slots = 1024, hash[AHEAD];

	while (slots < 2 * x->n)
		slots *= 2;
	x->mask = slots - 1;
	x->slot = calloc(slots, sizeof(*x->slot));
	if (x->slot == NULL || !tok_hash_seed(&x->seed))
		return tok_fail(err, "%s: out of memory for %u tokens", file, x->n);
	for (uint32_t i = 0; i < x->n; i++) {
		const struct tok_json_entry *e = &x->entry[i];
		uint64_t *slot;

		for (uint32_t k = 0; i % AHEAD == 0 && k < AHEAD && i + k < x->n; k++) {
			hash[k] = hash_of(x, e[k].text, e[k].len);
			__builtin_prefetch(&x->slot[hash[k] & x->mask], 1);
		}
		slot = find_slot(x, e->text, e->len, hash[i % AHEAD]);
		if (*slot != 0)
			return tok_fail(
				err, "%s: token \"%.60s\" occurs twice: remove one", file, e->text);
		*slot = (uint64_t)hash[i % AHEAD] << 32 | (i + 1);
	}
	return true;
}

void
tok_json_vocab_free(struct tok_json_vocab *x)
{
	free(x->entry);
	free(x->slot);
	*x = (struct tok_json_vocab){0};
}

bool
tok_json_fail(
	const char *file, const char *text, const struct tok_json_text *t, struct tok_error *err)
{
	int line = 1;

	for (const char *p = text; p < t->p; p++)
		line += *p == '\n';
	return tok_fail(err, "%s line %d: %s", file, line, t->why);
}

/* An entry of the object: text and id. */
static bool
read_entry(struct tok_json_vocab *x, const char *file, struct tok_json_text *t, uint32_t most,
	struct tok_error *err)
{
	struct tok_json_string key;
	uint32_t id;

	if (!tok_json_string(t, &key) || !tok_json_open(t, ':'))
		return true; /* t->why */
	t->p = tok_json_blanks(t->p);
	if (!tok_json_number(t, TOK_MAX_IDS - 1, &id))
		return tok_fail(err, "%s: id of \"%.60s\" is not a number from 0 to %u", file,
			key.p, TOK_MAX_IDS - 1);
	if (key.len > most)
		return tok_fail(err, "%s: token %u has %u bytes of text, the limit is %u", file, id,
			key.len, most);
	return tok_json_vocab_add(x, file, (struct tok_json_entry){key.p, key.len, id}, err);
}

bool
tok_json_vocab_read(struct tok_json_vocab *x, const char *file, const char *text, char *p,
	uint32_t most, const char *end, struct tok_error *err)
{
	struct tok_json_text t = {.p = p};
	bool first = true, ok = true;

	ok = tok_json_open(&t, '{');
	while (ok && t.why == NULL && tok_json_next(&t, '}', &first))
		ok = read_entry(x, file, &t, most, err);
	if (t.why == NULL && ok && end != NULL && tok_json_blanks(t.p) != end)
		t.why = "expected the end of the file";
	return t.why == NULL ? ok && tok_json_vocab_index(x, file, err)
			     : tok_json_fail(file, text, &t, err);
}

/* ---- tokens ---- */

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

/* Is it an ordinary token of the model? Special ones are not, because no merge makes them. */
static bool
is_ordinary(const struct tok_model *m, const struct tok_json_vocab *vocab,
	const struct tok_json_added *added)
{
	uint8_t bytes[TOK_ADDED_BYTES_MAX];
	size_t len;

	return !(added->what & TOK_ADDED_SPECIAL) &&
	       tok_json_vocab_find(vocab, added->text, strlen(added->text)) != NULL &&
	       text_bytes(m, added->text, strlen(added->text), bytes, &len);
}

static bool
put_added(const char *file, const struct tok_json_vocab *vocab, const struct tok_json_added *added,
	size_t n, struct tok_model *m, struct tok_error *err)
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
put_entry(const char *file, const struct tok_json_entry *e, struct tok_model *m,
	struct tok_error *err)
{
	const char *key = e->text;
	const uint32_t id = e->id;
	uint8_t bytes[2 * TOK_MAX_TOKEN_BYTES]; /* the length has been checked */
	size_t len;

	if (is_special(m, id, key))
		return true;
	if (m->token[id].len != 0)
		return tok_fail(
			err, "%s: id %u has two tokens, one of them \"%.60s\"", file, id, key);
	if (m->pretok == TOK_PRETOK_SENTENCEPIECE && key[0] != '\0') {
		if (e->len > TOK_MAX_TOKEN_BYTES)
			return tok_fail(err, "%s: token %u has %u bytes, the limit is %u", file, id,
				e->len, TOK_MAX_TOKEN_BYTES);
		tok_piece_put(m, id, key, e->len, tok_piece_byte(key, e->len));
		return true;
	}
	if (!tok_bytelevel_decode(key, e->len, bytes, &len) || len == 0)
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
tok_json_tokens(const char *file, const struct tok_json_vocab *vocab,
	const struct tok_json_added *added, size_t n_added, uint32_t n_merges, struct tok_model *m,
	struct tok_error *err)
{
	uint32_t n_ids = vocab->n_ids;
	size_t n_bytes = vocab->bytes;

	for (size_t i = 0; i < n_added; i++) {
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
	for (uint32_t i = 0; i < vocab->n; i++) {
		if (!put_entry(file, &vocab->entry[i], m, err))
			return false;
	}
	return true;
}

/* ---- merges ---- */

/* A text of a merge that is looked up: one of its parts, or both. */
struct lookup {
	const char *text;
	uint32_t len, hash;
	const struct tok_json_entry *entry; /* the only one that may have this text, or NULL */
};
#define LOOKUPS (3 * TOK_JSON_MERGES)

/*
 * Find the entries of n texts. Each step fetches from memory what the next one reads, because most
 * of the time is waiting for memory.
 */
static void
find_entries(const struct tok_json_vocab *x, struct lookup *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		l[i].hash = hash_of(x, l[i].text, l[i].len);
		__builtin_prefetch(&x->slot[l[i].hash & x->mask]);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = l[i].hash & x->mask;

		while (x->slot[at] != 0 && x->slot[at] >> 32 != l[i].hash)
			at = (at + 1) & x->mask;
		l[i].entry = x->slot[at] == 0 ? NULL : &x->entry[(uint32_t)x->slot[at] - 1];
		__builtin_prefetch(l[i].entry);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (l[i].entry != NULL)
			__builtin_prefetch(l[i].entry->text);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (l[i].entry != NULL &&
			(l[i].entry->len != l[i].len ||
				memcmp(l[i].entry->text, l[i].text, l[i].len) != 0))
			l[i].entry = tok_json_vocab_find(x, l[i].text, l[i].len);
	}
}

/* Id of the token of the model that an entry is, or TOK_NO_TOKEN. */
static uint32_t
token_of(const struct tok_model *m, const struct tok_json_entry *e)
{
	const struct tok_model_token *t = e == NULL ? NULL : &m->token[e->id];

	return t == NULL || t->special || t->outside || t->byte ? TOK_NO_TOKEN : e->id;
}

static bool
no_token(const struct tok_model *m, const struct lookup *l, const char *where, uint32_t number,
	struct tok_error *err)
{
	const int shown = l->len < 60 ? (int)l->len : 60;
	uint8_t bytes[2 * TOK_MAX_TOKEN_BYTES];
	size_t len;

	if (l->len > sizeof(bytes) || !text_bytes(m, l->text, l->len, bytes, &len))
		return tok_fail(err, "%s %u: \"%.*s\" is not byte-level text", where, number, shown,
			l->text);
	return tok_fail(err,
		"%s %u: \"%.*s\" is not in the vocabulary, or is special: remove the merge, or add "
		"it as a token that is not special",
		where, number, shown, l->text);
}

bool
tok_json_merges(struct tok_model *m, const struct tok_json_vocab *vocab, const char *where,
	uint32_t number, const struct tok_json_merge *merge, uint32_t n, struct tok_error *err)
{
	struct lookup all[LOOKUPS], *l = all;

	for (uint32_t i = 0; i < n; i++) {
		const struct tok_json_merge *g = &merge[i];

		*l++ = (struct lookup){.text = g->text, .len = g->left};
		*l++ = (struct lookup){.text = g->text + g->left, .len = g->len - g->left};
		*l++ = (struct lookup){.text = g->text, .len = g->len};
	}
	find_entries(vocab, all, 3 * n);
	l = all;
	for (uint32_t i = 0; i < n; i++, l += 3) {
		const uint32_t left = token_of(m, l[0].entry), right = token_of(m, l[1].entry);
		const uint32_t result = token_of(m, l[2].entry);

		if (left == TOK_NO_TOKEN || right == TOK_NO_TOKEN)
			return no_token(m, &l[left != TOK_NO_TOKEN], where, number + i, err);
		if (result == TOK_NO_TOKEN)
			return tok_fail(err,
				"%s %u: its result is not in the vocabulary, or is special", where,
				number + i);
		tok_model_put_merge(m, left, right, result);
	}
	return true;
}
