/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Split text into words. Encode words that lie in memory as a whole: from the thread's cache, or by
 * segmenting them. Hot path.
 */
#include "block.h"
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

/* Whole words that lie in the text with the blanks before them, not encoded yet. */
struct waiting {
	struct tok_block b;
	size_t end[TOK_BLOCK];
	uint32_t n;
	const uint8_t *text, *text_end;
};

/* False: more than TOK_CARRY_MAX bytes are uncertain. */
static bool
encode_waiting(struct tok_stream *s, struct waiting *w, uint32_t **ids)
{
	uint32_t *next = *ids;

	if (w->n > 0)
		next = tok_block_encode(s, &w->b, w->n, w->text, w->text_end, *ids);
	w->n = 0;
	if (next != NULL)
		*ids = next;
	return next != NULL;
}

/* Take a whole word: an optional blank, and n bytes. */
static bool
take_word(struct tok_stream *s, struct waiting *w, bool with_blank, const uint8_t *p, size_t n,
	uint32_t **ids)
{
	if (!with_blank || (p > w->text && p[-1] == ' ')) {
		w->b.start[w->n] = (size_t)(p - w->text) - with_blank;
		w->end[w->n++] = (size_t)(p - w->text) + n;
		return w->n < TOK_BLOCK || encode_waiting(s, w, ids);
	}
	if (!encode_waiting(s, w, ids) || !spell(s, with_blank, p, n, ids))
		return false;
	*ids = tok_unigram_close(s, *ids);
	return true;
}

bool
tok_unigram_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	const struct tok_unigram *u = &s->vocab->unigram;
	const uint8_t *end = p + n, *run;
	struct waiting w;
	uint32_t len;

	w.b.end = w.end;
	w.n = 0;
	/* The normalizer leaves a blank before its output. */
	w.text = u->norm.on && !s->added[TOK_ADDED_NORMAL_SET] ? p - 1 : p;
	w.text_end = end;
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
			if (!take_word(s, &w, with_blank, p, (size_t)(run - p), ids))
				return false;
			s->state = TOK_UNIGRAM_GAP;
		} else {
			if (!encode_waiting(s, &w, ids) ||
				!spell(s, with_blank, p, (size_t)(run - p), ids))
				return false;
			s->state = TOK_UNIGRAM_OPEN;
		}
		p = run;
	}
	if (!encode_waiting(s, &w, ids))
		return false;
	if (last) { /* an added token may come next, then more text */
		close_word(s, ids);
		s->state = TOK_UNIGRAM_START;
		s->unigram.later = true;
	}
	return true;
}

void
tok_unigram_border(struct tok_stream *s, uint32_t **ids)
{
	const struct tok_unigram *u = &s->vocab->unigram;

	if (u->split || (u->words && !u->norm.squeeze_to_mark))
		close_word(s, ids);
}
