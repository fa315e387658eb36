/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Split text into words. Encode words that lie in memory as a whole: from the thread's cache, or by
 * segmenting them. Hot path.
 */
#include "cache.h"
#include "unigram.h"
#include "unigram_words.h"

static const uint8_t blank = ' ';

void
tok_unigram_init(struct tok_stream *s)
{
	s->state = TOK_UNIGRAM_START;
	s->unigram.later = false;
	tok_unigram_open(s);
}

/* End of the characters at p that are not a border. */
static const uint8_t *
find_border(const struct tok_unigram *u, const uint8_t *p, const uint8_t *end)
{
	uint32_t len;

	while (p < end) {
		while (p < end && !u->border[*p])
			p++;
		if (p == end || tok_unigram_border_at(u, p, &len) != TOK_BORDER_NONE)
			break;
		p += len;
	}
	return p;
}

static void
close_word(struct tok_stream *s, uint32_t **ids)
{
	if (s->state == TOK_UNIGRAM_OPEN) {
		*ids = tok_unigram_close(s, *ids);
		s->state = TOK_UNIGRAM_GAP;
	}
}

static bool
spell(struct tok_stream *s, bool with_blank, const uint8_t *p, size_t n, uint32_t **ids)
{
	return (!with_blank || tok_unigram_push(s, &blank, 1, ids)) &&
	       tok_unigram_push(s, p, n, ids);
}

/* Encode a whole word: an optional blank, and n bytes. False: more than TOK_CARRY_MAX bytes are
 * uncertain. */
static bool
take_word(struct tok_stream *s, bool with_blank, const uint8_t *p, size_t n, uint32_t **ids)
{
	const uint32_t len = (uint32_t)n + with_blank;
	uint8_t word[TOK_CACHE_LONG] = {blank};
	uint32_t *from = *ids;
	const bool kept = s->cache != NULL && n > 0 && len <= TOK_CACHE_LONG;

	if (kept) {
		struct tok_cache_ids known;

		memcpy(word + with_blank, p, n);
		known = tok_cache_word(s->cache, word, len);
		if (known.from != NULL) {
			memcpy(from, known.from, known.n * sizeof(*from));
			*ids += known.n;
			return true;
		}
	}
	if (!spell(s, with_blank, p, n, ids))
		return false;
	*ids = tok_unigram_close(s, *ids);
	if (kept)
		tok_cache_learn_word(s->cache, word, len, from, (uint32_t)(*ids - from));
	return true;
}

bool
tok_unigram_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	const struct tok_unigram *u = &s->vocab->unigram;
	const uint8_t *end = p + n, *run;
	uint32_t len;

	while (p < end) {
		const enum tok_unigram_border first = tok_unigram_border_at(u, p, &len);
		bool with_blank = first == TOK_BORDER_BLANK, over;

		if (first == TOK_BORDER_WHITE || (with_blank && u->split))
			close_word(s, ids);
		if (first != TOK_BORDER_NONE)
			p += len;
		if (first == TOK_BORDER_WHITE)
			continue;
		with_blank |= first == TOK_BORDER_NONE && tok_unigram_wants_prefix(s);
		run = find_border(u, p, end);
		over = run == end ? last
				  : u->split || (u->words && tok_unigram_border_at(u, run, &len) ==
								     TOK_BORDER_WHITE);
		if (over && s->state != TOK_UNIGRAM_OPEN) {
			if (!take_word(s, with_blank, p, (size_t)(run - p), ids))
				return false;
			s->state = TOK_UNIGRAM_GAP;
		} else {
			if (!spell(s, with_blank, p, (size_t)(run - p), ids))
				return false;
			s->state = TOK_UNIGRAM_OPEN;
		}
		p = run;
	}
	if (last)
		tok_unigram_finish(s, ids);
	return true;
}

void
tok_unigram_finish(struct tok_stream *s, uint32_t **ids)
{
	close_word(s, ids);
	s->state = TOK_UNIGRAM_START;
	s->unigram.later = true;
}

void
tok_unigram_border(struct tok_stream *s, uint32_t **ids)
{
	const struct tok_unigram *u = &s->vocab->unigram;

	if (u->split || (u->words && !u->norm.squeeze_to_mark))
		close_word(s, ids);
}
