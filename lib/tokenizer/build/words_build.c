/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables of words that are one token. Set-up only. */
#include <stdlib.h>

#include "encode/unigram.h"
#include "encode/wordpiece.h"
#include "parts.h"
#include "vocab_table.h"

/* Number of slots, a power of two, so that n entries fill at most two thirds. */
static uint32_t
slots_for(uint32_t n)
{
	uint32_t slots = 64;

	while (slots < n + n / 2 + 1)
		slots *= 2;
	return slots;
}

static bool
crowded(uint32_t id, struct tok_error *err)
{
	return tok_fail(err,
		"token %u collides with more than %u others in a table: they were chosen to, do not "
		"trust this vocabulary",
		id, TOK_PROBES_MAX);
}

/* Put the word with this outside id into its table. */
static bool
put_word(struct tok_vocab *v, uint32_t id, struct tok_error *err)
{
	const struct tok_span span = v->span[id];
	const uint8_t *bytes = v->bytes + span.off;
	uint32_t i, probes = 0;

	if (span.len <= TOK_KEY_BYTES) {
		uint64_t key = 0;

		memcpy(&key, bytes, span.len);
		i = tok_word_slot(v, key, span.len);
		while (v->word[i].len != 0 && probes++ < TOK_PROBES_MAX)
			i = (i + 1) & v->word_mask;
		if (probes > TOK_PROBES_MAX)
			return crowded(id, err);
		v->word[i] = (struct tok_word){.key = key, .id = id, .len = span.len};
	} else {
		i = tok_long_slot(v, bytes, span.len);
		while (v->long_word[i].len != 0 && probes++ < TOK_PROBES_MAX)
			i = (i + 1) & v->long_mask;
		if (probes > TOK_PROBES_MAX)
			return crowded(id, err);
		v->long_word[i] = (struct tok_long_word){
			.first = tok_load8(bytes),
			.last = tok_load8(bytes + span.len - 8),
			.id = id,
			.len = span.len,
			.off = span.off,
		};
	}
	return true;
}

bool
tok_words_build(struct tok_vocab *v, const uint32_t *id, uint32_t n, struct tok_error *err)
{
	uint32_t n_short = 0, n_long = 0;

	for (uint32_t i = 0; i < n; i++)
		*(v->span[id[i]].len <= TOK_KEY_BYTES ? &n_short : &n_long) += 1;
	if (!tok_vocab_table_make(v, TOK_TABLE_WORD, slots_for(n_short)) ||
		!tok_vocab_table_make(v, TOK_TABLE_LONG_WORD, slots_for(n_long)))
		return tok_fail(err, "out of memory for %u words", n);
	tok_vocab_shifts(v);
	for (uint32_t i = 0; i < n; i++) {
		if (!put_word(v, id[i], err))
			return false;
	}
	return true;
}

/* ---- WordPiece, Unigram ---- */

#define WORDS_MOST 65536u  /* the first ids: the most frequent ones in most vocabularies */
#define WORD_BYTES_MAX 32u /* of these words */

/* Is a token of WordPiece ASCII that no step changes or splits? Nothing matches more of its text.
 */
static bool
is_plain(const struct tok_vocab *v, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (p[i] == 0 || v->wordpiece.norm.plain[p[i]] != p[i])
			return false;
	}
	return len <= v->wordpiece.max_chars;
}

/* Is the text of a token, as a whole word, this token alone? `matches`: the model finds the token.
 */
static bool
is_word(struct tok_stream *s, uint32_t id, bool matches)
{
	const struct tok_vocab *v = s->vocab;
	const struct tok_span span = v->span[id];
	const uint8_t *p = v->bytes + span.off;
	uint32_t ids[4 * WORD_BYTES_MAX], *end = ids;

	if (span.len == 0 || span.len > WORD_BYTES_MAX)
		return false;
	if (v->kind == TOK_KIND_WORDPIECE && matches && is_plain(v, p, span.len))
		return true;
	if (v->kind == TOK_KIND_WORDPIECE)
		end = tok_wordpiece_word(s, p, span.len, ids);
	else if (tok_unigram_push(s, p, span.len, &end))
		end = tok_unigram_close(s, end);
	return end == ids + 1 && ids[0] == id;
}

bool
tok_words_choose(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	const uint32_t most = v->info.n_ids < WORDS_MOST ? v->info.n_ids : WORDS_MOST;
	uint32_t *id, n = 0;
	struct tok_stream *s;
	bool ok;

	if (v->kind == TOK_KIND_UNIGRAM && !v->unigram.split && !v->unigram.words)
		return true; /* a word is a whole text */
	id = malloc(most * sizeof(*id));
	s = malloc(sizeof(*s));
	ok = id != NULL && s != NULL;
	if (ok) {
		tok_stages_set(v);
		tok_stream_init(s, v, NULL, 0);
		for (uint32_t i = 0; i < most; i++) {
			id[n] = i;
			n += is_word(s, i, !m->token[i].outside);
		}
	}
	ok = ok ? n == 0 || tok_words_build(v, id, n, err)
		: tok_fail(err, "out of memory for %u words", most);
	free(s);
	free(id);
	return ok;
}
