/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a normalizer once more, each for all of a source, with the bytes that characters
 * come from, as the reference has it (tokenizer/normalizer.rs): what replaces a text comes from its
 * last character. Allocates. Opt-in.
 */
#include <stdlib.h>

#include "normalize/steps.h"
#include "offsets.h"
#include "unicode/utf8.h"
#include "unicode/word.h"

/* A text, and what each of its bytes comes from: the same for all bytes of a character. */
struct made {
	uint8_t *text;
	struct tok_range *from;
	size_t n, room;
	bool full; /* out of memory */
};

static bool
has_room(struct made *m, size_t n)
{
	const size_t room = m->room == 0 ? 256 : 2 * m->room + n;
	struct tok_range *from;
	uint8_t *text;

	if (n <= m->room - m->n)
		return true;
	text = realloc(m->text, room);
	if (text != NULL)
		m->text = text;
	from = realloc(m->from, room * sizeof(*from));
	if (from != NULL)
		m->from = from;
	m->full = m->full || text == NULL || from == NULL;
	m->room = m->full ? m->room : room;
	return !m->full;
}

static void
put(struct made *m, const uint8_t *p, size_t n, struct tok_range from)
{
	if (m->full || !has_room(m, n))
		return;
	memcpy(m->text + m->n, p, n);
	for (size_t i = 0; i < n; i++)
		m->from[m->n++] = from;
}

/* The character at `at` as it is. Returns the next one's place. */
static size_t
put_same(struct made *to, const struct made *m, size_t at)
{
	const uint32_t len = tok_utf8_length(m->text[at]);

	put(to, m->text + at, len, m->from[at]);
	return at + len;
}

static uint32_t
char_at(const struct made *m, size_t at)
{
	return tok_utf8_decode(m->text + at, tok_utf8_length(m->text[at]));
}

static bool
make_map(const struct tok_norm *norm, uint32_t map, const struct made *m, struct made *to)
{
	static const uint8_t blank = ' ';

	for (size_t at = 0; at < m->n;) {
		const uint32_t element = tok_map_element(norm, map, char_at(m, at));
		const struct tok_range from = m->from[at];

		if (element == TOK_MAP_AROUND)
			put(to, &blank, 1, from);
		if (element & TOK_MAP_TEXT) {
			put(to, norm->text + ((element & ~TOK_MAP_TEXT) >> TOK_MAP_BITS),
				element & TOK_MAP_BYTES, from);
			at += tok_utf8_length(m->text[at]);
		} else {
			at = put_same(to, m, at);
		}
		if (element == TOK_MAP_AROUND)
			put(to, &blank, 1, from);
	}
	return true;
}

/*
 * A starter and marks became the span. The last characters come from the last ones, one by one; a
 * composite comes from the first of its own.
 */
static void
put_form(struct made *to, const struct made *m, size_t at, size_t end, struct tok_nfc_span span)
{
	size_t left = tok_utf8_count(m->text + at, end - at);
	size_t more = tok_utf8_count(span.p, span.n);

	for (; more > 0; more--) {
		const uint32_t len = tok_utf8_length(*span.p);

		put(to, span.p, len, m->from[at]);
		span.p += len;
		for (; left > 1 && left >= more; left--)
			at += tok_utf8_length(m->text[at]);
	}
}

static bool
make_form(bool decompose, const struct made *m, struct made *to)
{
	struct tok_nfc_piece piece = {m->text, m->text + m->n, true};
	struct tok_nfc_span span;
	enum tok_nfc_result r;
	struct tok_nfc nfc;

	tok_nfc_init(&nfc, decompose);
	tok_nfc_open_whole(&nfc);
	for (;;) {
		size_t at = (size_t)(piece.p - m->text), end;

		r = tok_nfc_next(&nfc, &piece, &span);
		if (r != TOK_NFC_SPAN)
			break;
		end = (size_t)(piece.p - m->text);
		if (span.n == end - at && memcmp(span.p, m->text + at, span.n) == 0) {
			while (at < end)
				at = put_same(to, m, at);
		} else {
			put_form(to, m, at, end, span);
		}
	}
	tok_nfc_close_whole(&nfc);
	return r == TOK_NFC_DONE;
}

static bool
make_literal(const struct tok_literal *l, const struct made *m, struct made *to)
{
	for (size_t at = 0; at < m->n;) {
		if (m->n - at < l->n || memcmp(m->text + at, l->text, l->n) != 0) {
			at = put_same(to, m, at);
			continue;
		}
		at += l->n;
		put(to, l->to, l->n_to, m->from[at - 1]);
	}
	return true;
}

static bool
is_squeezed(enum tok_squeeze what, const struct made *m, size_t at)
{
	return what == TOK_SQUEEZE_BLANKS ? m->text[at] == ' ' : tok_is_white(char_at(m, at));
}

static bool
make_squeezed(enum tok_squeeze what, const struct made *m, struct made *to)
{
	static const uint8_t blank = ' ';

	for (size_t at = 0; at < m->n;) {
		const size_t begin = at;
		size_t chars = 0;

		for (; at < m->n && is_squeezed(what, m, at); chars++)
			at += tok_utf8_length(m->text[at]);
		if (chars == 0 || (chars == 1 && what == TOK_SQUEEZE_SEVERAL &&
					  memchr("\n\r\t", m->text[begin], 3) == NULL))
			at = put_same(to, m, begin);
		else
			put(to, &blank, 1, m->from[at - 1]);
	}
	return true;
}

static bool
make_stripped(uint32_t sides, const struct made *m, struct made *to)
{
	size_t at = 0, end = 0;

	while (sides & TOK_STRIP_LEFT && at < m->n && tok_is_white(char_at(m, at)))
		at += tok_utf8_length(m->text[at]);
	for (size_t i = at; i < m->n; i += tok_utf8_length(m->text[i])) {
		if (!(sides & TOK_STRIP_RIGHT) || !tok_is_white(char_at(m, i)))
			end = i + tok_utf8_length(m->text[i]);
	}
	while (at < end)
		at = put_same(to, m, at);
	return true;
}

static bool
make_step(const struct tok_norm *norm, struct tok_norm_step step, const struct made *m,
	struct made *to)
{
	switch ((enum tok_norm_kind)step.kind) {
	case TOK_NORM_MAP:
		return make_map(norm, step.arg, m, to);
	case TOK_NORM_FORM_C:
	case TOK_NORM_FORM_D:
		return make_form(step.kind == TOK_NORM_FORM_D, m, to);
	case TOK_NORM_LITERAL:
		return make_literal(&norm->literal[step.arg], m, to);
	case TOK_NORM_SQUEEZE:
		return make_squeezed((enum tok_squeeze)step.arg, m, to);
	case TOK_NORM_STRIP:
		break;
	}
	return make_stripped(step.arg, m, to);
}

/* Blanks at borders between words. */
static bool
make_borders(const struct tok_vocab *v, const struct made *m, struct made *to)
{
	static const uint8_t blank = ' ';
	uint8_t state = TOK_SIDE_WHITE;

	for (size_t at = 0; at < m->n; at = put_same(to, m, at)) {
		if (tok_border_before(v, &state, char_at(m, at)))
			put(to, &blank, 1, m->from[at]);
	}
	return true;
}

static void
take_source(struct tok_source *source, struct made *to)
{
	struct tok_spm_char c;

	while (tok_source_char(source, &c))
		put(to, c.p, c.len, c.from);
}

static void
drop(struct made *m)
{
	free(m->text);
	free(m->from);
	*m = (struct made){0};
}

/* The next stage takes `m`, which is dropped. */
static bool
pass(struct tok_offsets *o, const struct tok_stage *const *next, bool first, struct made *m)
{
	struct tok_source source;
	bool ok = !m->full;

	if (ok) {
		tok_source_open_made(&source, m->text, m->from, m->n, first);
		ok = next[0]->offsets(o, next + 1, &source);
	}
	drop(m);
	return ok;
}

bool
tok_offsets_steps(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	const struct tok_norm *norm = &o->vocab->norm;
	struct made made = {0};
	bool ok = true;

	take_source(source, &made);
	for (uint32_t i = 0; ok && i < norm->n; i++) {
		struct made to = {0};

		ok = make_step(norm, norm->step[i], &made, &to) && !made.full;
		drop(&made);
		made = to;
	}
	if (!ok)
		drop(&made);
	/* The other steps' stages are done too. */
	return ok && pass(o, next + norm->n - 1, source->first, &made);
}

bool
tok_offsets_border(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	struct made made = {0}, to = {0};
	bool ok;

	take_source(source, &made);
	ok = make_borders(o->vocab, &made, &to) && !made.full;
	drop(&made);
	if (!ok)
		drop(&to);
	return ok && pass(o, next, source->first, &to);
}

bool
tok_offsets_again(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	struct made made = {0};
	struct tok_range from;

	while (source->left > 0 && tok_source_fill(source)) {
		const uint8_t byte = *source->span.p;

		tok_source_take(source, 1, &from);
		put(&made, &byte, 1, from);
		source->left--;
	}
	return pass(o, next, source->first, &made);
}
