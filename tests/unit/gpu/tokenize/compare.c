/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "unicode/utf8.h"
#include "vocab.h"

bool
compare_open(struct compare *c, const struct tok_vocab *v, struct tokg_texts *x)
{
	memset(c, 0, sizeof(*c));
	c->v = v;
	c->x = x;
	c->cache = tok_cache_create(v, 0, NULL);
	c->text = malloc((size_t)COMPARE_TEXTS * COMPARE_BYTES);
	c->expected = malloc(tok_encode_bound(v, COMPARE_BYTES, TOK_ADDED_AS_TEXT) * 4);
	return c->text != NULL && c->expected != NULL;
}

void
compare_close(struct compare *c)
{
	tok_cache_free(c->cache);
	free(c->text);
	free(c->expected);
}

/* Say what differs, with the text's bytes in hexadecimal as far as there is room. */
static bool
differs(struct compare *c, uint32_t i, const char *what)
{
	const uint8_t *const p = c->text + c->begin[i];
	const size_t n = c->begin[i + 1] - c->begin[i];
	int at = snprintf(c->why, sizeof(c->why), "%s; %zu bytes:", what, n);

	for (size_t k = 0; k < n && at < (int)sizeof(c->why) - 4; k++)
		at += snprintf(c->why + at, sizeof(c->why) - (size_t)at, " %02x", p[k]);
	return false;
}

/* Has this well-formed text characters that the normalizer may bring into another order? */
static bool
has_marks(const struct tok_vocab *v, const uint8_t *p, size_t n)
{
	const struct tok_bert_norm *const norm = &v->wordpiece.norm;
	size_t marks = 0;

	for (size_t at = 0; at < n; at += tok_utf8_length(p[at])) {
		const uint32_t cp = tok_utf8_decode(p + at, tok_utf8_length(p[at]));
		uint32_t element[TOK_BERT_SEQ_MAX];
		bool mark = false;

		for (uint32_t i = tok_bert_expand(norm, cp, element); i-- > 0;)
			mark |= TOK_BERT_CCC(element[i]) != 0;
		marks += mark;
	}
	return marks > 1;
}

/* May this text be left to the CPU? */
static bool
may_refuse(const struct compare *c, enum tokg_text_status status, const uint8_t *p, size_t n)
{
	const bool words = c->v->kind == TOK_KIND_WORDPIECE;

	if (status == TOKG_TEXT_TOO_LONG)
		return n > (words ? TOKG_TEXT_MAX : TOKG_WORD_MAX);
	return status == TOKG_TEXT_NOT_PLAIN &&
	       (tok_utf8_scan(p, n).valid < n || c->v->norm.n > 0 ||
		       (words && has_marks(c->v, p, n)));
}

static bool
compare_one(struct compare *c, uint32_t i)
{
	const struct tokg_texts_result *const r = &c->x->result[i];
	const uint32_t *const ids = c->x->ids + c->begin[i];
	const uint8_t *const p = c->text + c->begin[i];
	const size_t n = c->begin[i + 1] - c->begin[i];
	struct tok_result expected;
	char what[128];

	c->n[r->status & 3]++;
	if (r->status != TOKG_TEXT_OK)
		return may_refuse(c, (enum tokg_text_status)r->status, p, n) ||
		       differs(c, i, tokg_text_status_name((enum tokg_text_status)r->status));
	expected = tok_encode(c->v, c->cache, p, n, TOK_ADDED_AS_TEXT, c->expected,
		tok_encode_bound(c->v, n, TOK_ADDED_AS_TEXT));
	c->bytes += n;
	c->ids += r->n_ids;
	if (tok_utf8_scan(p, n).valid < n)
		return differs(c, i, "malformed text is encoded");
	if (expected.status != TOK_OK)
		return differs(c, i, "tok_encode rejects it");
	for (uint32_t k = 0; k < r->n_ids && k < expected.produced; k++) {
		if (ids[k] == c->expected[k])
			continue;
		snprintf(what, sizeof(what), "id %u is %u, expected %u", k, ids[k], c->expected[k]);
		return differs(c, i, what);
	}
	if (r->n_ids == expected.produced)
		return true;
	snprintf(what, sizeof(what), "%u ids, expected %zu", r->n_ids, expected.produced);
	return differs(c, i, what);
}

bool
compare_some(struct compare *c, uint32_t n)
{
	const struct tokg_texts_ops *const ops = c->x->ops;
	struct tokg_error err = {{0}};
	uint64_t ns;

	if (!ops->put(c->x, c->text, c->begin, n, &err) || !ops->run(c->x, &ns, &err) ||
		!ops->fetch(c->x, &err)) {
		snprintf(c->why, sizeof(c->why), "%s", err.text);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!compare_one(c, i))
			return false;
	}
	return true;
}

bool
compare_made(struct compare *c, struct texts_made *m, uint64_t count, size_t most)
{
	while (count > 0) {
		const uint32_t n = count < COMPARE_TEXTS ? (uint32_t)count : COMPARE_TEXTS;

		for (uint32_t i = 0; i < n; i++)
			c->begin[i + 1] = c->begin[i] + texts_next(m, c->text + c->begin[i], most);
		if (!compare_some(c, n))
			return false;
		count -= n;
	}
	return true;
}
