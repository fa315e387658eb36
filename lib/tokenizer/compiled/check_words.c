/* SPDX-License-Identifier: BSD-3-Clause */
/* Validate the tables of words that are one token. Set-up only. */
#include "build/vocab_table.h"
#include "compiled.h"

/* No search passes more full buckets than in tables made by the builder. */
static bool
add_bucket(uint32_t *run, bool is_full, uint32_t slots)
{
	*run = is_full ? *run + slots : 0;
	return *run <= 2 * TOK_PROBES_MAX;
}

static bool
words_fit(const struct tok_vocab *v)
{
	const uint32_t n_ids = tok_compiled_n_ids(v);
	uint32_t run = 0;

	for (uint32_t i = 0; i <= v->word_mask; i++) {
		const struct tok_word *w = &v->word[i];

		if (w->id >= n_ids || w->len > TOK_KEY_BYTES ||
			(i % TOK_WORD_SLOTS == TOK_WORD_SLOTS - 1 &&
				!add_bucket(&run, w->len != 0, TOK_WORD_SLOTS)))
			return false;
	}
	/* A run may wrap around the end of the table. */
	for (uint32_t i = TOK_WORD_SLOTS - 1; run > 0; i += TOK_WORD_SLOTS) {
		if (!add_bucket(&run, v->word[i & v->word_mask].len != 0, TOK_WORD_SLOTS))
			return false;
	}
	return true;
}

static bool
long_words_fit(const struct tok_vocab *v)
{
	const uint32_t n_ids = tok_compiled_n_ids(v), room = tok_vocab_table_n(v, TOK_TABLE_BYTES);
	uint32_t run = 0;

	for (uint32_t i = 0; i <= v->long_mask; i++) {
		const struct tok_long_word *w = &v->long_word[i];

		if (w->id >= n_ids || w->len > TOK_MAX_TOKEN_BYTES || w->off > room ||
			w->len > room - w->off ||
			(i % TOK_LONG_SLOTS == TOK_LONG_SLOTS - 1 &&
				!add_bucket(&run, w->len != 0, TOK_LONG_SLOTS)))
			return false;
	}
	for (uint32_t i = TOK_LONG_SLOTS - 1; run > 0; i += TOK_LONG_SLOTS) {
		if (!add_bucket(&run, v->long_word[i & v->long_mask].len != 0, TOK_LONG_SLOTS))
			return false;
	}
	return true;
}

const char *
tok_compiled_check_words(const struct tok_vocab *v)
{
	if (v->word == NULL)
		return NULL;
	return !words_fit(v) ? "word" : !long_words_fit(v) ? "long_word" : NULL;
}
