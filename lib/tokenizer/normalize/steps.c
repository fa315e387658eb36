/* SPDX-License-Identifier: BSD-3-Clause */
/* See steps.h. Hot path. */
#include "steps.h"
#include "unicode/utf8.h"
#include "unicode/word.h"

/* Text for the next stage, put together: each feed has a cost of its own. */
struct out {
	struct tok_norm_sink to;
	enum tok_error_code error;
	uint32_t n;
	uint8_t text[1024];
};

static void
flush(struct out *o)
{
	const uint32_t n = o->n;

	o->n = 0;
	if (n > 0 && o->error == TOK_ERROR_NONE)
		o->error = tok_stage_next(o->to.s, o->to.next, o->text, n, false, o->to.ids);
}

static void
put(struct out *o, const uint8_t *p, size_t n)
{
	if (n > sizeof(o->text) - o->n)
		flush(o);
	if (n > sizeof(o->text)) {
		if (o->error == TOK_ERROR_NONE)
			o->error = tok_stage_next(o->to.s, o->to.next, p, n, false, o->to.ids);
		return;
	}
	memcpy(o->text + o->n, p, n);
	o->n += (uint32_t)n;
}

/* Pass n more bytes, and the end of the text if it is there. */
static enum tok_error_code
finish(struct out *o, const uint8_t *p, size_t n, bool last)
{
	if (o->n > 0 && n <= sizeof(o->text) - o->n) {
		memcpy(o->text + o->n, p, n);
		n += o->n;
		o->n = 0;
		p = o->text;
	} else {
		flush(o);
	}
	if (o->error != TOK_ERROR_NONE || (n == 0 && !last))
		return o->error;
	return tok_stage_next(o->to.s, o->to.next, p, n, last, o->to.ids);
}

/* ---- maps ---- */

/* End of the characters at p that are unchanged. */
static const uint8_t *
unchanged(const struct tok_norm *t, uint32_t map, const uint8_t *p, const uint8_t *end)
{
	const uint32_t *ascii = t->element + ((uint32_t)t->page[map * TOK_NORM_PAGES] << 8);

	while (p < end) {
		uint32_t len;

		while (p < end && *p < 0x80 && ascii[*p] == 0)
			p++;
		if (p == end || *p < 0x80)
			break;
		len = tok_utf8_length(*p);
		if (tok_map_element(t, map, tok_utf8_decode(p, len)) != 0)
			break;
		p += len;
	}
	return p;
}

enum tok_error_code
tok_map_feed(struct tok_norm_sink k, uint32_t map, const uint8_t *p, size_t n, bool last)
{
	const struct tok_norm *t = &k.s->vocab->norm;
	const uint8_t *end = p + n;
	struct out o;

	o.to = k;
	o.error = TOK_ERROR_NONE;
	o.n = 0;
	for (;;) {
		const uint8_t *from = p;
		uint32_t len, element;

		p = unchanged(t, map, p, end);
		if (p == end)
			return finish(&o, from, (size_t)(p - from), last);
		put(&o, from, (size_t)(p - from));
		len = tok_utf8_length(*p);
		element = tok_map_element(t, map, tok_utf8_decode(p, len));
		if (element & TOK_MAP_TEXT) {
			put(&o, t->text + ((element & ~TOK_MAP_TEXT) >> TOK_MAP_BITS),
				element & TOK_MAP_BYTES);
		} else {
			put(&o, (const uint8_t *)" ", 1);
			put(&o, p, len);
			put(&o, (const uint8_t *)" ", 1);
		}
		p += len;
	}
}

/* ---- texts of several characters ---- */

enum tok_error_code
tok_literal_feed(struct tok_norm_sink k, uint32_t literal, const uint8_t *p, size_t n, bool last)
{
	const struct tok_literal *l = &k.s->vocab->norm.literal[literal];
	uint8_t *matched = &k.s->norm.matched[literal];
	const uint8_t *end = p + n;
	struct out o;

	o.to = k;
	o.error = TOK_ERROR_NONE;
	o.n = 0;
	while (p < end) {
		const uint8_t *from = p;

		while (*matched == 0 && p < end && *p != l->text[0])
			p++;
		put(&o, from, (size_t)(p - from));
		if (p == end)
			break;
		/* What matched so far is released where it does not any more (Knuth, Morris,
		 * Pratt). */
		while (*matched > 0 && *p != l->text[*matched]) {
			const uint8_t keep = l->back[*matched];

			put(&o, l->text, (size_t)(*matched - keep));
			*matched = keep;
		}
		if (*p != l->text[*matched])
			continue;
		p++;
		if (++*matched == l->n) {
			put(&o, l->to, l->n_to);
			*matched = 0;
		}
	}
	if (last) {
		put(&o, l->text, *matched);
		*matched = 0;
	}
	return finish(&o, p, 0, last);
}

/* ---- white space ---- */

/* Length of the character at p if the step counts it, else 0. */
static uint32_t
squeezed(enum tok_squeeze what, const uint8_t *p)
{
	uint32_t len;

	if (what == TOK_SQUEEZE_BLANKS || *p < 0x80)
		return *p == ' ' || (what != TOK_SQUEEZE_BLANKS && *p >= '\t' && *p <= '\r');
	len = tok_utf8_length(*p);
	return tok_is_white(tok_utf8_decode(p, len)) ? len : 0;
}

enum tok_error_code
tok_squeeze_feed(struct tok_norm_sink k, const uint8_t *p, size_t n, bool last)
{
	struct tok_norm_state *state = &k.s->norm;
	const enum tok_squeeze what = (enum tok_squeeze)k.s->vocab->norm.squeeze;
	const uint8_t *end = p + n, *from = p;
	struct out o;

	o.to = k;
	o.error = TOK_ERROR_NONE;
	o.n = 0;
	while (p < end) {
		const uint32_t len = squeezed(what, p);
		const bool one = len > 0 && (what != TOK_SQUEEZE_SEVERAL || *p == '\n' ||
						    *p == '\r' || *p == '\t');

		if (len == 0) {
			if (state->run == TOK_WHITE_HELD)
				put(&o, state->one, state->n_one);
			state->run = TOK_WHITE_NONE;
			for (from = p; p < end && squeezed(what, p) == 0;)
				p += tok_utf8_length(*p);
			put(&o, from, (size_t)(p - from));
			continue;
		}
		if (state->run == TOK_WHITE_NONE && !one) {
			memcpy(state->one, p, len);
			state->n_one = (uint8_t)len;
			state->run = TOK_WHITE_HELD;
		} else {
			if (state->run != TOK_WHITE_BLANK)
				put(&o, (const uint8_t *)" ", 1);
			state->run = TOK_WHITE_BLANK;
		}
		p += len;
	}
	if (last) {
		if (state->run == TOK_WHITE_HELD)
			put(&o, state->one, state->n_one);
		state->run = TOK_WHITE_NONE;
	}
	return finish(&o, p, 0, last);
}

enum tok_error_code
tok_strip_feed(struct tok_norm_sink k, const uint8_t *p, size_t n, bool last)
{
	struct tok_norm_state *state = &k.s->norm;
	const uint32_t sides = k.s->vocab->norm.sides;
	const uint8_t *end = p + n;
	struct out o;

	o.to = k;
	o.error = TOK_ERROR_NONE;
	o.n = 0;
	while (p < end) {
		const uint8_t *from = p;
		uint32_t len;

		while (p < end && (len = squeezed(TOK_SQUEEZE_WHITE, p)) > 0)
			p += len;
		if (p > from && (state->begun || !(sides & TOK_STRIP_LEFT))) {
			if (!(sides & TOK_STRIP_RIGHT)) {
				put(&o, from, (size_t)(p - from));
			} else if ((size_t)(p - from) > sizeof(state->white) - state->n_white) {
				return TOK_ERROR_WHITE;
			} else {
				memcpy(state->white + state->n_white, from, (size_t)(p - from));
				state->n_white = (uint16_t)(state->n_white + (p - from));
			}
		}
		for (from = p; p < end && squeezed(TOK_SQUEEZE_WHITE, p) == 0;)
			p += tok_utf8_length(*p);
		if (p == from)
			continue;
		put(&o, state->white, state->n_white);
		put(&o, from, (size_t)(p - from));
		state->n_white = 0;
		state->begun = true;
	}
	if (last) {
		state->n_white = 0;
		state->begun = false;
	}
	return finish(&o, p, 0, last);
}

/* ---- borders of words ---- */

/* A state is one of these, or TOK_SIDE_WHITE: a word may begin. */
#define IN_SYMBOLS 1   /* and symbols go on */
#define BEHIND 2       /* a special token: a word begins */
#define IN_SPECIAL 128 /* and its number << 4, and how many characters of it came */

bool
tok_border_special(const struct tok_vocab *v, uint8_t *state, uint32_t cp)
{
	static const char text[2][16] = {"<|endoftext|>", "<|startoftext|>"};
	const uint8_t was = *state;
	bool begins = was == TOK_SIDE_WHITE || was == BEHIND;

	if (was & IN_SPECIAL) {
		const uint8_t n = was & 15, which = (was >> 4 & 1) | (n == 2 && cp == 's');

		if (cp == (uint8_t)text[which][n]) {
			*state = text[which][n + 1] == '\0'
					 ? BEHIND
					 : (uint8_t)(IN_SPECIAL | which << 4 | (n + 1));
			return false;
		}
		begins = text[which][n - 1] >= 'a' && text[which][n - 1] <= 'z';
	}
	if (begins && cp == '<')
		*state = IN_SPECIAL | 1;
	else
		*state = tok_cat_of(v, cp) <= TOK_CAT_SYMBOL ? IN_SYMBOLS : TOK_SIDE_WHITE;
	return was == BEHIND;
}

enum tok_error_code
tok_border_feed(struct tok_norm_sink k, const uint8_t *p, size_t n, bool last)
{
	const uint8_t *end = p + n, *from = p;
	struct out o;

	o.to = k;
	o.error = TOK_ERROR_NONE;
	o.n = 0;
	while (p < end) {
		const uint32_t len = tok_utf8_length(*p);

		if (tok_border_before(k.s->vocab, &k.s->norm.side, tok_utf8_decode(p, len))) {
			put(&o, from, (size_t)(p - from));
			put(&o, (const uint8_t *)" ", 1);
			from = p;
		}
		p += len;
	}
	if (last)
		k.s->norm.side = TOK_SIDE_WHITE;
	return finish(&o, from, (size_t)(p - from), last);
}
