/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the table of bert_norm.h from the properties of characters. Set-up only. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "unicode/bert_tables.h"
#include "unicode/nfc_tables.h"
#include "build/parts.h"
#include "unicode/pages.h"
#include "build/vocab_table.h"

#define SEQ_ROOM 4096u /* elements; only a few hundred characters become several */

#define HANGUL_FIRST 0xac00u
#define HANGUL_LAST 0xd7a3u

/* BertNormalizer's own list of CJK blocks (bert.rs, is_chinese_char). */
const uint32_t tok_bert_cjk[TOK_BERT_CJK_BLOCKS][2] = {{0x3400, 0x4dbf}, {0x4e00, 0x9fff},
	{0xf900, 0xfaff}, {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
	{0x2f800, 0x2fa1f}};

/* Code points whose element may differ from the one before. Only these are computed. */
struct fresh {
	uint64_t bit[TOK_CODE_POINTS / 64];
	bool page[TOK_PAGES]; /* the page has such code points */
};

struct making {
	const struct tok_model_bert *options;
	bool punctuation;      /* each is a word */
	struct tok_spread cls; /* enum tok_bert_class */
	uint32_t *low; /* pages: lower case by code point; in the first page every character maps to
			  itself */
	uint16_t low_page[TOK_PAGES];
	struct fresh *fresh;
	struct tok_page_set elements;
	uint32_t *seq;
	uint32_t n_seq;
};

bool
tok_bert_is_cjk(uint32_t cp)
{
	for (size_t i = 0; i < TOK_BERT_CJK_BLOCKS; i++) {
		if (cp >= tok_bert_cjk[i][0] && cp <= tok_bert_cjk[i][1])
			return true;
	}
	return false;
}

static uint32_t
lower(const struct making *g, uint32_t cp)
{
	const uint32_t page = g->low_page[cp / TOK_PAGE];

	return page == 0 ? cp : g->low[page * TOK_PAGE + cp % TOK_PAGE];
}

static enum tok_bert_class
class_of(const struct making *g, uint32_t cp)
{
	return (enum tok_bert_class)tok_spread_value(&g->cls, cp);
}

/* By its index among those there are, which orders marks as well. */
static uint32_t
combining_class(uint32_t cp)
{
	return tok_nfc_props_of(cp) & TOK_NFC_CCC;
}

static uint32_t
element(enum tok_bert_kind kind, uint32_t target)
{
	return target | (uint32_t)kind << 21;
}

/* The last steps for one character: lower case, then splitting into words. */
static uint32_t
finish_one(const struct making *g, uint32_t cp)
{
	uint32_t to = g->options->lowercase ? lower(g, cp) : cp;
	uint32_t ccc = g->options->strip_accents ? combining_class(cp) : 0;
	enum tok_bert_class cls = class_of(g, to);

	if (cls == TOK_BERT_BLANK || cls == TOK_BERT_CONTROL_BLANK)
		return element(TOK_BERT_SPACE, 0);
	if (cls == TOK_BERT_PUNCT && g->punctuation)
		return element(TOK_BERT_ALONE, to);
	return element(TOK_BERT_CHAR, to) | ccc << 24;
}

static uint32_t
several(struct making *g, const uint32_t *cp, uint32_t n)
{
	uint32_t at = g->n_seq;

	if (n == 1)
		return finish_one(g, cp[0]);
	assert(at + n <= SEQ_ROOM); /* depends only on the built-in tables, not on a file */
	for (uint32_t i = 0; i < n; i++)
		g->seq[g->n_seq++] = finish_one(g, cp[i]);
	return element(TOK_BERT_SEQ, at << 2 | n);
}

/* The canonical decomposition of a code point without its marks; 0 parts if it has none. */
static uint32_t
strip(const struct making *g, uint32_t cp, uint32_t *to)
{
	uint32_t parts = 0, n = 0;
	const uint32_t *part = tok_nfc_decompose(cp, &parts);

	for (uint32_t i = 0; i < parts; i++) {
		const uint32_t c = part[i] & TOK_NFC_CP;

		if (class_of(g, c) == TOK_BERT_MARK)
			continue;
		assert(n < TOK_BERT_SEQ_MAX); /* as above */
		to[n++] = c;
	}
	return n;
}

static uint32_t
make_one(struct making *g, uint32_t cp)
{
	static const uint32_t dotted_i[2] = {'i', 0x307};
	const struct tok_model_bert *o = g->options;
	enum tok_bert_class cls = class_of(g, cp);
	uint32_t to[TOK_BERT_SEQ_MAX], n, e;

	if (o->clean_text && (cls == TOK_BERT_CONTROL || cls == TOK_BERT_CONTROL_BLANK))
		return element(TOK_BERT_GONE, 0);
	if (o->strip_accents && cls == TOK_BERT_MARK)
		return element(combining_class(cp) != 0 ? TOK_BERT_GONE : TOK_BERT_BARRIER, 0);
	if (o->strip_accents && cp >= HANGUL_FIRST && cp <= HANGUL_LAST)
		return element(TOK_BERT_HANGUL, 0);
	if (cp == 0x130 && o->lowercase && !o->strip_accents)
		return several(g, dotted_i, 2);
	n = o->strip_accents ? strip(g, cp, to) : 0;
	e = n > 0 ? several(g, to, n) : finish_one(g, cp);
	/* CJK decompose to one character; blanks around it make it a word. */
	if (o->handle_chinese_chars && TOK_BERT_KIND(e) == TOK_BERT_CHAR && tok_bert_is_cjk(cp))
		e = element(TOK_BERT_ALONE, e & TOK_BERT_TARGET);
	/* "Itself" is written as 0, so that pages of such characters are equal. */
	if (TOK_BERT_KIND(e) != TOK_BERT_SEQ && (e & TOK_BERT_TARGET) == cp)
		e &= ~TOK_BERT_TARGET;
	return e;
}

/* ---- what differs from the code point before ---- */

static void
mark(struct fresh *f, uint32_t cp)
{
	f->bit[cp / 64] |= 1ull << cp % 64;
	f->page[cp / TOK_PAGE] = true;
}

static void
mark_block(struct fresh *f, uint32_t first, uint32_t last)
{
	mark(f, first);
	mark(f, last + 1);
}

/* Everything that make_one depends on. */
static void
mark_all(struct fresh *f)
{
	for (uint32_t i = 0; i < tok_bert_classes_n; i++)
		mark(f, tok_bert_classes[i] >> TOK_BERT_CLASS_BITS);
	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		if (tok_nfc_page[cp >> 8] == 0)
			cp |= 255; /* on with the next page */
		else if (combining_class(cp) != 0)
			mark_block(f, cp, cp);
	}
	for (uint32_t i = 0; i < 1u << TOK_NFC_DECOMP_BITS; i++) {
		const uint32_t cp = (uint32_t)(tok_nfc_decomp[i] >> 24); /* 0: free */

		mark_block(f, cp, cp);
	}
	for (uint32_t i = 0; i < tok_bert_lower_n; i++) {
		const struct tok_bert_lower *run = &tok_bert_lower[i];

		for (uint32_t cp = run->first; cp <= run->last; cp += run->step)
			mark_block(f, cp, cp);
	}
	mark_block(f, 0x130, 0x130); /* the dotted I */
	mark_block(f, HANGUL_FIRST, HANGUL_LAST);
	for (size_t i = 0; i < TOK_BERT_CJK_BLOCKS; i++)
		mark_block(f, tok_bert_cjk[i][0], tok_bert_cjk[i][1]);
}

/* ---- the tables ---- */

static bool
spread_lower(struct making *g)
{
	uint32_t n = 0, at = TOK_PAGES;

	for (uint32_t i = 0; i < tok_bert_lower_n; i++) {
		const struct tok_bert_lower *run = &tok_bert_lower[i];

		for (uint32_t p = run->first / TOK_PAGE; p <= run->last / TOK_PAGE; p++) {
			n += p != at;
			at = p;
			g->low_page[p] = (uint16_t)n;
		}
	}
	g->low = malloc((n + (size_t)1) * TOK_PAGE * sizeof(*g->low));
	if (g->low == NULL)
		return false;
	for (uint32_t p = 0; p < TOK_PAGES; p++) {
		for (uint32_t i = 0; g->low_page[p] != 0 && i < TOK_PAGE; i++)
			g->low[g->low_page[p] * TOK_PAGE + i] = p * TOK_PAGE + i;
	}
	for (uint32_t i = 0; i < tok_bert_lower_n; i++) {
		const struct tok_bert_lower *run = &tok_bert_lower[i];

		for (uint32_t cp = run->first; cp <= run->last; cp += run->step)
			g->low[g->low_page[cp / TOK_PAGE] * TOK_PAGE + cp % TOK_PAGE] =
				cp + (uint32_t)run->by;
	}
	return true;
}

static bool
prepare(struct making *g)
{
	const struct tok_runs classes = {tok_bert_classes, tok_bert_classes_n, TOK_BERT_CLASS_BITS};
	size_t pages = 0;

	g->fresh = calloc(1, sizeof(*g->fresh));
	g->seq = malloc(SEQ_ROOM * sizeof(*g->seq));
	if (g->fresh == NULL || g->seq == NULL || !tok_spread_runs(&g->cls, classes) ||
		!spread_lower(g))
		return false;
	mark_all(g->fresh);
	for (uint32_t p = 0; p < TOK_PAGES; p++)
		pages += p == 0 || g->fresh->page[p] || g->fresh->page[p - 1];
	g->elements.bytes = TOK_PAGE * sizeof(uint32_t);
	g->elements.page = malloc(pages * g->elements.bytes);
	return g->elements.page != NULL;
}

/* Fill a page from code point `first` on. `last`: element of the code point before. Returns the
 * last element of the page. */
static uint32_t
make_page(struct making *g, uint32_t first, uint32_t last, uint32_t *e)
{
	uint32_t done = 0;

	for (uint32_t w = 0; w < TOK_PAGE / 64; w++) {
		uint64_t bits = g->fresh->bit[first / 64 + w];

		for (; bits != 0; bits &= bits - 1) {
			const uint32_t at = 64 * w + (uint32_t)__builtin_ctzll(bits);

			while (done < at)
				e[done++] = last;
			last = make_one(g, first + at);
		}
	}
	while (done < TOK_PAGE)
		e[done++] = last;
	return last;
}

static void
make_all(struct making *g, uint16_t *page)
{
	const bool *fresh = g->fresh->page;
	uint32_t e[TOK_PAGE], last = 0;

	for (uint32_t p = 0; p < TOK_PAGES; p++) {
		if (p > 0 && !fresh[p] && !fresh[p - 1]) {
			page[p] = page[p - 1];
			continue;
		}
		last = make_page(g, p * TOK_PAGE, last, e);
		page[p] = tok_page_put(&g->elements, e);
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
keep(struct tok_vocab *v, const struct making *g)
{
	struct tok_bert_norm *t = &v->wordpiece.norm;

	if (!tok_vocab_table_make(v, TOK_TABLE_NORM_ELEMENT, g->elements.n * TOK_PAGE) ||
		!tok_vocab_table_make(v, TOK_TABLE_NORM_SEQ, g->n_seq + 1) ||
		!tok_vocab_table_make(v, TOK_TABLE_CAT_PAGE, TOK_PAGES) ||
		!tok_vocab_table_make(v, TOK_TABLE_CAT, g->elements.n * TOK_PAGE))
		return false;
	memcpy(t->element, g->elements.page, g->elements.n * g->elements.bytes);
	memcpy(t->seq, g->seq, g->n_seq * sizeof(*t->seq));
	memcpy(v->cat_page, t->page, TOK_PAGES * sizeof(*t->page));
	for (uint32_t i = 0; i < g->elements.n * TOK_PAGE; i++)
		v->cat[i] = (uint8_t)tok_bert_cat(t->element[i]);
	tok_bert_norm_plain(t);
	return true;
}

bool
tok_bert_norm_build(
	struct tok_vocab *v, const struct tok_model_bert *options, struct tok_error *err)
{
	struct making g = {.options = options, .punctuation = v->pretok == TOK_PRETOK_BERT};
	bool ok = tok_vocab_table_make(v, TOK_TABLE_NORM_PAGE, TOK_PAGES) && prepare(&g);

	if (ok) {
		make_all(&g, v->wordpiece.norm.page);
		ok = keep(v, &g);
	}
	free(g.cls.value);
	free(g.low);
	free(g.fresh);
	free(g.elements.page);
	free(g.seq);
	return ok || tok_fail(err, "out of memory for the tables of the BERT normalizer");
}
