/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a normalizer once more, each for all of a source, with the bytes that characters
 * come from, as the reference has it (tokenizer/normalizer.rs): what replaces a text comes from its
 * last character. Allocates. Opt-in.
 */
#include <stdlib.h>

#include "normalize/steps.h"
#include "offsets.h"
#include "unicode/nfc_tables.h"
#include "unicode/utf8.h"
#include "unicode/word.h"

/* A text, and what each of its bytes comes from. */
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

static uint32_t
length_at(const struct made *m, size_t at)
{
	return tok_utf8_length(m->text[at]);
}

static uint32_t
char_at(const struct made *m, size_t at)
{
	return tok_utf8_decode(m->text + at, length_at(m, at));
}

/* What a character comes from. */
static struct tok_range
from_at(const struct made *m, size_t at)
{
	return (struct tok_range){m->from[at].begin, m->from[at + length_at(m, at) - 1].end};
}

/* The character at `at` as it is. Returns the next one's place. */
static size_t
put_same(struct made *to, const struct made *m, size_t at)
{
	const size_t end = at + length_at(m, at);

	for (; at < end; at++)
		put(to, m->text + at, 1, m->from[at]);
	return end;
}

static bool
make_map(const struct tok_norm *norm, uint32_t map, const struct made *m, struct made *to)
{
	static const uint8_t blank = ' ';

	for (size_t at = 0; at < m->n;) {
		const uint32_t element = tok_map_element(norm, map, char_at(m, at));
		const struct tok_range from = from_at(m, at);

		if (element == 0) {
			at = put_same(to, m, at);
			continue;
		}
		if (element == TOK_MAP_AROUND) {
			put(to, &blank, 1, from);
			put(to, m->text + at, length_at(m, at), from);
			put(to, &blank, 1, from);
		} else {
			put(to, norm->text + ((element & ~TOK_MAP_TEXT) >> TOK_MAP_BITS),
				element & TOK_MAP_BYTES, from);
		}
		at += length_at(m, at);
	}
	return true;
}

/* A character of a normalization form. */
struct part {
	uint64_t order; /* starters before it, its class, its number in the text */
	uint32_t cp;
	uint32_t n; /* characters of the text that it stands for */
};

static int
compare_parts(const void *a, const void *b)
{
	const struct part *p = a, *q = b;

	return p->order < q->order ? -1 : p->order > q->order;
}

static uint32_t
class_of(const struct part *p)
{
	return (uint32_t)(p->order >> 32) & TOK_NFC_CCC;
}

/* Did the map before make this character and the one before it of the same one? */
static bool
is_more(const struct made *m, size_t at)
{
	return at > 0 && m->from[at].begin == m->from[at - 1].begin;
}

/*
 * Characters [at, end) decomposed and in order: for each, the first stands for it. `compat`: what
 * the map before made of one character counts as one.
 */
static size_t
decomposed(
	bool decompose, bool compat, const struct made *m, size_t at, size_t end, struct part *part)
{
	uint64_t starters = 0;
	size_t n = 0;

	for (; at < end; at += length_at(m, at)) {
		const uint32_t cp = char_at(m, at);
		const bool more = compat && is_more(m, at);
		uint32_t n_parts = 1, letters[3];
		const uint32_t itself =
			(tok_nfc_props_of(cp) & TOK_NFC_CCC) << TOK_NFC_CP_BITS | cp;
		const uint32_t *from = tok_nfc_decompose(cp, &n_parts);

		if (decompose && cp - TOK_NFC_S < TOK_NFC_SS) {
			n_parts = tok_nfc_letters(cp, letters);
			from = letters;
		} else if (from == NULL) {
			from = &itself;
		}
		for (uint32_t i = 0; i < n_parts; i++, n++) {
			const uint32_t ccc = from[i] >> TOK_NFC_CP_BITS;

			starters += ccc == 0;
			part[n] = (struct part){
				.order = starters << 38 | (uint64_t)ccc << 32 | (uint32_t)n,
				.cp = from[i] & TOK_NFC_CP,
				.n = i == 0 && !more,
			};
		}
	}
	qsort(part, n, sizeof(*part), compare_parts);
	return n;
}

/* Compose what is not blocked (Unicode 16, D117). Returns how many are left. */
static size_t
composed(struct part *part, size_t n)
{
	size_t starter = SIZE_MAX, kept = 0;

	for (size_t i = 0; i < n; i++) {
		const uint32_t ccc = class_of(&part[i]);
		const bool blocked = starter == SIZE_MAX ||
				     (kept > starter + 1 && class_of(&part[kept - 1]) >= ccc);
		const uint32_t whole = blocked ? 0 : tok_nfc_compose(part[starter].cp, part[i].cp);

		if (whole != 0) {
			part[starter].cp = whole;
			part[starter].n += part[i].n;
			continue;
		}
		if (ccc == 0)
			starter = kept;
		part[kept++] = part[i];
	}
	return kept;
}

/*
 * Characters [at, end) in a normalization form. The reference takes the characters of the text in
 * order: one that stands for some comes from the first of these, and each later one is past them;
 * one that stands for none comes from the last before it.
 */
static bool
put_form(struct made *to, bool decompose, bool compat, const struct made *m, size_t at, size_t end)
{
	const size_t room = (end - at) * TOK_NFC_EXPANSION;
	struct part *part = malloc(room * sizeof(*part));
	size_t n, last = at;

	if (part == NULL)
		return false;
	n = decomposed(decompose, compat, m, at, end, part);
	if (!decompose)
		n = composed(part, n);
	for (; compat && at < end && is_more(m, at); at += length_at(m, at))
		;
	for (size_t i = 0; i < n; i++) {
		const struct tok_range from = from_at(m, part[i].n > 0 && at < end ? at : last);
		uint8_t text[4];

		for (uint32_t k = 0; k < part[i].n && at < end; k++) {
			last = at;
			do
				at += length_at(m, at);
			while (compat && at < end && is_more(m, at));
		}
		put(to, text, tok_utf8_encode(part[i].cp, text), from);
	}
	free(part);
	return true;
}

static bool
make_form(bool decompose, bool compat, const struct made *m, struct made *to)
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
		} else if (!put_form(to, decompose, compat, m, at, end)) {
			break;
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
		put(to, l->to, l->n_to, m->from[at - 1]); /* ASCII */
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
		size_t chars = 0, last = at;

		for (; at < m->n && is_squeezed(what, m, at); chars++) {
			last = at;
			at += length_at(m, at);
		}
		if (chars == 0 || (chars == 1 && what == TOK_SQUEEZE_SEVERAL &&
					  memchr("\n\r\t", m->text[begin], 3) == NULL))
			at = put_same(to, m, begin);
		else
			put(to, &blank, 1, from_at(m, last));
	}
	return true;
}

static bool
make_stripped(uint32_t sides, const struct made *m, struct made *to)
{
	size_t at = 0, end = 0;

	while (sides & TOK_STRIP_LEFT && at < m->n && tok_is_white(char_at(m, at)))
		at += length_at(m, at);
	for (size_t i = at; i < m->n; i += length_at(m, i)) {
		if (!(sides & TOK_STRIP_RIGHT) || !tok_is_white(char_at(m, i)))
			end = i + length_at(m, i);
	}
	while (at < end)
		at = put_same(to, m, at);
	return true;
}

/* Is step i the second half of NFKC or NFKD? A map before it has made 2 of U+00B2 then. */
static bool
is_compat(const struct tok_norm *norm, uint32_t i)
{
	return i > 0 && norm->step[i - 1].kind == TOK_NORM_MAP &&
	       tok_map_element(norm, norm->step[i - 1].arg, 0xb2) != 0;
}

static bool
make_step(const struct tok_norm *norm, uint32_t i, const struct made *m, struct made *to)
{
	const struct tok_norm_step step = norm->step[i];

	switch ((enum tok_norm_kind)step.kind) {
	case TOK_NORM_MAP:
		return make_map(norm, step.arg, m, to);
	case TOK_NORM_FORM_C:
	case TOK_NORM_FORM_D:
		return make_form(step.kind == TOK_NORM_FORM_D, is_compat(norm, i), m, to);
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
			put(to, &blank, 1, from_at(m, at));
	}
	return true;
}

/* Byte by byte, where they are the text's own. */
static void
take_source(struct tok_source *source, struct made *to)
{
	struct tok_spm_char c;

	while (tok_source_char(source, &c)) {
		const bool own = c.from.end - c.from.begin == c.len;

		for (uint32_t i = 0; i < c.len; i++) {
			const size_t at = c.from.begin + i;

			put(to, c.p + i, 1, own ? (struct tok_range){at, at + 1} : c.from);
		}
	}
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

		ok = make_step(norm, i, &made, &to) && !made.full;
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
