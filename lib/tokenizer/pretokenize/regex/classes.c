/* SPDX-License-Identifier: BSD-3-Clause */
/* Characters that no set tells apart, and that have the same enum tok_cat, become one class. */
#include "inside.h"
#include "unicode/classes.h"

/* The code points where some set or category changes, ascending, each once. */
static uint32_t *
borders(struct rx *rx, const struct rx_sets *sets, uint32_t *n)
{
	const uint32_t words = TOK_CODE_POINTS / 64;
	uint64_t *bits = rx_alloc(rx, words, sizeof(*bits));
	uint32_t room = tok_unicode_n_runs, *at;

	for (uint32_t i = 0; i < sets->n; i++)
		room += sets->set[i]->n;
	at = rx_alloc(rx, room, sizeof(*at));
	if (bits == NULL || at == NULL)
		return NULL;
	for (uint32_t i = 0; i < tok_unicode_n_runs; i++)
		bits[tok_unicode_runs[i] >> TOK_GC_BITS >> 6] |=
			1ull << (tok_unicode_runs[i] >> TOK_GC_BITS & 63);
	for (uint32_t i = 0; i < sets->n; i++) {
		for (uint32_t k = 0; k < sets->set[i]->n; k++)
			bits[sets->set[i]->at[k] >> 6] |= 1ull << (sets->set[i]->at[k] & 63);
	}
	*n = 0;
	for (uint32_t i = 0; i < words; i++) {
		for (uint64_t left = bits[i]; left != 0; left &= left - 1)
			at[(*n)++] = i << 6 | (uint32_t)__builtin_ctzll(left);
	}
	return at;
}

/* Number of the class; a new one gets the next variant of its category. */
static uint32_t
class_of(struct rx_classes *c, uint64_t in, uint8_t cat)
{
	uint8_t variant = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		if ((c->number[i] & 7) != cat)
			continue;
		if (c->sets[i] == in)
			return c->number[i];
		variant++;
	}
	if (c->n == TOK_REGEX_CLASSES_MAX || variant == TOK_REGEX_CLASSES_MAX / 8)
		return TOK_REGEX_CLASSES_MAX;
	c->sets[c->n] = in;
	c->number[c->n] = (uint8_t)(variant << 3 | cat);
	return c->number[c->n++];
}

bool
rx_classes(struct rx *rx, const struct rx_sets *sets, struct rx_classes *out)
{
	uint32_t next[RX_SETS_MAX] = {0}, n, category = 0, *at = borders(rx, sets, &n);
	uint64_t in = 0;

	*out = (struct rx_classes){0};
	out->run = at == NULL ? NULL : rx_alloc(rx, n, sizeof(*out->run));
	if (out->run == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t number;

		for (uint32_t k = 0; k < sets->n; k++) {
			if (next[k] < sets->set[k]->n && sets->set[k]->at[next[k]] == at[i]) {
				next[k]++;
				in ^= 1ull << k;
			}
		}
		while (category + 1 < tok_unicode_n_runs &&
			tok_unicode_runs[category + 1] >> TOK_GC_BITS <= at[i])
			category++;
		number = class_of(out, in, tok_gc_cat[tok_unicode_runs[category] & 31]);
		if (number == TOK_REGEX_CLASSES_MAX)
			return tok_fail(rx->err,
				"%s: the regular expressions tell more than %u classes of "
				"characters apart, or %u of one category",
				rx->where, TOK_REGEX_CLASSES_MAX, TOK_REGEX_CLASSES_MAX / 8);
		if (number >= out->width)
			out->width = number + 1;
		if (out->n_runs == 0 || (out->run[out->n_runs - 1] & 255) != number)
			out->run[out->n_runs++] = at[i] << 8 | number;
	}
	out->width++;
	return true;
}
