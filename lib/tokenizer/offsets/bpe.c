/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids of BPE: each takes as many bytes of the normalized text as its token has. Which pretoken it
 * belongs to is found by stepping the characters again, with a source of its own. Opt-in.
 */
#include "offsets.h"
#include "pretokenize/pretok.h"
#include "unicode/bytelevel.h"
#include "unicode/utf8.h"
#include "unicode/word.h"

/* Pretokens, stepped one by one. */
struct pretokens {
	const struct tok_vocab *v;
	struct tok_source source;
	uint32_t state;
	size_t end; /* of the open one: bytes that are known to belong to it */
	/* characters read that are not taken: n_held are held, the others are stepped next */
	uint32_t cp[TOK_CARRY_MAX + 1], n_cp, n_held;
	bool one; /* the text is one pretoken */
};

/* The source's span may lie in the source. */
static void
copy_source(struct tok_source *to, const struct tok_source *from)
{
	const uintptr_t at = (uintptr_t)from->span.p - (uintptr_t)from;

	*to = *from;
	if (at < sizeof(*from))
		to->span.p = (const uint8_t *)to + at;
}

/* The held characters, and the next one, belong to the pretoken. */
static void
take(struct pretokens *t, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		t->end += tok_utf8_bytes(t->cp[i]);
	t->n_cp -= n;
	t->n_held = 0;
	memmove(t->cp, t->cp + n, t->n_cp * sizeof(t->cp[0]));
}

/* Step until a pretoken ends; t->end is then where. False: the text has ended, or is no text that
 * could be encoded. */
static bool
next_end(struct pretokens *t)
{
	struct tok_spm_char c;

	for (;;) {
		enum tok_pretok_step step;

		if (t->n_cp == t->n_held && t->n_cp <= TOK_CARRY_MAX &&
			tok_source_char(&t->source, &c))
			t->cp[t->n_cp++] = tok_utf8_decode(c.p, c.len);
		if (t->n_cp > t->n_held)
			step = tok_pretok_step(t->v, &t->state, t->cp[t->n_held]);
		else if (t->state != TOK_ST_NONE)
			step = tok_pretok_step_end(t->v, &t->state);
		else
			return false;
		switch (step) {
		case TOK_STEP_TAKE:
			take(t, t->n_held + 1);
			break;
		case TOK_STEP_TAKE_CLOSE:
			take(t, t->n_held + 1);
			return true;
		case TOK_STEP_HOLD:
			t->n_held++;
			break;
		case TOK_STEP_TAKE_HOLD:
			take(t, t->n_held);
			t->n_held = 1;
			break;
		case TOK_STEP_HELD_CLOSE:
			take(t, t->n_held);
			return true;
		case TOK_STEP_CLOSE:
			t->n_held = 0;
			return true;
		case TOK_STEP_AGAIN:
			t->n_held = 0;
			break;
		}
	}
}

/* Is one of them a number, of the last byte of an id and the first of the next one? */
static bool
digits_apart(const struct tok_offsets *o)
{
	const struct tok_vocab *v = o->vocab;
	const struct tok_span *before = &v->span[o->ids[o->next - 1]], *next;

	if (o->next == o->n_ids || o->ids[o->next] >= v->info.n_ids)
		return false;
	next = &v->span[o->ids[o->next]];
	return next->len > 0 && tok_bytelevel_is_number(v->bytes[before->off + before->len - 1]) !=
					tok_bytelevel_is_number(v->bytes[next->off]);
}

/* o->n_word becomes the pretoken of the id that begins at this byte. */
static void
find_word(struct tok_offsets *o, struct pretokens *t, size_t at)
{
	bool begins = at == 0;

	while (!t->one && at >= t->end) {
		const bool ended = t->end > 0;

		if (!next_end(t))
			return;
		o->n_word += ended;
		begins = true;
	}
	if (!begins && o->vocab->digits_apart)
		o->n_word += digits_apart(o);
}

bool
tok_offsets_bpe(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	struct pretokens t;
	size_t at = 0;

	(void)next;
	if (o->word != NULL) {
		t.v = o->vocab;
		copy_source(&t.source, source);
		t.state = TOK_ST_NONE;
		t.end = t.n_cp = t.n_held = 0;
		t.one = o->vocab->pretok == TOK_PRETOK_SENTENCEPIECE;
	}
	while (source->left > 0 && tok_source_fill(source)) {
		struct tok_range *range;
		size_t len;

		if (o->word != NULL)
			find_word(o, &t, at);
		range = tok_offsets_next(o, TOK_NO_TOKEN);
		len = range == NULL ? 0 : o->vocab->span[o->ids[o->next - 1]].len;
		if (len == 0 || len > source->left || !tok_source_take(source, len, range))
			return false;
		source->left -= len;
		at += len;
	}
	o->n_word += at > 0;
	return true;
}

/* Does a white space character come next, where a word may begin? */
static bool
white_follows(struct tok_source *source)
{
	return source->left > 0 && tok_source_fill(source) &&
	       tok_is_white(tok_utf8_decode(source->span.p, tok_utf8_length(*source->span.p)));
}

/* White space between words has no ids. The mark that ends a word is a blank, and is no text. */
bool
tok_offsets_bpe_words(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	bool begins = true;

	(void)next;
	for (;;) {
		const struct tok_span *span;
		struct tok_range *range;
		struct tok_spm_char c;
		size_t len;

		while (begins && white_follows(source))
			tok_source_char(source, &c);
		if (source->left == 0 || !tok_source_fill(source))
			return begins;
		range = tok_offsets_next(o, TOK_NO_TOKEN);
		if (range == NULL)
			return false;
		span = &o->vocab->span[o->ids[o->next - 1]];
		begins = span->len > 1 && o->vocab->bytes[span->off + span->len - 1] == ' ';
		len = span->len - begins;
		if (len == 0 || len > source->left || !tok_source_take(source, len, range))
			return false;
		source->left -= len;
		o->n_word += begins;
	}
}
