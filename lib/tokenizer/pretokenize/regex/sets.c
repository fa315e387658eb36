/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "inside.h"
#include "unicode/bert_tables.h"
#include "unicode/classes.h"
#include "unicode/word.h"

static int
compare_ranges(const void *a, const void *b)
{
	const struct rx_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static struct rx_set *
make(struct rx *rx, uint32_t room)
{
	struct rx_set *s = rx_alloc(rx, 1, sizeof(*s));

	if (s != NULL)
		s->at = rx_alloc(rx, room + 1, sizeof(*s->at));
	return s == NULL || s->at == NULL ? NULL : s;
}

/* Append low .. high, which is not below what is there. */
static void
append(struct rx_set *s, uint32_t low, uint32_t high)
{
	if (s->n > 0 && s->n % 2 == 1)
		return; /* it goes to the last code point already */
	if (s->n > 0 && low <= s->at[s->n - 1]) {
		if (high + 1 > s->at[s->n - 1])
			s->at[s->n - 1] = high + 1;
	} else {
		s->at[s->n++] = low;
		s->at[s->n++] = high + 1;
	}
	if (s->at[s->n - 1] >= TOK_CODE_POINTS)
		s->n--;
}

struct rx_set *
rx_set_of(struct rx *rx, struct rx_range *range, uint32_t n)
{
	struct rx_set *s = make(rx, 2 * n);

	if (s == NULL)
		return NULL;
	qsort(range, n, sizeof(*range), compare_ranges);
	for (uint32_t i = 0; i < n; i++)
		append(s, range[i].low, range[i].high);
	return s;
}

struct rx_set *
rx_set_not(struct rx *rx, const struct rx_set *a)
{
	const uint32_t skip = a->n > 0 && a->at[0] == 0;
	struct rx_set *s = make(rx, a->n + 1);

	if (s == NULL)
		return NULL;
	if (!skip)
		s->at[s->n++] = 0;
	memcpy(s->at + s->n, a->at + skip, (a->n - skip) * sizeof(*s->at));
	s->n += a->n - skip;
	return s;
}

static struct rx_set *
combine(struct rx *rx, const struct rx_set *a, const struct rx_set *b, bool both)
{
	struct rx_set *s = make(rx, a->n + b->n);
	uint32_t i = 0, k = 0;

	while (s != NULL && (i < a->n || k < b->n)) {
		const uint32_t x = i < a->n ? a->at[i] : UINT32_MAX;
		const uint32_t y = k < b->n ? b->at[k] : UINT32_MAX;
		bool in;

		i += x <= y;
		k += y <= x;
		in = both ? i % 2 + k % 2 == 2 : i % 2 + k % 2 > 0;
		if (in != (s->n % 2 == 1))
			s->at[s->n++] = x < y ? x : y;
	}
	return s;
}

struct rx_set *
rx_set_or(struct rx *rx, const struct rx_set *a, const struct rx_set *b)
{
	return combine(rx, a, b, false);
}

struct rx_set *
rx_set_and(struct rx *rx, const struct rx_set *a, const struct rx_set *b)
{
	return combine(rx, a, b, true);
}

bool
rx_set_equal(const struct rx_set *a, const struct rx_set *b)
{
	return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof(*a->at)) == 0;
}

/* Characters of these general categories: bit gc. */
static struct rx_set *
of_categories(struct rx *rx, uint32_t wanted)
{
	struct rx_set *s = make(rx, 2 * tok_unicode_n_runs);

	for (uint32_t i = 0; s != NULL && i < tok_unicode_n_runs; i++) {
		const bool in = wanted >> (tok_unicode_runs[i] & 31) & 1;

		if (in != (s->n % 2 == 1))
			s->at[s->n++] = tok_unicode_runs[i] >> TOK_GC_BITS;
	}
	return s;
}

/* Code points where membership changes, of a generated table. */
static struct rx_set *
of_table(struct rx *rx, const uint32_t *at, uint32_t n)
{
	struct rx_set *s = make(rx, n);

	if (s != NULL) {
		memcpy(s->at, at, n * sizeof(*at));
		s->n = n;
	}
	return s;
}

struct rx_set *
rx_set_property(struct rx *rx, const char *name, size_t n, bool *known)
{
	uint32_t wanted = 0;

	*known = true;
	if (n == 3 && memcmp(name, "Han", 3) == 0)
		return of_table(rx, tok_unicode_han, tok_unicode_n_han);
	for (uint32_t gc = 0; gc < TOK_N_GC && (n == 1 || n == 2); gc++)
		wanted |= memcmp(tok_gc_names[gc], name, n) == 0 ? 1u << gc : 0;
	*known = wanted != 0;
	return *known ? of_categories(rx, wanted) : NULL;
}

/* As Oniguruma has it: without the joiners, and, but in brackets, with six numbers of Latin-1. */
static struct rx_set *
word(struct rx *rx, bool in_brackets)
{
	struct rx_range joiners[] = {{0x200c, 0x200d}};
	struct rx_range numbers[] = {{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}};
	struct rx_set *set = of_table(rx, tok_unicode_word, tok_unicode_n_word);
	struct rx_set *out = rx_set_of(rx, joiners, 1), *in = rx_set_of(rx, numbers, 3);

	if (set == NULL || out == NULL || in == NULL)
		return NULL;
	out = rx_set_not(rx, out);
	set = out == NULL ? NULL : rx_set_and(rx, set, out);
	return set == NULL || in_brackets ? set : rx_set_or(rx, set, in);
}

struct rx_set *
rx_set_escape(struct rx *rx, char letter, bool in_brackets)
{
	uint32_t wanted = 0;

	if (letter == 'w')
		return word(rx, in_brackets);
	for (uint32_t gc = 0; gc < TOK_N_GC; gc++) {
		if (letter == 's' ? tok_gc_cat[gc] == TOK_CAT_SPACE
				  : memcmp(tok_gc_names[gc], "Nd", 2) == 0)
			wanted |= 1u << gc;
	}
	return of_categories(rx, wanted);
}

/* BERT's: its tables are older than the expressions'. */
struct rx_set *
rx_set_punctuation(struct rx *rx)
{
	struct rx_set *s = make(rx, 2 * tok_bert_classes_n);

	for (uint32_t i = 0; s != NULL && i < tok_bert_classes_n; i++) {
		const uint32_t run = tok_bert_classes[i];
		const bool in = (run & ((1u << TOK_BERT_CLASS_BITS) - 1)) == TOK_BERT_PUNCT;

		if (in != (s->n % 2 == 1))
			s->at[s->n++] = run >> TOK_BERT_CLASS_BITS;
	}
	return s;
}

/* Rust's char::is_numeric: \p{N}, and what Unicode 17 added to it. */
struct rx_set *
rx_set_numeric(struct rx *rx)
{
	struct rx_range added[] = {{0x11de0, 0x11de9}, {0x16ff4, 0x16ff6}};
	struct rx_set *newer = rx_set_of(rx, added, 2), *s;
	bool known;

	s = rx_set_property(rx, "N", 1, &known);
	return s == NULL || newer == NULL ? NULL : rx_set_or(rx, s, newer);
}
