/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes to ids: UTF-8, then the stages of the vocabulary (stages.c). Hot path. */
#include "encode/pretoken.h"
#include "encode/unigram.h"
#include "isa/kernels.h"
#include "normalize/nfc.h"
#include "normalize/spm_norm.h"
#include "unicode/utf8.h"

void
tok_stream_init(
	struct tok_stream *s, const struct tok_vocab *v, struct tok_cache *c, uint32_t flags)
{
	s->vocab = v;
	s->cache = c;
	s->flags = flags;
	s->finished = 0;
	s->state = 0; /* no pretoken or word is open */
	s->n_utf8 = 0;
	s->n_before = flags & TOK_TEMPLATE ? (uint8_t)v->shape.around.n_before : 0;
	s->n_after = flags & TOK_TEMPLATE ? (uint8_t)v->shape.around.n_after : 0;
	s->n_held = 0;
	s->keeps = false;
	s->added[TOK_ADDED_TEXT_SET] = s->added[TOK_ADDED_NORMAL_SET] = false;
	for (const struct tok_stage *const *stage = v->stage; *stage != NULL; stage++) {
		if ((*stage)->open != NULL)
			(*stage)->open(s);
	}
}

/* Bytes that wait before the model. */
static size_t
stages_wait(const struct tok_stream *s)
{
	size_t n = s->n_utf8;

	for (const struct tok_stage *const *stage = s->vocab->stage; *stage != NULL; stage++) {
		if ((*stage)->waits != NULL)
			n += (*stage)->waits(s);
	}
	return n;
}

size_t
tok_stream_waiting(const struct tok_stream *s)
{
	return stages_wait(s) + s->n_held + tok_pretoken_waits(s);
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
	 * put before each part of it, and write_ids() (encode/block.c) writes beyond the last id.
	 * The open pretoken's bytes whose ids were released may be encoded once more, and these
	 * ids removed. Tables that contradict each other may then give an id for each byte.
	 */
	return (n + prefix_bytes(s->vocab) + stages_wait(s)) * s->vocab->ids_per_byte + s->n_held +
	       tok_pretoken_waits(s) + (s->keeps ? s->kept_given : 0) + unigram_waits(s) +
	       s->n_before + s->n_after;
}

size_t
tok_encode_bound(const struct tok_vocab *v, size_t n, uint32_t flags)
{
	const struct tok_template *t = &v->shape.around;

	return (n + prefix_bytes(v)) * v->ids_per_byte + (v->kind == TOK_KIND_UNIGRAM) +
	       (flags & TOK_TEMPLATE ? t->n_before + t->n_after : 0);
}

/* Text whose bytes are well-formed. With `last` it ends here. */
static inline enum tok_error_code
feed_text(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	return tok_stage_next(s, s->vocab->stage, p, n, last, ids);
}

/*
 * Text with its invalid bytes replaced. It is put together here because each feed of the stages has
 * a cost of its own, and in hostile text an invalid byte may follow every character.
 */
struct mended {
	uint32_t n;
	uint8_t text[1024];
};

static enum tok_error_code
feed_mended(struct tok_stream *s, struct mended *m, uint32_t **ids)
{
	const uint32_t n = m->n;

	m->n = 0;
	return n > 0 ? feed_text(s, m->text, n, false, ids) : TOK_ERROR_NONE;
}

/* Append the replacement for n bytes that are an incomplete or invalid character. */
static enum tok_error_code
replace(struct tok_stream *s, struct mended *m, uint32_t n, uint32_t **ids)
{
	enum tok_error_code error = TOK_ERROR_NONE;

	if (s->vocab->unigram.norm.sentencepiece)
		return feed_text(s, (const uint8_t *)TOK_SPM_BROKEN TOK_SPM_BROKEN TOK_SPM_BROKEN,
			n, false, ids);
	if (m->n + TOK_UTF8_REPLACEMENT_BYTES > sizeof(m->text))
		error = feed_mended(s, m, ids);
	memcpy(m->text + m->n, TOK_UTF8_REPLACEMENT, TOK_UTF8_REPLACEMENT_BYTES);
	m->n += TOK_UTF8_REPLACEMENT_BYTES;
	return error;
}

/* Feed well-formed text behind the mended text that waits. Short text is appended to it and waits,
 * too. */
static enum tok_error_code
feed_valid(struct tok_stream *s, struct mended *m, const uint8_t *p, size_t n, bool last,
	uint32_t **ids)
{
	enum tok_error_code error;

	if (m->n > 0 && n <= sizeof(m->text) - m->n && !last) {
		memcpy(m->text + m->n, p, n);
		m->n += (uint32_t)n;
		return TOK_ERROR_NONE;
	}
	error = feed_mended(s, m, ids);
	return error == TOK_ERROR_NONE ? feed_text(s, p, n, last, ids) : error;
}

/* Write the ids that no later byte can change. */
static uint32_t *
release(struct tok_stream *s, uint32_t *ids)
{
	for (const struct tok_stage *const *stage = s->vocab->stage; *stage != NULL; stage++) {
		if ((*stage)->release != NULL)
			ids = (*stage)->release(s, ids);
	}
	return ids;
}

/* On TOK_ERROR_UTF8, text[*at] is where the character begins: below 0 in an earlier piece. */
static enum tok_error_code
encode_bytes(struct tok_stream *s, const uint8_t *text, size_t n, bool last, uint32_t **ids,
	ptrdiff_t *at)
{
	const uint8_t *p = text, *end = p + n;
	enum tok_error_code error = TOK_ERROR_NONE;
	struct mended m;

	m.n = 0; /* its text needs no zeroing */

	/* Complete or replace the character that the previous piece left incomplete. */
	while (s->n_utf8 > 0 && p < end) {
		uint8_t have = s->n_utf8;

		if (!tok_utf8_follows(s->utf8[0], have, *p)) {
			*at = p - text - have;
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_ERROR_UTF8;
			s->n_utf8 = 0;
			error = replace(s, &m, have, ids);
			if (error != TOK_ERROR_NONE)
				return error;
			break;
		}
		s->utf8[s->n_utf8++] = *p++;
		if (s->n_utf8 == tok_utf8_length(s->utf8[0])) {
			s->n_utf8 = 0;
			error = feed_valid(s, &m, s->utf8, have + 1u, false, ids);
			if (error != TOK_ERROR_NONE)
				return error;
		}
	}
	while (p < end) {
		const size_t whole = s->vocab->kernels->utf8(p, (size_t)(end - p));
		struct tok_utf8_span span = tok_utf8_scan(p + whole, (size_t)(end - p) - whole);
		const bool all = last && span.end == TOK_UTF8_WHOLE;

		span.valid += whole;
		if (span.valid > 0)
			error = feed_valid(s, &m, p, span.valid, all, ids);
		if (all || error != TOK_ERROR_NONE)
			return error;
		p += span.valid;
		if (span.end == TOK_UTF8_SHORT) {
			memcpy(s->utf8, p, span.rest);
			s->n_utf8 = (uint8_t)span.rest;
		} else if (span.end == TOK_UTF8_BROKEN) {
			*at = p - text;
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_ERROR_UTF8;
			error = replace(s, &m, span.rest, ids);
			if (error != TOK_ERROR_NONE)
				return error;
		}
		p += span.rest;
	}
	if (last && s->n_utf8 > 0) {
		*at = (ptrdiff_t)n - s->n_utf8;
		if (s->flags & TOK_STRICT_UTF8)
			return TOK_ERROR_UTF8;
		error = replace(s, &m, s->n_utf8, ids);
		s->n_utf8 = 0;
		if (error != TOK_ERROR_NONE)
			return error;
	}
	error = feed_mended(s, &m, ids);
	if (error != TOK_ERROR_NONE)
		return error;
	if (last)
		return feed_text(s, p, 0, true, ids);
	*ids = release(s, *ids);
	return TOK_ERROR_NONE;
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
		size_t take = n - r.consumed;
		uint32_t *next = ids + r.produced;
		ptrdiff_t at = 0;
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
		r.error = encode_bytes(s, p + r.consumed, take, end, &next, &at);
		r.produced = (size_t)(next - ids);
		if (r.error != TOK_ERROR_NONE) {
			at += (ptrdiff_t)r.consumed;
			if (r.error == TOK_ERROR_UTF8) {
				r.consumed = at > 0 ? (size_t)at : 0;
				r.begun = at < 0 ? (size_t)-at : 0;
			}
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
	const bool normalized = v->norm.n > 0;
	struct tok_stream s;
	struct tok_result r;

	tok_stream_init(&s, v, c, flags);
	if (normalized)
		tok_nfc_open_whole(&s.nfc);
	r = tok_stream_feed(&s, text, n, true, ids, room);
	if (normalized)
		tok_nfc_close_whole(&s.nfc);
	return r;
}
