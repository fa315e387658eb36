/* SPDX-License-Identifier: BSD-3-Clause */
/* The machines in a row; here the first, UTF-8, and what calls them. Hot path. */
#include "normalize/added.h"
#include "encode/unigram.h"
#include "encode/wordpiece.h"
#include "normalize/nfc.h"
#include "normalize/spm_norm.h"
#include "isa/kernels.h"
#include "pretokenize/pretok.h"
#include "encode/pretoken.h"
#include "unicode/utf8.h"

void
tok_stream_init(
	struct tok_stream *s, const struct tok_vocab *v, struct tok_cache *c, uint32_t flags)
{
	s->vocab = v;
	s->cache = c;
	s->flags = flags;
	for (int i = 0; i < 2; i++) {
		s->added[i] = tok_added_active(v, (enum tok_added_which)i, flags);
		tok_added_init(&s->added_state[i]);
	}
	s->finished = 0;
	s->state = TOK_ST_NONE;
	s->n_utf8 = 0;
	s->n_before = flags & TOK_TEMPLATE ? (uint8_t)v->shape.around.n_before : 0;
	s->n_after = flags & TOK_TEMPLATE ? (uint8_t)v->shape.around.n_after : 0;
	s->n_held = 0;
	s->prefix = v->metaspace.prefix != TOK_PREFIX_NONE;
	switch (v->kind) {
	case TOK_KIND_BPE:
		if (v->unigram.norm.on)
			tok_spm_init(&s->spm);
		else
			tok_nfc_init(&s->nfc);
		s->unigram.run = TOK_RUN_NONE;
		tok_pretoken_open(s);
		break;
	case TOK_KIND_WORDPIECE:
		tok_nfc_init(&s->nfc);
		tok_wordpiece_open(s);
		break;
	case TOK_KIND_UNIGRAM:
		tok_spm_init(&s->spm);
		tok_unigram_init(s);
		break;
	}
}

/* Bytes that wait in the normalizer. */
static size_t
normalizer_waits(const struct tok_stream *s)
{
	return s->vocab->kind == TOK_KIND_UNIGRAM || s->vocab->unigram.norm.on
		       ? tok_spm_waiting(&s->vocab->unigram.norm, &s->spm)
		       : tok_nfc_waiting(&s->nfc);
}

size_t
tok_stream_waiting(const struct tok_stream *s)
{
	return (size_t)s->n_utf8 + s->added_state[TOK_ADDED_TEXT_SET].n_held + normalizer_waits(s) +
	       s->added_state[TOK_ADDED_NORMAL_SET].n_held + s->n_held + s->n_pos;
}

/*
 * An id covers at least one byte of normalized text. One byte of text becomes at most three: an
 * invalid byte becomes at most one U+FFFD, form C has at most three bytes per byte, and BERT's
 * normalizer makes at most three characters of one.
 */
static_assert(TOK_NFC_EXPANSION <= TOK_UTF8_REPLACEMENT_BYTES, "one bound for both");

/*
 * A blank before a text adds one byte. A blank after an added token adds none to the bound: the
 * token's own bytes cover it.
 */
static inline size_t
prefix_bytes(const struct tok_vocab *v)
{
	return v->metaspace.prefix != TOK_PREFIX_NONE ||
	       (v->kind == TOK_KIND_BPE && v->unigram.norm.dummy != TOK_DUMMY_NONE);
}

/* Ids that may come before those of the remaining text: for a blank, and for a waiting literal. */
static size_t
unigram_waits(const struct tok_stream *s)
{
	const struct tok_vocab *v = s->vocab;

	if (v->kind != TOK_KIND_UNIGRAM)
		return 0;
	return 1 + (s->unigram.run == TOK_RUN_LITERAL ? v->span[v->unigram.unk].len : 0);
}

size_t
tok_stream_bound(const struct tok_stream *s, size_t n)
{
	/*
	 * Text held for added tokens in normalized text is counted like new text: a blank may be
	 * put before each part of it, and give_out() (encode/block.c) writes beyond the last id.
	 */
	return (n + prefix_bytes(s->vocab) + s->n_utf8 + s->added_state[TOK_ADDED_TEXT_SET].n_held +
		       normalizer_waits(s) + s->added_state[TOK_ADDED_NORMAL_SET].n_held) *
		       s->vocab->ids_per_byte +
	       s->n_held + s->n_pos + unigram_waits(s) + s->n_before + s->n_after;
}

size_t
tok_encode_bound(const struct tok_vocab *v, size_t n, uint32_t flags)
{
	const struct tok_template *t = &v->shape.around;

	return (n + prefix_bytes(v)) * v->ids_per_byte + (v->kind == TOK_KIND_UNIGRAM) +
	       (flags & TOK_TEMPLATE ? t->n_before + t->n_after : 0);
}

/* ---- stages after UTF-8, by kind of vocabulary ---- */

/* Encode fully normalized text. `last`: the text ends here. */
static enum tok_error_code
encode_plain(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	bool fits = true;

	switch (s->vocab->kind) {
	case TOK_KIND_BPE:
		fits = tok_pretok_feed(s, p, n, last, ids);
		break;
	case TOK_KIND_WORDPIECE:
		tok_pretok_bert_feed(s, p, n, last, ids);
		break;
	case TOK_KIND_UNIGRAM:
		fits = tok_unigram_feed(s, p, n, last, ids);
		break;
	}
	return fits ? TOK_ERROR_NONE : TOK_ERROR_CARRY;
}

/*
 * Metaspace: replace U+2581 by a blank, put a blank before the text, pass the result to `next`.
 * Inlined, so the calls of `next` are direct.
 */
static inline __attribute__((always_inline)) enum tok_error_code
replace_metaspace(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids,
	enum tok_error_code (*next)(
		struct tok_stream *, const uint8_t *, size_t, bool, uint32_t **))
{
	static const uint8_t blank = ' ';
	const enum tok_prefix prefix = s->vocab->metaspace.prefix;
	enum tok_error_code error = TOK_ERROR_NONE;

	if (n > 0 && s->prefix) {
		s->prefix = false;
		if (tok_metaspace_wants(prefix, p, n))
			error = next(s, &blank, 1, false, ids);
	}
	while (error == TOK_ERROR_NONE) {
		const size_t found = tok_metaspace_find(p, n);

		if (found == n)
			break;
		if (found > 0)
			error = next(s, p, found, false, ids);
		if (error == TOK_ERROR_NONE)
			error = next(s, &blank, 1, false, ids);
		p += found + TOK_METASPACE_BYTES;
		n -= found + TOK_METASPACE_BYTES;
	}
	if (last) /* an added token comes next, then more text */
		s->prefix = prefix == TOK_PREFIX_EACH || prefix == TOK_PREFIX_ANYWAY;
	return error == TOK_ERROR_NONE ? next(s, p, n, last, ids) : error;
}

/* Well-formed text. With `last` it is the end. */
static enum tok_error_code
encode_text(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	if (s->vocab->metaspace.stage == TOK_METASPACE_PRETOKENIZER)
		return replace_metaspace(s, p, n, last, ids, encode_plain);
	return encode_plain(s, p, n, last, ids);
}

static inline enum tok_error_code
finish(struct tok_stream *s, uint32_t **ids)
{
	static const uint8_t none;

	return encode_text(s, &none, 0, true, ids);
}

/* Split normalized text at its added tokens, and encode it. */
static enum tok_error_code
feed_normalized(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_added_piece piece = {
		.p = p, .n = n, .last = last, .special = s->flags & TOK_SPECIAL};
	struct tok_added_span span;
	enum tok_error_code error = TOK_ERROR_NONE;

	if (!s->added[TOK_ADDED_NORMAL_SET])
		return encode_text(s, p, n, last, ids);
	while (error == TOK_ERROR_NONE) {
		switch (tok_added_next(&s->added_state[TOK_ADDED_NORMAL_SET],
			&s->vocab->added[TOK_ADDED_NORMAL_SET], &piece, &span)) {
		case TOK_ADDED_TEXT:
			error = encode_text(s, span.p, span.n, false, ids);
			break;
		case TOK_ADDED_TOKEN:
			error = finish(s, ids);
			*(*ids)++ = span.id;
			break;
		case TOK_ADDED_DONE:
			return last ? finish(s, ids) : TOK_ERROR_NONE;
		case TOK_ADDED_FULL:
			return TOK_ERROR_ADDED;
		}
	}
	return error;
}

/* Take the output of SentencePiece's normalizer, which may contain U+2581. */
static enum tok_error_code
take_spm(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	if (s->vocab->metaspace.stage == TOK_METASPACE_NORMALIZER)
		return replace_metaspace(s, p, n, last, ids, feed_normalized);
	return feed_normalized(s, p, n, last, ids);
}

/* Normalize text between added tokens with SentencePiece's normalizer. */
static enum tok_error_code
normalize_spm(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_spm_piece piece = {p, p + n, last};
	uint8_t out[TOK_SPM_OUT];
	enum tok_error_code error = TOK_ERROR_NONE;
	size_t some;

	while (error == TOK_ERROR_NONE &&
		(some = tok_spm_next(s->vocab, &s->spm, &piece, out)) > 0) {
		if (some == TOK_SPM_FULL)
			return TOK_ERROR_WHITE;
		error = take_spm(s, out, some, false, ids);
	}
	if (error != TOK_ERROR_NONE)
		return error;
	if (last)
		return take_spm(s, p, 0, true, ids);
	if (!s->vocab->unigram.norm.sentencepiece && tok_spm_blank_waits(&s->spm) &&
		!s->added[TOK_ADDED_NORMAL_SET])
		tok_unigram_border(s, ids);
	return TOK_ERROR_NONE;
}

/* Normalize text between added tokens with the vocabulary's normalizer. */
static enum tok_error_code
normalize(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_nfc_piece piece = {p, p + n, last};
	struct tok_nfc_span span;
	enum tok_error_code error = TOK_ERROR_NONE;
	enum tok_nfc_result r;

	if (s->vocab->unigram.norm.on)
		return normalize_spm(s, p, n, last, ids);
	if (s->vocab->metaspace.stage == TOK_METASPACE_NORMALIZER)
		return replace_metaspace(s, p, n, last, ids, feed_normalized);
	if (!s->vocab->nfc)
		return feed_normalized(s, p, n, last, ids);
	while (error == TOK_ERROR_NONE &&
		(r = tok_nfc_next(&s->nfc, &piece, &span)) != TOK_NFC_DONE) {
		if (r == TOK_NFC_FULL)
			return TOK_ERROR_MARKS;
		error = feed_normalized(s, span.p, span.n, false, ids);
	}
	return error == TOK_ERROR_NONE && last ? feed_normalized(s, p, 0, true, ids) : error;
}

/* Well-formed text. With `last` it is the end. */
static enum tok_error_code
feed_text(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_added_piece piece = {
		.p = p, .n = n, .last = last, .special = s->flags & TOK_SPECIAL};
	struct tok_added_span span;
	enum tok_error_code error = TOK_ERROR_NONE;

	if (!s->added[TOK_ADDED_TEXT_SET])
		return normalize(s, p, n, last, ids);
	while (error == TOK_ERROR_NONE) {
		switch (tok_added_next(&s->added_state[TOK_ADDED_TEXT_SET],
			&s->vocab->added[TOK_ADDED_TEXT_SET], &piece, &span)) {
		case TOK_ADDED_TEXT:
			error = normalize(s, span.p, span.n, false, ids);
			break;
		case TOK_ADDED_TOKEN:
			error = normalize(s, p, 0, true, ids);
			*(*ids)++ = span.id;
			break;
		case TOK_ADDED_DONE:
			return last ? normalize(s, p, 0, true, ids) : TOK_ERROR_NONE;
		case TOK_ADDED_FULL:
			return TOK_ERROR_ADDED;
		}
	}
	return error;
}

/* ---- bytes ---- */

/* Feed the replacement for n bytes that are an incomplete or invalid character. */
static enum tok_error_code
replace(struct tok_stream *s, uint32_t n, uint32_t **ids)
{
	if (s->vocab->unigram.norm.sentencepiece)
		return feed_text(s, (const uint8_t *)TOK_SPM_BROKEN TOK_SPM_BROKEN TOK_SPM_BROKEN,
			n, false, ids);
	return feed_text(
		s, (const uint8_t *)TOK_UTF8_REPLACEMENT, TOK_UTF8_REPLACEMENT_BYTES, false, ids);
}

/* On TOK_ERROR_UTF8, *took is the number of bytes before the invalid one. */
static enum tok_error_code
encode_bytes(struct tok_stream *s, const uint8_t *text, size_t n, bool last, uint32_t **ids,
	size_t *took)
{
	const uint8_t *p = text, *end = p + n;
	enum tok_error_code error = TOK_ERROR_NONE;

	*took = 0;

	/* Complete or replace the character that the previous piece left incomplete. */
	while (s->n_utf8 > 0 && p < end) {
		uint8_t have = s->n_utf8;

		if (!tok_utf8_follows(s->utf8[0], have, *p)) {
			*took = (size_t)(p - text);
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_ERROR_UTF8;
			s->n_utf8 = 0;
			error = replace(s, have, ids);
			if (error != TOK_ERROR_NONE)
				return error;
			break;
		}
		s->utf8[s->n_utf8++] = *p++;
		if (s->n_utf8 == tok_utf8_length(s->utf8[0])) {
			s->n_utf8 = 0;
			error = feed_text(s, s->utf8, have + 1u, false, ids);
			if (error != TOK_ERROR_NONE)
				return error;
		}
	}
	while (p < end) {
		const size_t whole = s->vocab->kernels->utf8(p, (size_t)(end - p));
		struct tok_utf8_span span = tok_utf8_scan(p + whole, (size_t)(end - p) - whole);
		bool all = last && span.end == TOK_UTF8_WHOLE;

		span.valid += whole;
		if (span.valid > 0)
			error = feed_text(s, p, span.valid, all, ids);
		if (error != TOK_ERROR_NONE)
			return error;
		p += span.valid;
		if (span.end == TOK_UTF8_SHORT) {
			memcpy(s->utf8, p, span.rest);
			s->n_utf8 = (uint8_t)span.rest;
		} else if (span.end == TOK_UTF8_BROKEN) {
			*took = (size_t)(p - text);
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_ERROR_UTF8;
			error = replace(s, span.rest, ids);
			if (error != TOK_ERROR_NONE)
				return error;
		}
		p += span.rest;
	}
	if (last && s->n_utf8 > 0) {
		*took = n;
		if (s->flags & TOK_STRICT_UTF8)
			return TOK_ERROR_UTF8;
		error = replace(s, s->n_utf8, ids);
		s->n_utf8 = 0;
		if (error != TOK_ERROR_NONE)
			return error;
	}
	if (last)
		return feed_text(s, p, 0, true, ids);
	if (s->vocab->kind == TOK_KIND_BPE)
		*ids = tok_pretoken_release(s, *ids);
	else if (s->vocab->kind == TOK_KIND_UNIGRAM)
		*ids = tok_unigram_release(s, *ids);
	return TOK_ERROR_NONE;
}

/* Replace each run of unknown bytes in ids[0 .. n) by one unknown piece. A run may continue from
 * the previous call. Returns the number of ids left. */
static size_t
join_unknown(struct tok_stream *s, uint32_t *ids, size_t n)
{
	const uint32_t n_ids = s->vocab->info.n_ids;
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		const bool known = ids[i] < n_ids;

		if (known || s->unigram.run == TOK_RUN_NONE)
			ids[to++] = known ? ids[i] : s->vocab->unigram.unk;
		s->unigram.run = known ? TOK_RUN_NONE : TOK_RUN_OPEN;
	}
	return to;
}

struct tok_result
tok_stream_feed(
	struct tok_stream *s, const void *text, size_t n, bool last, uint32_t *ids, size_t room)
{
	struct tok_result r = {.status = TOK_OK};
	const uint8_t *p = text;

	if (s->finished)
		return (struct tok_result){.status = TOK_BAD, .error = TOK_ERROR_FINISHED};
	if (s->n_before > 0 && s->n_before <= room) {
		memcpy(ids, s->vocab->shape.around.before, s->n_before * sizeof(*ids));
		r.produced = s->n_before;
		s->n_before = 0;
	}
	do {
		size_t take = n - r.consumed, took;
		uint32_t *next = ids + r.produced;
		bool end;

		/* Take as many bytes as are sure to fit: usually all of them. */
		if (tok_stream_bound(s, take) > room - r.produced) {
			size_t held = tok_stream_bound(s, 0);

			take = room - r.produced > held
				       ? (room - r.produced - held) / s->vocab->ids_per_byte
				       : 0;
			if (take == 0) {
				r.status = TOK_MORE;
				return r;
			}
		}
		end = last && r.consumed + take == n;
		r.error = encode_bytes(s, p + r.consumed, take, end, &next, &took);
		if (tok_has_unknown(s->vocab))
			next = ids + r.produced +
			       join_unknown(s, ids + r.produced, (size_t)(next - ids) - r.produced);
		r.produced = (size_t)(next - ids);
		if (r.error != TOK_ERROR_NONE) {
			r.consumed += r.error == TOK_ERROR_UTF8 ? took : 0;
			r.status = TOK_BAD;
			s->finished = 1;
			return r;
		}
		s->finished = end;
		r.consumed += take;
		if (end) {
			memcpy(ids + r.produced, s->vocab->shape.around.after,
				s->n_after * sizeof(*ids));
			r.produced += s->n_after;
			s->n_after = 0;
		}
	} while (r.consumed < n);
	return r;
}

struct tok_result
tok_encode(const struct tok_vocab *v, struct tok_cache *c, const void *text, size_t n,
	uint32_t flags, uint32_t *ids, size_t room)
{
	struct tok_stream s;

	tok_stream_init(&s, v, c, flags);
	return tok_stream_feed(&s, text, n, true, ids, room);
}

static_assert(TOK_CARRY_MAX == 2048 && TOK_ADDED_HELD_MAX == 1024 && TOK_NFC_MARKS_MAX == 256 &&
		      TOK_SPM_WHITE_MAX == 1000,
	"as said below");

const char *
tok_error_code_text(enum tok_error_code error)
{
	switch (error) {
	case TOK_ERROR_NONE:
		return "no error";
	case TOK_ERROR_UTF8:
		return "the text is not UTF-8, and strict UTF-8 was asked for";
	case TOK_ERROR_CARRY:
		return "more than 2048 bytes of one pretoken have uncertain ids";
	case TOK_ERROR_ADDED:
		return "more than 1024 bytes that an added token may take";
	case TOK_ERROR_WHITE:
		return "more than 1000 bytes of white space that may be left out";
	case TOK_ERROR_MARKS:
		return "more than 256 combining marks in a row: form C has a limit";
	case TOK_ERROR_ID:
		return "no such id in the vocabulary";
	case TOK_ERROR_FINISHED:
		return "the stream has ended";
	}
	return "unknown";
}
