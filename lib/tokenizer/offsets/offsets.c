/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeat the stages of stream.c for a whole text, counting bytes. Opt-in. */
#include "offsets.h"
#include "normalize/added.h"
#include "normalize/nfc.h"
#include "unicode/utf8.h"

/* The normalized text of a section, byte by byte, and the bytes that it came from. */
struct source {
	const uint8_t *text; /* the section is a part of this */
	struct tok_nfc_piece piece;
	struct tok_nfc_span span; /* the rest of the current span */
	struct tok_range from;	  /* the bytes it came from; `same`: byte i came from byte i */
	bool same;
	bool nfc;
	bool metaspace;
	bool prefix; /* a blank comes before the rest */
	struct tok_nfc state;
};

static const uint8_t blank = ' ';

/* The text up to the next U+2581, or a blank that replaces it, or the blank before the text. */
static bool
refill_metaspace(struct source *s)
{
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
	s->prefix = false;
	s->from = (struct tok_range){before, (size_t)(s->piece.p - s->text)};
	return true;
}

/* Get more normalized text; false: there is none. */
static bool
refill(struct source *s)
{
	const size_t before = (size_t)(s->piece.p - s->text);

	if (s->span.n > 0)
		return true;
	if (s->metaspace)
		return refill_metaspace(s);
	if (s->nfc) {
		if (tok_nfc_next(&s->state, &s->piece, &s->span) != TOK_NFC_SPAN)
			return false;
	} else {
		s->span = (struct tok_nfc_span){s->piece.p, (size_t)(s->piece.end - s->piece.p)};
		s->piece.p = s->piece.end;
	}
	s->from = (struct tok_range){before, (size_t)(s->piece.p - s->text)};
	s->same = s->span.n == s->from.end - before &&
		  memcmp(s->span.p, s->text + before, s->span.n) == 0;
	return s->span.n > 0;
}

static void
open_source(
	struct source *s, const struct tok_vocab *v, const uint8_t *text, size_t begin, size_t end)
{
	*s = (struct source){
		.text = text,
		.piece = {text + begin, text + end, true},
		.nfc = v->nfc,
		.metaspace = v->metaspace.stage != TOK_METASPACE_OFF,
	};
	s->prefix = end > begin &&
		    tok_metaspace_wants(v->metaspace.prefix, text + begin, end - begin) &&
		    (begin == 0 || v->metaspace.prefix == TOK_PREFIX_EACH ||
			    v->metaspace.prefix == TOK_PREFIX_ANYWAY);
	tok_nfc_init(&s->state);
}

/* Find the range that the next n >= 1 bytes came from. False: fewer than n bytes are left. */
static bool
take(struct source *s, size_t n, struct tok_range *range)
{
	for (bool first = true; n > 0; first = false) {
		size_t some;

		if (!refill(s))
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
	return true;
}

struct tok_range *
tok_offsets_next(struct tok_offsets *o, uint32_t id)
{
	if (o->next == o->n_ids || o->ids[o->next] >= o->vocab->info.n_ids ||
		(id != TOK_NO_TOKEN && o->ids[o->next] != id))
		return NULL;
	return &o->range[o->next++];
}

/* Ranges of ids of pretokens: they cover the next n bytes, or all that are left. */
static bool
take_pretokens(struct tok_offsets *o, struct source *s, size_t n)
{
	while (n > 0 && refill(s)) {
		struct tok_range *range = tok_offsets_next(o, TOK_NO_TOKEN);
		const size_t len = range == NULL ? 0 : o->vocab->span[o->ids[o->next - 1]].len;

		if (len == 0 || len > n || !take(s, len, range))
			return false;
		n -= len;
	}
	return true;
}

/* Normalized text with added tokens in it. Positions are bytes of normalized text. */
struct walk {
	struct tok_offsets *o;
	struct source source;
	size_t taken;	 /* the ids before here have ranges */
	size_t text_end; /* the ids of [taken, text_end) do not have ranges yet */
};

/* White space up to `at` belongs to the token before it. */
static bool
skip_to(struct walk *w, size_t at)
{
	struct tok_range range;

	if (at == w->taken)
		return true;
	if (w->o->next == 0 || !take(&w->source, at - w->taken, &range))
		return false;
	w->o->range[w->o->next - 1].end = range.end;
	w->taken = w->text_end = at;
	return true;
}

static bool
end_text(struct walk *w)
{
	const size_t n = w->text_end - w->taken;

	w->taken = w->text_end;
	return n == 0 || take_pretokens(w->o, &w->source, n);
}

static bool
take_event(
	struct walk *w, enum tok_added_result event, size_t base, const struct tok_added_span *span)
{
	struct tok_range *range;

	if (event == TOK_ADDED_TEXT) {
		if (w->text_end == w->taken && !skip_to(w, base + span->at))
			return false;
		w->text_end = base + span->behind;
		return true;
	}
	if (!end_text(w) || !skip_to(w, base + span->at))
		return false;
	range = tok_offsets_next(w->o, span->id);
	w->taken = w->text_end = base + span->behind;
	return range != NULL && take(&w->source, span->behind - span->at, range);
}

static bool
take_normalized(struct tok_offsets *o, struct source *text, uint32_t flags)
{
	const struct tok_added *set = &o->vocab->added[TOK_ADDED_NORMAL_SET];
	struct walk w = {.o = o, .source = *text};
	struct tok_added_state state;
	bool more = true, ok = true;
	size_t base = 0;

	tok_added_init(&state);
	while (more && ok) {
		struct tok_added_piece piece = {.special = flags & TOK_SPECIAL};
		struct tok_added_span span;
		enum tok_added_result event = TOK_ADDED_DONE;
		const size_t held = state.n_held;

		more = refill(text);
		piece.p = text->span.p;
		piece.n = more ? text->span.n : 0;
		piece.last = !more;
		while (ok && (event = tok_added_next(&state, set, &piece, &span)) != TOK_ADDED_DONE)
			ok = event != TOK_ADDED_FULL && take_event(&w, event, base - held, &span);
		base += piece.n;
		text->span.n = 0;
	}
	return ok && end_text(&w) && skip_to(&w, base);
}

/* Text between added tokens that are searched in the original text. */
static bool
take_section(struct tok_offsets *o, uint32_t flags, size_t begin, size_t end)
{
	struct source s;

	if (o->vocab->kind == TOK_KIND_WORDPIECE)
		return tok_offsets_words(o, begin, end);
	if (o->vocab->kind == TOK_KIND_UNIGRAM)
		return tok_offsets_unigram(o, flags, begin, end);
	open_source(&s, o->vocab, o->text, begin, end);
	if (tok_added_active(o->vocab, TOK_ADDED_NORMAL_SET, flags))
		return o->vocab->metaspace.stage != TOK_METASPACE_PRETOKENIZER &&
		       take_normalized(o, &s, flags);
	return take_pretokens(o, &s, SIZE_MAX);
}

static bool
take_all(struct tok_offsets *o, uint32_t flags, size_t n)
{
	struct tok_added_piece piece = {
		.p = o->text, .n = n, .last = true, .special = flags & TOK_SPECIAL};
	struct tok_added_state state;
	struct tok_added_span span;
	size_t at = 0; /* the ids before here have ranges */

	if (!tok_added_active(o->vocab, TOK_ADDED_TEXT_SET, flags))
		return take_section(o, flags, 0, n);
	tok_added_init(&state);
	for (;;) {
		enum tok_added_result event =
			tok_added_next(&state, &o->vocab->added[TOK_ADDED_TEXT_SET], &piece, &span);
		struct tok_range *range;

		if (event == TOK_ADDED_DONE)
			span.at = n;
		if (span.at > at && o->next > 0) /* white space that the token before has taken */
			o->range[o->next - 1].end = span.at;
		if (event == TOK_ADDED_DONE)
			return true;
		at = span.behind;
		if (event == TOK_ADDED_TEXT) {
			if (!take_section(o, flags, span.at, span.behind))
				return false;
			continue;
		}
		range = tok_offsets_next(o, span.id);
		if (range == NULL)
			return false;
		*range = (struct tok_range){span.at, span.behind};
	}
}

/* Ids of the template come from no bytes. */
static bool
take_template(struct tok_offsets *o, const uint32_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct tok_range *range = tok_offsets_next(o, ids[i]);

		if (range == NULL)
			return false;
		*range = (struct tok_range){0, 0};
	}
	return true;
}

bool
tok_has_offsets(const struct tok_vocab *v)
{
	return !v->unigram.norm.sentencepiece;
}

bool
tok_offsets(const struct tok_vocab *v, const void *text, size_t n, uint32_t flags,
	const uint32_t *ids, size_t n_ids, struct tok_range *range)
{
	const struct tok_template *around = &v->shape.around;
	const uint32_t n_before = flags & TOK_TEMPLATE ? around->n_before : 0;
	const uint32_t n_after = flags & TOK_TEMPLATE ? around->n_after : 0;
	struct tok_offsets o = {.vocab = v, .ids = ids, .range = range};

	if (!tok_has_offsets(v) || n_ids < n_before + n_after || tok_utf8_scan(text, n).valid != n)
		return false;
	o.text = n > 0 ? text : (const uint8_t *)""; /* NULL is a text without bytes */
	o.n_ids =
		n_ids - n_after; /* a word ends before them, even if they look like parts of one */
	if (!take_template(&o, around->before, n_before) || !take_all(&o, flags, n) ||
		o.next != o.n_ids)
		return false;
	o.n_ids = n_ids;
	return take_template(&o, around->after, n_after);
}
