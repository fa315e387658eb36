/* SPDX-License-Identifier: BSD-3-Clause */
/* Pretokens that are cut by the end of a piece of text. pretokenize/whole.c takes whole ones. Hot
 * path. */
#include "whole.h"
#include "pretok.h"
#include "encode/pretoken.h"
#include "unicode/utf8.h"
#include "unicode/word.h"

static bool
take_held(struct tok_stream *s, uint32_t **ids)
{
	uint32_t n = s->n_held;

	s->n_held = 0;
	return tok_pretoken_push(s, s->held, n, ids);
}

/* The mark at the end of a word is a blank, which no word has. */
static bool
close_pretoken(struct tok_stream *s, uint32_t **ids)
{
	if (s->vocab->word_end && !tok_pretoken_push(s, (const uint8_t *)" ", 1, ids))
		return false;
	*ids = tok_pretoken_close(s, *ids);
	return true;
}

/* The pretoken ends after n more bytes. */
static bool
end_pretoken(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	return tok_pretoken_push(s, p, n, ids) && close_pretoken(s, ids);
}

/*
 * Take characters of well-formed text, one by one, until no pretoken is open. Returns the number of
 * bytes taken, or TOK_NO_BORDER if the carry was exceeded. Held bytes that must be scanned again
 * and lie in this text are not counted as taken. *again: the number of bytes of held[] that came
 * before this text and must be scanned again first.
 */
static size_t
encode_steps(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t *again, uint32_t **ids)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t before = s->n_held, len; /* bytes of held[] that came before p */
	size_t at, from = 0;		  /* p[0 .. from) is taken, p[from .. at) is held */

	*again = 0;
	for (at = 0; at < n; at += len) {
		enum tok_pretok_step step;

		len = tok_utf8_length(p[at]);
		step = tok_pretok_step(v, &s->state, tok_utf8_decode(p + at, len));
		if (step == TOK_STEP_TAKE && before == 0) {
			from = at + len;
			continue;
		}
		if (before > 0 && step != TOK_STEP_HOLD && step < TOK_STEP_CLOSE) {
			if (!take_held(s, ids))
				return TOK_NO_BORDER;
			before = 0;
		}
		switch (step) {
		case TOK_STEP_TAKE:
			from = at + len;
			break;
		case TOK_STEP_HOLD:
			if (before + (at + len - from) > TOK_CARRY_MAX)
				return TOK_NO_BORDER;
			break;
		case TOK_STEP_TAKE_HOLD:
			from = at;
			break;
		case TOK_STEP_TAKE_CLOSE:
			if (v->pretok == TOK_PRETOK_SENTENCEPIECE) {
				*ids = tok_bytes_ids(v, p + at, len, *ids);
				return at + len;
			}
			return end_pretoken(s, p, at + len, ids) ? at + len : TOK_NO_BORDER;
		case TOK_STEP_HELD_CLOSE:
			return end_pretoken(s, p, at, ids) ? at : TOK_NO_BORDER;
		case TOK_STEP_CLOSE:
			*again = before;
			s->n_held = 0;
			return end_pretoken(s, p, from, ids) ? from : TOK_NO_BORDER;
		case TOK_STEP_AGAIN:
			*again = before;
			s->n_held = 0;
			return tok_pretoken_push(s, p, from, ids) ? from : TOK_NO_BORDER;
		}
	}
	if (from < n) {
		memcpy(s->held + before, p + from, n - from);
		s->n_held = (uint16_t)(before + (n - from));
	}
	return tok_pretoken_push(s, p, from, ids) ? n : TOK_NO_BORDER;
}

/* Step the first n held bytes again. False: the carry was exceeded. */
static bool
encode_again(struct tok_stream *s, uint32_t n, uint32_t **ids)
{
	uint8_t text[TOK_CARRY_MAX];
	uint32_t none;

	memcpy(text, s->held, n);
	for (size_t at = 0; at < n;) {
		size_t took = encode_steps(s, text + at, n - at, &none, ids);

		if (took == TOK_NO_BORDER)
			return false;
		at += took;
	}
	return true;
}

/* Step text until no pretoken is open, or held bytes were stepped again. False: the carry was
 * exceeded. */
static bool
encode_some(struct tok_stream *s, const uint8_t **p, size_t *n, uint32_t **ids)
{
	uint32_t again;
	const size_t took = encode_steps(s, *p, *n, &again, ids);

	if (took == TOK_NO_BORDER || !encode_again(s, again, ids))
		return false;
	*p += took;
	*n -= took;
	return true;
}

/* End the text and the open pretoken. False: the carry was exceeded. */
static bool
finish(struct tok_stream *s, uint32_t **ids)
{
	while (s->state != TOK_ST_NONE) {
		const enum tok_pretok_step step = tok_pretok_step_end(s->vocab, &s->state);
		bool fits = true;
		uint32_t again;

		if (step == TOK_STEP_HELD_CLOSE)
			fits = take_held(s, ids);
		if (step != TOK_STEP_AGAIN)
			fits = fits && close_pretoken(s, ids);
		again = s->n_held;
		s->n_held = 0;
		if (!fits || !encode_again(s, again, ids))
			return false;
	}
	return true;
}

#define OPEN_MAX TOK_SCAN_BLOCK /* bytes of the open pretoken, and of held[] */

/* At least half of what is encoded is new. So hostile text is encoded twice at most. */
static bool
goes_together(const struct tok_stream *s, size_t n)
{
	return s->state != TOK_ST_NONE && s->keeps && s->n_kept + s->n_held <= OPEN_MAX &&
	       n >= OPEN_MAX && n <= TOK_TOGETHER_MAX;
}

/* Append the n bytes at p to the open pretoken. Returns the length of both. */
static size_t
put_together(const struct tok_stream *s, uint8_t *text, const uint8_t *p, size_t n)
{
	memcpy(text, s->kept + 1, s->n_kept);
	text += s->n_kept;
	memcpy(text, s->held, s->n_held);
	memcpy(text + s->n_held, p, n);
	return s->n_kept + s->n_held + n;
}

/* tok_encode_whole() for a text that begins with the open pretoken, some ids of which may have been
 * released. Returns 0, with nothing changed, if the pretoken does not end in it. */
static size_t
encode_together(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	uint32_t *from = *ids;
	size_t took, made, given = s->ids_given;

	tok_pretoken_rewind(s);
	took = tok_encode_whole(s, p, n, last, ids);
	if (took == 0 || took == TOK_NO_BORDER)
		return took;
	made = (size_t)(*ids - from);
	given = given < made ? given : made; /* more only with tables that contradict each other */
	memmove(from, from + given, (made - given) * sizeof(*from));
	*ids -= given;
	s->state = TOK_ST_NONE;
	s->n_held = 0;
	tok_pretoken_open(s);
	return took;
}

bool
tok_pretok_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	uint8_t text[OPEN_MAX + TOK_TOGETHER_MAX];
	size_t took = 0;

	if (goes_together(s, n)) {
		const size_t all = put_together(s, text, p, n);

		took = encode_together(s, text, all, last, ids);
		if (took > 0) {
			p = text;
			n = all;
		}
	}
	while (took == 0 && s->state != TOK_ST_NONE && n > 0) {
		if (!encode_some(s, &p, &n, ids))
			return false;
	}
	if (took == 0 && n > 0)
		took = tok_encode_whole(s, p, n, last, ids);
	if (took == TOK_NO_BORDER)
		return false;
	p += took;
	n -= took;
	while (n > 0) {
		if (!encode_some(s, &p, &n, ids))
			return false;
	}
	return !last || finish(s, ids);
}

/* Length of the white space that p[0 .. n) begins with. */
static size_t
white_at(const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		const uint32_t len = tok_utf8_length(p[at]);

		if (!tok_is_white(tok_utf8_decode(p + at, len)))
			break;
		at += len;
	}
	return at;
}

bool
tok_pretok_words_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	while (n > 0) {
		const size_t white = white_at(p, n);
		size_t word = white;

		while (word < n && white_at(p + word, n - word) == 0)
			word += tok_utf8_length(p[word]);
		if (white > 0 && !finish(s, ids))
			return false;
		p += white;
		n -= white;
		for (size_t left = word - white; left > 0;) {
			const size_t before = left;

			if (!encode_some(s, &p, &left, ids))
				return false;
			n -= before - left;
		}
	}
	return !last || finish(s, ids);
}
