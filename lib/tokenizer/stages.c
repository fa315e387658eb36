/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages between UTF-8 and ids. Hot path. */
#include "encode/pretoken.h"
#include "encode/unigram.h"
#include "encode/wordpiece.h"
#include "normalize/added.h"
#include "normalize/nfc.h"
#include "normalize/spm_norm.h"
#include "normalize/steps.h"
#include "offsets/offsets.h"
#include "pretokenize/pretok.h"

/* ---- added tokens ---- */

/* The model, if it may find added tokens itself: nothing but the model depends on where text
 * between them begins. */
static const struct tok_vocab *
model_that_finds(const struct tok_vocab *v)
{
	return v->pretok == TOK_PRETOK_SENTENCEPIECE && v->longest.node == NULL &&
			       v->metaspace.prefix == TOK_PREFIX_NONE && !v->unigram.norm.on &&
			       v->norm.n == 0 && v->added[TOK_ADDED_NORMAL_SET].n == 0
		       ? v
		       : NULL;
}

static inline __attribute__((always_inline)) enum tok_error_code
split_added(struct tok_stream *s, enum tok_added_which which, const struct tok_stage *const *next,
	const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_added_piece piece = {.p = p,
		.n = n,
		.last = last,
		.special = s->flags & TOK_SPECIAL,
		.model = model_that_finds(s->vocab)};
	struct tok_added_span span;
	enum tok_error_code error = TOK_ERROR_NONE;
	bool ended = false; /* the text before a token, which may be empty */

	if (!s->added[which])
		return tok_stage_next(s, next, p, n, last, ids);
	if (tok_added_none(&s->added_state[which], &s->vocab->added[which], &piece)) {
		tok_added_init(&s->added_state[which]);
		return tok_stage_next(s, next, p, n, true, ids);
	}
	while (error == TOK_ERROR_NONE) {
		switch (tok_added_next(
			&s->added_state[which], &s->vocab->added[which], &piece, &span)) {
		case TOK_ADDED_TEXT:
			ended = span.ends;
			error = tok_stage_next(s, next, span.p, span.n, ended, ids);
			break;
		case TOK_ADDED_TOKEN:
			if (!ended)
				error = tok_stage_next(s, next, p, 0, true, ids);
			ended = false;
			*(*ids)++ = span.id;
			break;
		case TOK_ADDED_DONE:
			return last && !ended ? tok_stage_next(s, next, p, 0, true, ids)
					      : TOK_ERROR_NONE;
		case TOK_ADDED_FULL:
			return TOK_ERROR_ADDED;
		}
	}
	return error;
}

static void
open_added(struct tok_stream *s, enum tok_added_which which)
{
	s->added[which] = tok_added_active(s->vocab, which, s->flags);
	tok_added_init(&s->added_state[which]);
}

#define ADDED_STAGE(name, which)                                                                   \
	static void open_##name(struct tok_stream *s)                                              \
	{                                                                                          \
		open_added(s, which);                                                              \
	}                                                                                          \
	static enum tok_error_code feed_##name(struct tok_stream *s,                               \
		const struct tok_stage *const *next, const uint8_t *p, size_t n, bool last,        \
		uint32_t **ids)                                                                    \
	{                                                                                          \
		return split_added(s, which, next, p, n, last, ids);                               \
	}                                                                                          \
	static size_t name##_waits(const struct tok_stream *s)                                     \
	{                                                                                          \
		return s->added_state[which].n_held;                                               \
	}                                                                                          \
	const struct tok_stage tok_stage_##name = {.open = open_##name,                            \
		.feed = feed_##name,                                                               \
		.waits = name##_waits,                                                             \
		.offsets = tok_offsets_##name}

ADDED_STAGE(added_text, TOK_ADDED_TEXT_SET);
ADDED_STAGE(added_normal, TOK_ADDED_NORMAL_SET);

/* ---- normalizers ---- */

static void
open_spm(struct tok_stream *s)
{
	tok_spm_init(&s->spm);
}

static enum tok_error_code
feed_spm(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	struct tok_spm_piece piece = {p, p + n, last};
	uint8_t buffer[1 + TOK_SPM_OUT], *out = buffer + 1;
	enum tok_error_code error = TOK_ERROR_NONE;
	size_t some;

	buffer[0] = ' '; /* for Unigram, which puts one before words */
	while (error == TOK_ERROR_NONE &&
		(some = tok_spm_next(s->vocab, &s->spm, &piece, out)) > 0) {
		if (some == TOK_SPM_FULL)
			return TOK_ERROR_WHITE;
		if (last && !piece.last) /* with the end of the text */
			return tok_stage_next(s, next, out, some, true, ids);
		error = tok_stage_next(s, next, out, some, false, ids);
	}
	if (error != TOK_ERROR_NONE)
		return error;
	if (last)
		return tok_stage_next(s, next, p, 0, true, ids);
	if (!s->vocab->unigram.norm.sentencepiece && tok_spm_blank_waits(&s->spm) &&
		!s->added[TOK_ADDED_NORMAL_SET])
		tok_unigram_border(s, ids);
	return TOK_ERROR_NONE;
}

static size_t
spm_waits(const struct tok_stream *s)
{
	return tok_spm_waiting(&s->vocab->unigram.norm, &s->spm);
}

const struct tok_stage tok_stage_spm = {
	.open = open_spm, .feed = feed_spm, .waits = spm_waits, .offsets = tok_offsets_spm};

static void
open_nfc(struct tok_stream *s)
{
	tok_nfc_init(&s->nfc, false);
}

static void
open_nfd(struct tok_stream *s)
{
	tok_nfc_init(&s->nfc, true);
}

static enum tok_error_code
feed_nfc(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	struct tok_nfc_piece piece = {p, p + n, last};
	struct tok_nfc_span span;
	enum tok_error_code error = TOK_ERROR_NONE;
	enum tok_nfc_result r;

	while (error == TOK_ERROR_NONE &&
		(r = tok_nfc_next(&s->nfc, &piece, &span)) != TOK_NFC_DONE) {
		if (r == TOK_NFC_FULL)
			return TOK_ERROR_MARKS;
		error = tok_stage_next(s, next, span.p, span.n, false, ids);
	}
	return error == TOK_ERROR_NONE && last ? tok_stage_next(s, next, p, 0, true, ids) : error;
}

static size_t
nfc_waits(const struct tok_stream *s)
{
	return tok_nfc_waiting(&s->nfc);
}

const struct tok_stage tok_stage_nfc = {
	.open = open_nfc, .feed = feed_nfc, .waits = nfc_waits, .offsets = tok_offsets_nfc};

const struct tok_stage tok_stage_nfd = {
	.open = open_nfd, .feed = feed_nfc, .waits = nfc_waits, .offsets = tok_offsets_steps};

#define MAP_STAGE(name, which)                                                                     \
	static enum tok_error_code feed_##name(struct tok_stream *s,                               \
		const struct tok_stage *const *next, const uint8_t *p, size_t n, bool last,        \
		uint32_t **ids)                                                                    \
	{                                                                                          \
		return tok_map_feed((struct tok_norm_sink){s, next, ids}, which, p, n, last);      \
	}                                                                                          \
	const struct tok_stage tok_stage_##name = {                                                \
		.feed = feed_##name, .offsets = tok_offsets_steps}

MAP_STAGE(map_0, 0);
MAP_STAGE(map_1, 1);
MAP_STAGE(map_2, 2);

#define LITERAL_STAGE(name, which)                                                                 \
	static void open_##name(struct tok_stream *s)                                              \
	{                                                                                          \
		s->norm.matched[which] = 0;                                                        \
	}                                                                                          \
	static enum tok_error_code feed_##name(struct tok_stream *s,                               \
		const struct tok_stage *const *next, const uint8_t *p, size_t n, bool last,        \
		uint32_t **ids)                                                                    \
	{                                                                                          \
		return tok_literal_feed((struct tok_norm_sink){s, next, ids}, which, p, n, last);  \
	}                                                                                          \
	static size_t name##_waits(const struct tok_stream *s)                                     \
	{                                                                                          \
		return s->norm.matched[which];                                                     \
	}                                                                                          \
	const struct tok_stage tok_stage_##name = {.open = open_##name,                            \
		.feed = feed_##name,                                                               \
		.waits = name##_waits,                                                             \
		.offsets = tok_offsets_steps}

LITERAL_STAGE(literal_0, 0);
LITERAL_STAGE(literal_1, 1);
LITERAL_STAGE(literal_2, 2);
LITERAL_STAGE(literal_3, 3);

static void
open_squeeze(struct tok_stream *s)
{
	s->norm.run = TOK_WHITE_NONE;
}

static enum tok_error_code
feed_squeeze(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	return tok_squeeze_feed((struct tok_norm_sink){s, next, ids}, p, n, last);
}

static size_t
squeeze_waits(const struct tok_stream *s)
{
	return s->norm.run == TOK_WHITE_HELD ? s->norm.n_one : 0;
}

const struct tok_stage tok_stage_squeeze = {.open = open_squeeze,
	.feed = feed_squeeze,
	.waits = squeeze_waits,
	.offsets = tok_offsets_steps};

static void
open_strip(struct tok_stream *s)
{
	s->norm.begun = false;
	s->norm.n_white = 0;
}

static enum tok_error_code
feed_strip(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	return tok_strip_feed((struct tok_norm_sink){s, next, ids}, p, n, last);
}

static size_t
strip_waits(const struct tok_stream *s)
{
	return s->norm.n_white;
}

const struct tok_stage tok_stage_strip = {
	.open = open_strip, .feed = feed_strip, .waits = strip_waits, .offsets = tok_offsets_steps};

static void
open_border(struct tok_stream *s)
{
	s->norm.side = TOK_SIDE_WHITE;
}

static enum tok_error_code
feed_border(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	return tok_border_feed((struct tok_norm_sink){s, next, ids}, p, n, last);
}

const struct tok_stage tok_stage_border = {
	.open = open_border, .feed = feed_border, .offsets = tok_offsets_border};

/* U+2581 becomes a blank, and a blank is put before the text. */
static enum tok_error_code
feed_metaspace(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p,
	size_t n, bool last, uint32_t **ids)
{
	static const uint8_t blank = ' ';
	const enum tok_prefix prefix = s->vocab->metaspace.prefix;
	enum tok_error_code error = TOK_ERROR_NONE;

	if (n > 0 && s->prefix) {
		s->prefix = false;
		if (tok_metaspace_wants(prefix, p, n))
			error = tok_stage_next(s, next, &blank, 1, false, ids);
	}
	while (error == TOK_ERROR_NONE) {
		const size_t found = tok_metaspace_find(p, n);

		if (found == n)
			break;
		if (found > 0)
			error = tok_stage_next(s, next, p, found, false, ids);
		if (error == TOK_ERROR_NONE)
			error = tok_stage_next(s, next, &blank, 1, false, ids);
		p += found + TOK_METASPACE_BYTES;
		n -= found + TOK_METASPACE_BYTES;
	}
	if (last) /* an added token comes next, then more text */
		s->prefix = prefix == TOK_PREFIX_EACH || prefix == TOK_PREFIX_ANYWAY;
	return error == TOK_ERROR_NONE ? tok_stage_next(s, next, p, n, last, ids) : error;
}

static void
open_metaspace(struct tok_stream *s)
{
	s->prefix = s->vocab->metaspace.prefix != TOK_PREFIX_NONE;
}

const struct tok_stage tok_stage_metaspace = {
	.open = open_metaspace, .feed = feed_metaspace, .offsets = tok_offsets_metaspace};

/* A blank is put before a text that does not begin with one. */
static enum tok_error_code
feed_prefix(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	static const uint8_t blank = ' ';
	enum tok_error_code error = TOK_ERROR_NONE;

	if (n > 0 && s->prefix && *p != blank)
		error = tok_stage_next(s, next, &blank, 1, false, ids);
	s->prefix = (s->prefix && n == 0) || last;
	return error == TOK_ERROR_NONE ? tok_stage_next(s, next, p, n, last, ids) : error;
}

const struct tok_stage tok_stage_prefix = {
	.open = open_metaspace, .feed = feed_prefix, .offsets = tok_offsets_prefix};

/* ---- models ---- */

static enum tok_error_code
feed_bpe(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	(void)next;
	return tok_pretok_feed(s, p, n, last, ids) ? TOK_ERROR_NONE : TOK_ERROR_CARRY;
}

const struct tok_stage tok_stage_bpe = {.open = tok_pretoken_open,
	.feed = feed_bpe,
	.release = tok_pretoken_release,
	.offsets = tok_offsets_bpe};

/* Words that end with a mark. White space between them is dropped. */
static enum tok_error_code
feed_bpe_words(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p,
	size_t n, bool last, uint32_t **ids)
{
	(void)next;
	return tok_pretok_words_feed(s, p, n, last, ids) ? TOK_ERROR_NONE : TOK_ERROR_CARRY;
}

const struct tok_stage tok_stage_bpe_words = {.open = tok_pretoken_open,
	.feed = feed_bpe_words,
	.release = tok_pretoken_release,
	.offsets = tok_offsets_bpe_words};

/*
 * Replace each run of unknown bytes in [ids, end) by one unknown piece. A run may continue from the
 * call before. Returns the new end.
 */
static uint32_t *
join_unknown(struct tok_stream *s, uint32_t *ids, const uint32_t *end)
{
	uint32_t *to = ids;

	for (; ids < end; ids++) {
		const bool known = *ids < s->vocab->info.n_ids;

		if (known || s->unigram.run == TOK_RUN_NONE)
			*to++ = known ? *ids : s->vocab->unigram.unk;
		s->unigram.run = known ? TOK_RUN_NONE : TOK_RUN_OPEN;
	}
	return to;
}

static void
open_bpe_unknown(struct tok_stream *s)
{
	s->unigram.run = TOK_RUN_NONE;
	tok_pretoken_open(s);
}

static enum tok_error_code
feed_bpe_unknown(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p,
	size_t n, bool last, uint32_t **ids)
{
	uint32_t *from = *ids;
	const enum tok_error_code error = feed_bpe(s, next, p, n, last, ids);

	*ids = join_unknown(s, from, *ids);
	if (last) /* an added token comes next, then more text */
		s->unigram.run = TOK_RUN_NONE;
	return error;
}

static uint32_t *
release_bpe_unknown(struct tok_stream *s, uint32_t *ids)
{
	return join_unknown(s, ids, tok_pretoken_release(s, ids));
}

const struct tok_stage tok_stage_bpe_unknown = {.open = open_bpe_unknown,
	.feed = feed_bpe_unknown,
	.release = release_bpe_unknown,
	.offsets = tok_offsets_bpe};

static enum tok_error_code
feed_wordpiece(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p,
	size_t n, bool last, uint32_t **ids)
{
	(void)next;
	tok_pretok_bert_feed(s, p, n, last, ids);
	return TOK_ERROR_NONE;
}

const struct tok_stage tok_stage_wordpiece = {
	.open = tok_wordpiece_open, .feed = feed_wordpiece, .offsets = tok_offsets_wordpiece};

static enum tok_error_code
feed_unigram(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	(void)next;
	return tok_unigram_feed(s, p, n, last, ids) ? TOK_ERROR_NONE : TOK_ERROR_CARRY;
}

const struct tok_stage tok_stage_unigram = {.open = tok_unigram_init,
	.feed = feed_unigram,
	.release = tok_unigram_release,
	.offsets = tok_offsets_unigram};
