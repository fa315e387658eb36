/* SPDX-License-Identifier: BSD-3-Clause */
/* Pretokens that are cut by the end of a piece; those that are whole go by encode_whole.c. Hot path. */
#include "bpe.h"
#include "encode_whole.h"
#include "pretok.h"
#include "utf8.h"

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
bool
tok_pretok_finish(struct tok_stream *s, uint32_t **ids)
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

bool
tok_pretok_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
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
	return !last || tok_pretok_finish(s, ids);
}
