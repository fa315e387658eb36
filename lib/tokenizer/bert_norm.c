/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of bert_norm.h from the properties of characters. Set-up only. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bert_tables.h"
#include "vocab_table.h"

#define SEQ_ROOM 4096u /* elements; only a few hundred characters become several */

#define HANGUL_FIRST 0xac00u
#define HANGUL_LAST 0xd7a3u

struct making {
	const struct tok_model_bert *options;
	uint8_t *cls;	/* by code point, enum tok_bert_class */
	uint8_t *ccc;	/* by code point */
	uint32_t *low;	/* by code point */
	uint32_t *flat; /* by code point: the element */
	uint32_t *seq;
	uint32_t n_seq;
};

/* BertNormalizer's own list of CJK blocks (bert.rs, is_chinese_char). */
static bool
is_cjk(uint32_t cp)
{
	static const uint32_t block[][2] = {{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff},
		{0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};

	for (size_t i = 0; i < sizeof(block) / sizeof(block[0]); i++) {
		if (cp >= block[i][0] && cp <= block[i][1])
			return true;
	}
	return false;
}

static void
spread_runs(const uint32_t *run, uint32_t n, uint32_t bits, uint8_t *out)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t first = run[i] >> bits;
		uint32_t end = i + 1 < n ? run[i + 1] >> bits : TOK_CODE_POINTS;

		memset(out + first, (int)(run[i] & ((1u << bits) - 1)), end - first);
	}
}

static uint32_t
element(enum tok_bert_kind kind, uint32_t target)
{
	return target | (uint32_t)kind << 21;
}

/* The last steps, for one character that the others have left: lower case, then words. */
static uint32_t
finish_one(const struct making *g, uint32_t cp)
{
	uint32_t to = g->options->lowercase ? g->low[cp] : cp;
	uint32_t ccc = g->options->strip_accents ? g->ccc[cp] : 0;

	if (g->cls[to] == TOK_BERT_BLANK || g->cls[to] == TOK_BERT_CONTROL_BLANK)
		return element(TOK_BERT_SPACE, 0);
	if (g->cls[to] == TOK_BERT_PUNCT)
		return element(TOK_BERT_ALONE, to);
	return element(TOK_BERT_CHAR, to) | ccc << 24;
}

static uint32_t
several(struct making *g, const uint32_t *cp, uint32_t n)
{
	uint32_t at = g->n_seq;

	if (n == 1)
		return finish_one(g, cp[0]);
	assert(at + n <= SEQ_ROOM); /* of the tables alone: no file decides it */
	for (uint32_t i = 0; i < n; i++)
		g->seq[g->n_seq++] = finish_one(g, cp[i]);
	return element(TOK_BERT_SEQ, at << 2 | n);
}

static uint32_t
make_one(struct making *g, uint32_t cp, const struct tok_bert_strip *strip)
{
	static const uint32_t dotted_i[2] = {'i', 0x307};
	const struct tok_model_bert *o = g->options;
	enum tok_bert_class cls = (enum tok_bert_class)g->cls[cp];
	uint32_t n = 1, e;

	if (o->clean_text && (cls == TOK_BERT_CONTROL || cls == TOK_BERT_CONTROL_BLANK))
		return element(TOK_BERT_GONE, 0);
	if (o->strip_accents && cls == TOK_BERT_MARK)
		return element(g->ccc[cp] != 0 ? TOK_BERT_GONE : TOK_BERT_BARRIER, 0);
	if (o->strip_accents && cp >= HANGUL_FIRST && cp <= HANGUL_LAST)
		return element(TOK_BERT_HANGUL, 0);
	if (cp == 0x130 && o->lowercase && !o->strip_accents)
		return several(g, dotted_i, 2);
	if (o->strip_accents && strip != NULL) {
		while (n < TOK_BERT_SEQ_MAX && strip->to[n] != 0)
			n++;
		e = several(g, strip->to, n);
	} else {
		e = finish_one(g, cp);
	}
	/* CJK decompose to one character; blanks around it make it a word. */
	if (o->handle_chinese_chars && is_cjk(cp) && TOK_BERT_KIND(e) == TOK_BERT_CHAR)
		e = element(TOK_BERT_ALONE, e & TOK_BERT_TARGET);
	return e;
}

static void
make_all(struct making *g)
{
	uint32_t at = 0;

	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++)
		g->low[cp] = cp;
	for (uint32_t i = 0; i < tok_bert_lower_n; i++)
		g->low[tok_bert_lower[i].from] = tok_bert_lower[i].to;
	spread_runs(tok_bert_classes, tok_bert_classes_n, 3, g->cls);
	spread_runs(tok_bert_ccc, tok_bert_ccc_n, 8, g->ccc);
	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		const struct tok_bert_strip *strip = NULL;

		if (at < tok_bert_strip_n && tok_bert_strip[at].from == cp)
			strip = &tok_bert_strip[at++];
		g->flat[cp] = make_one(g, cp, strip);
		/* "Itself" is written as 0, so that pages of such characters are equal. */
		if (TOK_BERT_KIND(g->flat[cp]) != TOK_BERT_SEQ &&
			(g->flat[cp] & TOK_BERT_TARGET) == cp)
			g->flat[cp] &= ~TOK_BERT_TARGET;
	}
}

void
tok_bert_norm_plain(struct tok_bert_norm *t)
{
	for (uint32_t c = 1; c < 0x80; c++) {
		uint32_t e = tok_bert_element(t, c), to = e & TOK_BERT_TARGET;

		if (TOK_BERT_KIND(e) == TOK_BERT_CHAR)
			t->plain[c] = (uint8_t)(to != 0 ? to : c);
	}
}

static bool
keep(struct tok_vocab *v, struct making *g)
{
	struct tok_bert_norm *t = &v->wordpiece.norm;
	uint32_t n = 0;

	if (!tok_vocab_table_make(v, TOK_TABLE_NORM_PAGE, TOK_BERT_PAGES))
		return false;
	/* In place: a page moves down, onto one that has been looked at. */
	for (uint32_t i = 0; i < TOK_BERT_PAGES; i++)
		t->page[i] = tok_vocab_page(
			g->flat, &n, g->flat + i * TOK_BERT_PAGE, TOK_BERT_PAGE * sizeof(*g->flat));
	if (!tok_vocab_table_make(v, TOK_TABLE_NORM_ELEMENT, n * TOK_BERT_PAGE) ||
		!tok_vocab_table_make(v, TOK_TABLE_NORM_SEQ, g->n_seq + 1))
		return false;
	memcpy(t->element, g->flat, n * TOK_BERT_PAGE * sizeof(*t->element));
	memcpy(t->seq, g->seq, g->n_seq * sizeof(*t->seq));
	tok_bert_norm_plain(t);
	return true;
}

bool
tok_bert_norm_build(
	struct tok_vocab *v, const struct tok_model_bert *options, struct tok_error *err)
{
	struct making g = {
		.options = options,
		.cls = malloc(TOK_CODE_POINTS),
		.ccc = malloc(TOK_CODE_POINTS),
		.low = malloc(TOK_CODE_POINTS * sizeof(*g.low)),
		.flat = malloc(TOK_CODE_POINTS * sizeof(*g.flat)),
		.seq = malloc(SEQ_ROOM * sizeof(*g.seq)),
	};
	bool ok =
		g.cls != NULL && g.ccc != NULL && g.low != NULL && g.flat != NULL && g.seq != NULL;

	if (ok) {
		make_all(&g);
		ok = keep(v, &g);
	}
	free(g.cls);
	free(g.ccc);
	free(g.low);
	free(g.flat);
	free(g.seq);
	return ok || tok_fail(err, "out of memory for the tables of the BERT normalizer");
}
