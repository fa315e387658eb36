/* SPDX-License-Identifier: BSD-3-Clause */
/* Scan text in memory step by step. Bytes that are held may be scanned again. Hot path. */
#include "pretok.h"
#include "isa/kernels.h"
#include "unicode/utf8.h"

uint32_t
tok_pretok_scan(struct tok_pretok_scan *s, size_t *start, uint32_t room)
{
	if (s->v->pretok == TOK_PRETOK_REGEX)
		return tok_pretok_step_scan(s, start, room);
	return s->v->kernels->scan(s, start, room);
}

uint32_t
tok_pretok_step_scan(struct tok_pretok_scan *s, size_t *start, uint32_t room)
{
	uint32_t n = 0;

	while (n < room && s->at < s->n) {
		enum tok_pretok_step step;
		uint32_t len;

		if (s->state == TOK_ST_NONE)
			start[n++] = s->at;
		len = tok_utf8_length(s->text[s->at]);
		step = tok_pretok_step(s->v, &s->state, tok_utf8_decode(s->text + s->at, len));
		if (step <= TOK_STEP_TAKE_HOLD)
			s->at += len;
		else if (step >= TOK_STEP_CLOSE)
			s->at -= s->held;
		s->held = step == TOK_STEP_HOLD ? s->held + len
						: (step == TOK_STEP_TAKE_HOLD ? len : 0);
		if (s->at == s->n && s->last && s->held > 0 &&
			tok_pretok_step_end(s->v, &s->state) != TOK_STEP_HELD_CLOSE) {
			s->at -= s->held;
			s->held = 0;
		}
	}
	return n;
}
