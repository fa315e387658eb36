/* SPDX-License-Identifier: BSD-3-Clause */
/* Validate the tables of words that are one token. Set-up only. */
#include "build/vocab_table.h"
#include "compiled.h"

/* Does a search in a table of words continue after this slot's bucket? */
static bool
goes_on(const struct tok_vocab *v, enum tok_table which, uint32_t i)
{
	if (which == TOK_TABLE_WORD)
		return v->word[i | (TOK_WORD_SLOTS - 1)].len != 0;
	return v->long_word[i | (TOK_LONG_SLOTS - 1)].len != 0;
}

/* No search may be longer than in tables made by the builder. */
static bool
runs_fit(const struct tok_vocab *v, enum tok_table which)
{
	const uint32_t n = tok_vocab_table_n(v, which);
	uint32_t run = 0;

	/* A run may wrap around the end of the table. */
	for (uint32_t i = 0; (i < n || run > 0) && run <= 2 * TOK_PROBES_MAX; i++)
		run = goes_on(v, which, i & (n - 1)) ? run + 1 : 0;
	return run <= 2 * TOK_PROBES_MAX;
}

bool
tok_compiled_runs_fit(const struct tok_vocab *v)
{
	return runs_fit(v, TOK_TABLE_WORD) && runs_fit(v, TOK_TABLE_LONG_WORD);
}

uint32_t
tok_compiled_find_word(const struct tok_vocab *v, uint32_t id)
{
	const uint32_t len = v->span[id].len;
	const uint8_t *bytes = v->bytes + v->span[id].off;
	uint64_t key = 0;

	if (len > TOK_KEY_BYTES)
		return tok_long_find(v, tok_long_slot(v, bytes, len), bytes, len);
	memcpy(&key, bytes, len);
	return tok_word_find(v, tok_word_slot(v, key, len), key, len);
}

bool
tok_compiled_long_word_fits(const struct tok_vocab *v, const struct tok_long_word *w)
{
	return w->id < tok_vocab_table_n(v, TOK_TABLE_SPAN) && w->off == v->span[w->id].off &&
	       w->len == v->span[w->id].len && w->len > TOK_KEY_BYTES;
}

const char *
tok_compiled_check_words(const struct tok_vocab *v)
{
	uint32_t n_short = 0, n_long = 0;

	if (v->word == NULL)
		return NULL;
	if (!tok_compiled_runs_fit(v))
		return "runs";
	for (uint32_t i = 0; i <= v->word_mask; i++) {
		const struct tok_word *w = &v->word[i];

		if (w->len == 0)
			continue;
		if (w->id >= v->info.n_ids || w->len != v->span[w->id].len ||
			tok_compiled_find_word(v, w->id) != w->id)
			return "word";
		n_short++;
	}
	for (uint32_t i = 0; i <= v->long_mask; i++) {
		const struct tok_long_word *w = &v->long_word[i];

		if (w->len == 0)
			continue;
		if (!tok_compiled_long_word_fits(v, w) || w->id >= v->info.n_ids ||
			tok_compiled_find_word(v, w->id) != w->id)
			return "long_word";
		n_long++;
	}
	return n_short > v->word_mask || n_long > v->long_mask ? "word" : NULL;
}
