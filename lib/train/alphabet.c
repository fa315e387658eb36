/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids before all merges. */
#include <stdlib.h>
#include <string.h>

#include "unicode/bytelevel.h"
#include "tokens.h"
#include "unicode/classes.h"
#include "unicode/utf8.h"

#define BYTE_LETTERS 0x144u /* characters that stand for bytes are below this */

static uint32_t
add_char(struct train_tokens *t, uint32_t cp, bool later)
{
	uint8_t text[TRAIN_PREFIX_BYTES + 4];
	uint32_t n = later ? TRAIN_PREFIX_BYTES : 0, id;

	memcpy(text, TRAIN_PREFIX, TRAIN_PREFIX_BYTES);
	n += tok_utf8_encode(cp, text + n);
	id = train_tokens_add(t, text, n);
	if (id != TOK_NO_TOKEN)
		t->token[id].chars = 1;
	return id;
}

/* Byte-level: always all 256 bytes, in the order of the characters that they are written as. */
static bool
add_bytes(struct train_alphabet *a, struct train_tokens *t)
{
	for (uint32_t cp = 0; cp < BYTE_LETTERS; cp++) {
		uint8_t text[4], byte;
		uint32_t n = tok_utf8_encode(cp, text);
		size_t n_bytes;

		if (!tok_bytelevel_decode((const char *)text, n, &byte, &n_bytes))
			continue;
		a->first[byte] = add_char(t, cp, false);
		if (a->first[byte] == TOK_NO_TOKEN)
			return false;
	}
	return true;
}

/* ---- WordPiece ---- */

struct letter {
	uint64_t count;
	uint32_t cp;
};

/* The most frequent first; of equally frequent ones the lower code point. */
static int
by_count(const void *a, const void *b)
{
	const struct letter *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->cp < y->cp ? -1 : 1;
}

static int
by_code_point(const void *a, const void *b)
{
	const struct letter *x = a, *y = b;

	return x->cp < y->cp ? -1 : 1;
}

/* Count each character, and note whether it came after another one in a word. */
static void
count_letters(const struct train_words *w, uint64_t *count, bool *is_later)
{
	for (uint32_t i = 0; i < w->n; i++) {
		const uint8_t *p = w->bytes + w->word[i].off, *begin = p, *end = p + w->word[i].len;

		while (p < end) {
			const uint32_t len = tok_utf8_length(*p), cp = tok_utf8_decode(p, len);

			count[cp] += w->word[i].count;
			is_later[cp] |= p > begin;
			p += len;
		}
	}
}

static bool
add_letters(struct train_alphabet *a, struct train_tokens *t, const struct tok_train_options *o,
	uint64_t *count, const bool *is_later)
{
	struct letter *letter;
	uint32_t n = 0, at = 0;
	bool ok = true;

	if (o->initial_alphabet != NULL) {
		for (const uint8_t *p = (const uint8_t *)o->initial_alphabet; *p != '\0';
			p += tok_utf8_length(*p))
			count[tok_utf8_decode(p, tok_utf8_length(*p))] = UINT64_MAX;
	}
	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++)
		n += count[cp] != 0;
	letter = malloc((n + (size_t)1) * sizeof(*letter));
	if (letter == NULL)
		return false;
	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		if (count[cp] != 0)
			letter[at++] = (struct letter){count[cp], cp};
	}
	if (o->limit_alphabet != 0 && o->limit_alphabet < n) {
		qsort(letter, n, sizeof(*letter), by_count);
		n = o->limit_alphabet;
		qsort(letter, n, sizeof(*letter), by_code_point);
	}
	for (uint32_t i = 0; ok && i < n; i++)
		ok = add_char(t, letter[i].cp, false) != TOK_NO_TOKEN;
	/* A character that was left out may still have a token: a special token. */
	for (uint32_t cp = 0; ok && cp < TOK_CODE_POINTS; cp++) {
		uint8_t text[4];

		if (count[cp] == 0)
			continue;
		a->first[cp] = train_tokens_find(t, text, tok_utf8_encode(cp, text));
		if (a->first[cp] == TOK_NO_TOKEN)
			continue;
		t->token[a->first[cp]].chars = 1;
		if (is_later[cp]) {
			a->later[cp] = add_char(t, cp, true);
			ok = a->later[cp] != TOK_NO_TOKEN;
		}
	}
	free(letter);
	return ok;
}

static bool
make_letters(struct train_alphabet *a, struct train_tokens *t, const struct tok_train_options *o,
	const struct train_words *w)
{
	uint64_t *count = calloc(TOK_CODE_POINTS, sizeof(*count));
	bool *is_later = calloc(TOK_CODE_POINTS, sizeof(*is_later)), ok;

	ok = count != NULL && is_later != NULL;
	if (ok) {
		count_letters(w, count, is_later);
		ok = add_letters(a, t, o, count, is_later);
	}
	free(count);
	free(is_later);
	return ok;
}

bool
train_alphabet_make(struct train_alphabet *a, struct train_tokens *t,
	const struct tok_train_options *o, const struct train_words *w, struct tok_error *err)
{
	const bool bytes = o->kind == TOK_KIND_BPE;
	const size_t n = bytes ? 256 : TOK_CODE_POINTS;
	bool ok;

	a->first = malloc(n * sizeof(*a->first));
	a->later = bytes ? a->first : malloc(n * sizeof(*a->later));
	ok = a->first != NULL && a->later != NULL;
	if (ok) {
		memset(a->first, 0xff, n * sizeof(*a->first));
		memset(a->later, 0xff, n * sizeof(*a->later));
	}
	for (uint32_t i = 0; ok && i < o->n_special; i++)
		ok = train_tokens_add(t, (const uint8_t *)o->special[i],
			     (uint32_t)strlen(o->special[i])) != TOK_NO_TOKEN;
	t->n_special = t->n;
	ok = ok && (bytes ? add_bytes(a, t) : make_letters(a, t, o, w));
	return ok || tok_fail(err, "out of memory for the alphabet");
}

void
train_alphabet_free(struct train_alphabet *a)
{
	if (a->later != a->first)
		free(a->later);
	free(a->first);
	*a = (struct train_alphabet){0};
}
