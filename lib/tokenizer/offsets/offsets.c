/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk through the stages, and the stages that are no models. Opt-in. */
#include "offsets.h"
#include "normalize/added.h"
#include "unicode/utf8.h"

struct tok_range *
tok_offsets_next(struct tok_offsets *o, uint32_t id)
{
	if (o->next == o->n_ids || o->ids[o->next] >= o->vocab->info.n_ids ||
		(id != TOK_NO_TOKEN && o->ids[o->next] != id))
		return NULL;
	tok_offsets_word(o, 1);
	return &o->range[o->next++];
}

static bool
next_stage(struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	return next[0]->offsets(o, next + 1, source);
}

/* ---- normalizers ---- */

static bool
is_form_c(struct tok_nfc_piece piece)
{
	struct tok_nfc_span span;
	struct tok_nfc nfc;
	const uint8_t *p = piece.p;

	tok_nfc_init(&nfc, false);
	while (tok_nfc_next(&nfc, &piece, &span) == TOK_NFC_SPAN) {
		if (span.n != (size_t)(piece.p - p) || memcmp(span.p, p, span.n) != 0)
			return false;
		p = piece.p;
	}
	return p == piece.end;
}

/* A text that is in form C already needs no copy. */
bool
tok_offsets_nfc(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	if (o->vocab->norm.n == 1 && is_form_c(source->piece))
		return next_stage(o, next, source);
	return tok_offsets_steps(o, next, source);
}

bool
tok_offsets_spm(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	if (!tok_source_is_fresh(source))
		return tok_offsets_again(o, next - 1, source);
	tok_source_spm(source, o->vocab);
	return next_stage(o, next, source);
}

bool
tok_offsets_metaspace(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	if (!tok_source_is_fresh(source))
		return tok_offsets_again(o, next - 1, source);
	tok_source_metaspace(source, o->vocab->metaspace.prefix);
	return next_stage(o, next, source);
}

bool
tok_offsets_prefix(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	tok_source_prefix(source);
	return next_stage(o, next, source);
}

/* ---- added tokens in normalized text ---- */

/* Positions are bytes of normalized text. */
struct walk {
	struct tok_offsets *o;
	const struct tok_stage *const *next;
	struct tok_source source;
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
	if (w->o->next == 0 || !tok_source_take(&w->source, at - w->taken, &range))
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
	w->source.left = n;
	if (n > 0 && !next_stage(w->o, w->next, &w->source))
		return false;
	w->source.first = false;
	return true;
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
	w->o->n_word++;
	w->o->later = true;
	w->taken = w->text_end = base + span->behind;
	return range != NULL && tok_source_take(&w->source, span->behind - span->at, range);
}

bool
tok_offsets_added_normal(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *text)
{
	const struct tok_added *set = &o->vocab->added[TOK_ADDED_NORMAL_SET];
	struct walk w = {.o = o, .next = next, .source = *text};
	struct tok_added_state state;
	bool more = true, ok = true;
	size_t base = 0;

	if (!tok_added_active(o->vocab, TOK_ADDED_NORMAL_SET, o->flags))
		return next_stage(o, next, text);
	tok_added_init(&state);
	while (more && ok) {
		struct tok_added_piece piece = {.special = o->flags & TOK_SPECIAL};
		struct tok_added_span span;
		enum tok_added_result event = TOK_ADDED_DONE;
		const size_t held = state.n_held;

		more = tok_source_fill(text);
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

/* ---- added tokens in the text as it comes ---- */

bool
tok_offsets_added_text(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	const size_t n = (size_t)(source->piece.end - source->text);
	struct tok_added_piece piece = {
		.p = source->text, .n = n, .last = true, .special = o->flags & TOK_SPECIAL};
	struct tok_added_state state;
	struct tok_added_span span;
	size_t at = 0; /* the ids before here have ranges */

	if (!tok_added_active(o->vocab, TOK_ADDED_TEXT_SET, o->flags))
		return next_stage(o, next, source);
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
			tok_source_open(source, o->text, span.at, span.behind);
			if (!next_stage(o, next, source))
				return false;
			continue;
		}
		range = tok_offsets_next(o, span.id);
		if (range == NULL)
			return false;
		o->n_word++;
		o->later = true;
		*range = (struct tok_range){span.at, span.behind};
	}
}

/* ---- all ---- */

/* Ids of the template come from no bytes. */
static bool
take_template(struct tok_offsets *o, const uint32_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct tok_range *range = tok_offsets_next(o, ids[i]);

		if (range == NULL)
			return false;
		*range = (struct tok_range){0, 0};
		if (o->word != NULL)
			o->word[o->next - 1] = TOK_NO_WORD;
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
	const uint32_t *ids, size_t n_ids, struct tok_range *range, uint32_t *word)
{
	const struct tok_template *around = &v->shape.around;
	const uint32_t n_before = flags & TOK_TEMPLATE ? around->n_before : 0;
	const uint32_t n_after = flags & TOK_TEMPLATE ? around->n_after : 0;
	struct tok_offsets o = {
		.vocab = v, .flags = flags, .ids = ids, .range = range, .word = word};
	struct tok_source source;

	if (!tok_has_offsets(v) || n_ids < n_before + n_after || tok_utf8_scan(text, n).valid != n)
		return false;
	o.text = n > 0 ? text : (const uint8_t *)""; /* NULL is a text without bytes */
	o.n_ids =
		n_ids - n_after; /* a word ends before them, even if they look like parts of one */
	tok_source_open(&source, o.text, 0, n);
	if (!take_template(&o, around->before, n_before) || !next_stage(&o, v->stage, &source) ||
		o.next != o.n_ids)
		return false;
	o.n_ids = n_ids;
	return take_template(&o, around->after, n_after);
}
