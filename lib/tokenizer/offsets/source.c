/* SPDX-License-Identifier: BSD-3-Clause */
#include "source.h"
#include "unicode/utf8.h"

static bool
read_text(struct tok_source *s)
{
	const size_t before = (size_t)(s->piece.p - s->text);

	s->span = (struct tok_nfc_span){s->piece.p, (size_t)(s->piece.end - s->piece.p)};
	s->piece.p = s->piece.end;
	s->from = (struct tok_range){before, before + s->span.n};
	s->same = true;
	return s->span.n > 0;
}

void
tok_source_open(struct tok_source *s, const uint8_t *text, size_t begin, size_t end)
{
	s->text = text;
	s->made = NULL;
	s->first = begin == 0;
	s->read = read_text;
	s->piece = (struct tok_nfc_piece){text + begin, text + end, true};
	s->span.n = s->behind.span.n = 0;
	s->lead = false;
	s->left = SIZE_MAX;
}

void
tok_source_open_made(struct tok_source *s, const uint8_t *text, const struct tok_range *made,
	size_t n, bool first)
{
	tok_source_open(s, text, 0, n);
	s->made = made;
	s->first = first;
}

bool
tok_source_is_fresh(const struct tok_source *s)
{
	return s->read == read_text && s->span.n == 0 && s->left == SIZE_MAX && !s->lead;
}

static bool
read_spm(struct tok_source *s)
{
	struct tok_spm_char c;

	if (!tok_spm_chars_next(&s->spm, &c))
		return false;
	s->span = (struct tok_nfc_span){c.p, c.len};
	s->from = c.from;
	s->same = false;
	return true;
}

void
tok_source_spm(struct tok_source *s, const struct tok_vocab *v)
{
	s->read = read_spm;
	tok_spm_chars_open(&s->spm, v, s->text, (size_t)(s->piece.p - s->text),
		(size_t)(s->piece.end - s->text));
}

/* The text up to the next U+2581, or a blank that replaces it, or the blank before the text. */
static bool
read_metaspace(struct tok_source *s)
{
	static const uint8_t blank = ' ';
	const uint8_t *p = s->piece.p;
	const size_t before = (size_t)(p - s->text), n = (size_t)(s->piece.end - p);
	size_t found;

	if (n == 0)
		return false;
	found = tok_metaspace_find(p, n);
	s->same = !s->prefix && found > 0;
	s->span = s->same ? (struct tok_nfc_span){p, found} : (struct tok_nfc_span){&blank, 1};
	if (!s->prefix)
		s->piece.p += s->same ? found : TOK_METASPACE_BYTES;
	s->from = (struct tok_range){before, (size_t)(s->piece.p - s->text)};
	if (s->prefix && !s->no_bytes)
		s->from.end += tok_utf8_length(*p);
	s->prefix = false;
	return true;
}

void
tok_source_metaspace(struct tok_source *s, enum tok_prefix prefix)
{
	const size_t n = (size_t)(s->piece.end - s->piece.p);

	s->read = read_metaspace;
	s->no_bytes = prefix == TOK_PREFIX_TEXT;
	s->prefix = n > 0 && tok_metaspace_wants(prefix, s->piece.p, n) &&
		    (s->first || prefix == TOK_PREFIX_EACH || prefix == TOK_PREFIX_ANYWAY);
}

void
tok_source_prefix(struct tok_source *s)
{
	s->lead = true;
}

/* A blank comes before the span, with the range of its first character. */
static void
put_blank(struct tok_source *s)
{
	static const uint8_t blank = ' ';

	s->lead = false;
	if (*s->span.p == blank)
		return;
	if (s->left != SIZE_MAX)
		s->left++;
	s->behind.span = s->span;
	s->behind.from = s->from;
	s->behind.same = s->same;
	s->span = (struct tok_nfc_span){&blank, 1};
	if (s->same)
		s->from.end = s->from.begin + tok_utf8_length(*s->behind.span.p);
	s->same = false;
}

static bool
read_more(struct tok_source *s)
{
	if (s->behind.span.n == 0)
		return s->read(s);
	s->span = s->behind.span;
	s->from = s->behind.from;
	s->same = s->behind.same;
	s->behind.span.n = 0;
	return true;
}

bool
tok_source_fill(struct tok_source *s)
{
	if (s->span.n == 0 && !read_more(s))
		return false;
	if (s->lead)
		put_blank(s);
	return true;
}

/* What a range of the text comes from. */
static struct tok_range
come_from(const struct tok_source *s, struct tok_range range)
{
	if (s->made == NULL || range.begin == range.end)
		return range;
	return (struct tok_range){s->made[range.begin].begin, s->made[range.end - 1].end};
}

bool
tok_source_take(struct tok_source *s, size_t n, struct tok_range *range)
{
	for (bool first = true; n > 0; first = false) {
		size_t some;

		if (!tok_source_fill(s))
			return false;
		some = n < s->span.n ? n : s->span.n;
		if (first)
			range->begin = s->from.begin;
		range->end = s->same ? s->from.begin + some : s->from.end;
		s->from.begin += s->same ? some : 0;
		s->span.p += some;
		s->span.n -= some;
		n -= some;
	}
	*range = come_from(s, *range);
	return true;
}

bool
tok_source_char(struct tok_source *s, struct tok_spm_char *c)
{
	if (s->left == 0 || !tok_source_fill(s))
		return false;
	c->p = s->span.p;
	c->len = tok_utf8_length(*c->p);
	s->left -= c->len;
	return tok_source_take(s, c->len, &c->from);
}
