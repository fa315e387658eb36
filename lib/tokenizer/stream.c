/* SPDX-License-Identifier: BSD-3-Clause */
/* The three machines in a row: UTF-8, pretokens, merges. Hot path. */
#include "bpe.h"
#include "encode_whole.h"
#include "pretok.h"
#include "utf8.h"

void
tok_stream_init(
	struct tok_stream *s, const struct tok_vocab *v, struct tok_cache *c, uint32_t flags)
{
	s->vocab = v;
	s->cache = c;
	s->flags = flags;
	s->over = 0;
	s->state = TOK_ST_NONE;
	s->n_utf8 = 0;
	s->n_ahead = 0;
	tok_bpe_open(s);
}

size_t
tok_stream_waiting(const struct tok_stream *s)
{
	return (size_t)s->n_utf8 + s->n_ahead + s->n_pos;
}

/* An id covers at least one byte; a byte that is not UTF-8 becomes one U+FFFD at most. */
size_t
tok_stream_bound(const struct tok_stream *s, size_t n)
{
	return (n + s->n_utf8) * TOK_UTF8_REPLACEMENT_BYTES + s->n_ahead + s->n_pos;
}

size_t
tok_encode_bound(size_t n)
{
	return n * TOK_UTF8_REPLACEMENT_BYTES;
}

/* ---- pretokens that are cut ---- */

static bool
take_ahead(struct tok_stream *s, uint32_t **ids)
{
	uint8_t n = s->n_ahead;

	s->n_ahead = 0;
	return tok_bpe_push(s, s->ahead, n, ids);
}

static void
hold(struct tok_stream *s, const uint8_t *p, uint32_t len)
{
	memcpy(s->ahead, p, len);
	s->n_ahead = (uint8_t)len;
}

/* After a close: what was held begins the next pretoken. It is one character. */
static bool
reopen(struct tok_stream *s, uint32_t **ids)
{
	enum tok_class cls;

	if (s->n_ahead == 0)
		return true;
	cls = tok_class_of(s->vocab, tok_utf8_decode(s->ahead, s->n_ahead));
	tok_pretok_gpt2_step(&s->state, NULL, cls, s->ahead[0]);
	return take_ahead(s, ids);
}

/*
 * Characters of well-formed text, one by one, until no pretoken is open at one of them. Returns the
 * bytes taken, or TOK_NO_BORDER when the carry was exceeded.
 */
static size_t
encode_steps(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	const struct tok_vocab *v = s->vocab;
	size_t at = 0;

	while (at < n) {
		uint32_t len = tok_utf8_length(p[at]);
		enum tok_class cls = tok_class_of(v, tok_utf8_decode(p + at, len));
		bool fits = true;

		switch (tok_pretok_gpt2_step(&s->state, s->ahead, cls, p[at])) {
		case TOK_STEP_TAKE:
			fits = tok_bpe_push(s, p + at, len, ids);
			break;
		case TOK_STEP_HOLD:
			hold(s, p + at, len);
			break;
		case TOK_STEP_AHEAD_HOLD:
			fits = take_ahead(s, ids);
			hold(s, p + at, len);
			break;
		case TOK_STEP_TAKE_CLOSE:
			fits = tok_bpe_push(s, p + at, len, ids);
			*ids = tok_bpe_close(s, *ids);
			return fits ? at + len : TOK_NO_BORDER;
		case TOK_STEP_AHEAD_TAKE_CLOSE:
			fits = take_ahead(s, ids) && tok_bpe_push(s, p + at, len, ids);
			*ids = tok_bpe_close(s, *ids);
			return fits ? at + len : TOK_NO_BORDER;
		case TOK_STEP_CLOSE:
			*ids = tok_bpe_close(s, *ids);
			if (s->n_ahead == 0)
				return at;
			if (!reopen(s, ids))
				return TOK_NO_BORDER;
			continue; /* the same character again, after what was held */
		}
		if (!fits)
			return TOK_NO_BORDER;
		at += len;
	}
	return at;
}

/* The text ends: so does the open pretoken, and what is ahead of it belongs to it or follows. */
static bool
finish(struct tok_stream *s, uint32_t **ids)
{
	bool fits = true;

	if (s->state == TOK_ST_SPACES) {
		fits = take_ahead(s, ids);
	} else if (s->state == TOK_ST_QUOTE_AHEAD) {
		*ids = tok_bpe_close(s, *ids);
		s->state = TOK_ST_NONE;
		fits = reopen(s, ids);
	}
	*ids = tok_bpe_close(s, *ids);
	s->state = TOK_ST_NONE;
	return fits;
}

/* Well-formed text. With `last` it is the end. False: the carry was exceeded. */
static bool
encode_text(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	size_t took;

	if (s->state != TOK_ST_NONE) {
		took = encode_steps(s, p, n, ids);
		if (took == TOK_NO_BORDER)
			return false;
		p += took;
		n -= took;
	}
	if (s->state == TOK_ST_NONE && n > 0) {
		took = tok_encode_whole(s, p, n, last, ids);
		if (took == TOK_NO_BORDER)
			return false;
		if (took < n && encode_steps(s, p + took, n - took, ids) == TOK_NO_BORDER)
			return false;
	}
	return !last || finish(s, ids);
}

/* ---- bytes ---- */

static bool
replace(struct tok_stream *s, uint32_t **ids)
{
	return encode_text(
		s, (const uint8_t *)TOK_UTF8_REPLACEMENT, TOK_UTF8_REPLACEMENT_BYTES, false, ids);
}

/* With TOK_WHY_UTF8, *took is the number of bytes before the one that does not belong. */
static enum tok_why
encode_bytes(struct tok_stream *s, const uint8_t *text, size_t n, bool last, uint32_t **ids,
	size_t *took)
{
	const uint8_t *p = text, *end = p + n;

	*took = 0;

	/* Complete, or give up, the character that the piece before left incomplete. */
	while (s->n_utf8 > 0 && p < end) {
		uint8_t have = s->n_utf8;

		if (!tok_utf8_follows(s->utf8[0], have, *p)) {
			*took = (size_t)(p - text);
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_WHY_UTF8;
			s->n_utf8 = 0;
			if (!replace(s, ids))
				return TOK_WHY_CARRY;
			break;
		}
		s->utf8[s->n_utf8++] = *p++;
		if (s->n_utf8 == tok_utf8_length(s->utf8[0])) {
			s->n_utf8 = 0;
			if (!encode_text(s, s->utf8, have + 1u, false, ids))
				return TOK_WHY_CARRY;
		}
	}
	while (p < end) {
		struct tok_utf8_span span = tok_utf8_scan(p, (size_t)(end - p));
		bool all = last && span.end == TOK_UTF8_WHOLE;

		if (span.valid > 0 && !encode_text(s, p, span.valid, all, ids))
			return TOK_WHY_CARRY;
		p += span.valid;
		if (span.end == TOK_UTF8_SHORT) {
			memcpy(s->utf8, p, span.rest);
			s->n_utf8 = (uint8_t)span.rest;
		} else if (span.end == TOK_UTF8_BROKEN) {
			*took = (size_t)(p - text);
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_WHY_UTF8;
			if (!replace(s, ids))
				return TOK_WHY_CARRY;
		}
		p += span.rest;
	}
	if (last && s->n_utf8 > 0) {
		*took = n;
		if (s->flags & TOK_STRICT_UTF8)
			return TOK_WHY_UTF8;
		s->n_utf8 = 0;
		if (!replace(s, ids))
			return TOK_WHY_CARRY;
	}
	if (last)
		return finish(s, ids) ? TOK_WHY_NONE : TOK_WHY_CARRY;
	*ids = tok_bpe_release(s, *ids);
	return TOK_WHY_NONE;
}

struct tok_result
tok_stream_feed(
	struct tok_stream *s, const void *text, size_t n, bool last, uint32_t *ids, size_t room)
{
	struct tok_result r = {.status = TOK_OK};
	const uint8_t *p = text;

	if (s->over)
		return (struct tok_result){.status = TOK_BAD, .why = TOK_WHY_OVER};
	do {
		size_t take = n - r.consumed, took;
		uint32_t *next = ids + r.produced;
		bool end;

		/* Take what surely fits: as a rule everything, in one turn. */
		if (tok_stream_bound(s, take) > room - r.produced) {
			size_t held = tok_stream_bound(s, 0);

			take = room - r.produced > held
				       ? (room - r.produced - held) / TOK_UTF8_REPLACEMENT_BYTES
				       : 0;
			if (take == 0) {
				r.status = TOK_MORE;
				return r;
			}
		}
		end = last && r.consumed + take == n;
		r.why = encode_bytes(s, p + r.consumed, take, end, &next, &took);
		r.produced = (size_t)(next - ids);
		if (r.why != TOK_WHY_NONE) {
			r.consumed += r.why == TOK_WHY_UTF8 ? took : 0;
			r.status = TOK_BAD;
			s->over = 1;
			return r;
		}
		s->over = end;
		r.consumed += take;
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

const char *
tok_why_text(enum tok_why why)
{
	switch (why) {
	case TOK_WHY_NONE:
		return "no error";
	case TOK_WHY_UTF8:
		return "the text is not UTF-8, and strict UTF-8 was asked for";
	case TOK_WHY_CARRY:
		return "more than 2048 bytes of one pretoken have uncertain ids";
	case TOK_WHY_ID:
		return "no such id in the vocabulary";
	case TOK_WHY_OVER:
		return "the stream has ended";
	}
	return "unknown";
}
