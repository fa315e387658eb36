/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables by code point are built from pages and ranges. Each entry equals the one computed for its
 * code point alone; equal pages are stored once.
 */

#include <stdlib.h>

#include "test.h"
#include "tables/bert_norm.h"
#include "build/parts.h"
#include "unicode/bert_tables.h"
#include "unicode/nfc_tables.h"
#include "tables/mem.h"
#include "unicode/pages.h"
#include "small_vocab.h"

/* Of the runs, the value at cp: the last that begins there or before. */
static uint32_t
value_at(const uint32_t *run, uint32_t n, uint32_t bits, uint32_t cp)
{
	uint32_t i = 0;

	while (i + 1 < n && run[i + 1] >> bits <= cp)
		i++;
	return run[i] & ((1u << bits) - 1);
}

TEST(test_classes_are_those_of_the_runs)
{
	static struct small_vocab sv;
	uint64_t seed = 1;
	uint32_t run = 0;

	small_vocab_make(&sv, &seed, "ab", 4);
	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		if (run + 1 < tok_unicode_n_runs && tok_unicode_runs[run + 1] >> TOK_GC_BITS == cp)
			run++;
		assert_int_equal(tok_cat_of(sv.v, cp), tok_gc_cat[tok_unicode_runs[run] & 31]);
	}
	small_vocab_free(&sv);
}

/* ---- BERT: the steps of bert_norm.h one after the other, on one character ---- */

struct definition {
	const struct tok_model_bert *options;
	uint8_t cls[TOK_CODE_POINTS], ccc[TOK_CODE_POINTS];
	uint32_t low[TOK_CODE_POINTS];
};

static void
define(struct definition *d)
{
	for (uint32_t cp = 0, i = 0; cp < TOK_CODE_POINTS; cp++) {
		i += i + 1 < tok_bert_classes_n && tok_bert_classes[i + 1] >> 3 == cp;
		d->cls[cp] = tok_bert_classes[i] & 7;
		d->ccc[cp] = tok_nfc_props_of(cp) & TOK_NFC_CCC;
		d->low[cp] = cp;
	}
	for (uint32_t i = 0; i < tok_bert_lower_n; i++) {
		const struct tok_bert_lower *r = &tok_bert_lower[i];

		for (uint32_t cp = r->first; cp <= r->last; cp += r->step)
			d->low[cp] = cp + (uint32_t)r->by;
	}
}

static uint32_t
element(const struct definition *d, uint32_t cp)
{
	const uint32_t to = d->options->lowercase ? d->low[cp] : cp;
	const uint32_t ccc = d->options->strip_accents ? d->ccc[cp] : 0;

	switch (d->cls[to]) {
	case TOK_BERT_BLANK:
	case TOK_BERT_CONTROL_BLANK:
		return TOK_BERT_SPACE << 21;
	case TOK_BERT_PUNCT:
		return to | TOK_BERT_ALONE << 21;
	default:
		return to | ccc << 24;
	}
}

static bool
is_cjk(uint32_t cp)
{
	return (cp >= 0x3400 && cp <= 0x4dbf) || (cp >= 0x4e00 && cp <= 0x9fff) ||
	       (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x20000 && cp <= 0x2a6df) ||
	       (cp >= 0x2a700 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
	       (cp >= 0x2f800 && cp <= 0x2fa1f);
}

/* What the character becomes, as up to three elements; how many. */
static uint32_t
becomes(const struct definition *d, uint32_t cp, uint32_t out[TOK_BERT_SEQ_MAX])
{
	const struct tok_model_bert *o = d->options;
	uint32_t n = 0, parts = 0;
	const uint32_t *part = tok_nfc_decompose(cp, &parts);

	if (o->clean_text &&
		(d->cls[cp] == TOK_BERT_CONTROL || d->cls[cp] == TOK_BERT_CONTROL_BLANK)) {
		return 0;
	} else if (o->strip_accents && d->cls[cp] == TOK_BERT_MARK) {
		if (d->ccc[cp] == 0)
			out[n++] = TOK_BERT_BARRIER << 21;
	} else if (o->strip_accents && cp >= 0xac00 && cp <= 0xd7a3) {
		out[n++] = 0x1100 + (cp - 0xac00) / 588;
		out[n++] = 0x1161 + (cp - 0xac00) / 28 % 21;
		if ((cp - 0xac00) % 28 != 0)
			out[n++] = 0x11a7 + (cp - 0xac00) % 28;
	} else if (cp == 0x130 && o->lowercase && !o->strip_accents) {
		out[n++] = element(d, 'i');
		out[n++] = element(d, 0x307);
	} else if (o->strip_accents && part != NULL) {
		for (uint32_t i = 0; i < parts; i++) {
			if (d->cls[part[i] & TOK_NFC_CP] != TOK_BERT_MARK)
				out[n++] = element(d, part[i] & TOK_NFC_CP);
		}
	} else {
		out[n++] = element(d, cp);
	}
	if (o->handle_chinese_chars && is_cjk(cp) && n == 1 &&
		TOK_BERT_KIND(out[0]) == TOK_BERT_CHAR)
		out[0] = (out[0] & TOK_BERT_TARGET) | TOK_BERT_ALONE << 21;
	return n;
}

/* What the table says. What is no character has no target. */
static uint32_t
looked_up(const struct tok_bert_norm *t, uint32_t cp, uint32_t out[TOK_BERT_SEQ_MAX])
{
	const uint32_t n = tok_bert_expand(t, cp, out);

	for (uint32_t i = 0; i < n; i++) {
		if (TOK_BERT_KIND(out[i]) == TOK_BERT_BARRIER ||
			TOK_BERT_KIND(out[i]) == TOK_BERT_SPACE)
			out[i] &= ~TOK_BERT_TARGET;
	}
	return n;
}

TEST(test_elements_of_bert_are_those_of_the_steps)
{
	struct definition *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	define(d);
	for (uint32_t flags = 0; flags < 16; flags++) {
		const struct tok_model_bert options = {
			.clean_text = flags & 1,
			.handle_chinese_chars = flags & 2,
			.strip_accents = flags & 4,
			.lowercase = flags & 8,
		};
		struct tok_vocab *v = calloc(1, sizeof(*v));
		struct tok_error err;

		assert_non_null(v);
		v->kind = TOK_KIND_WORDPIECE;
		v->pretok = TOK_PRETOK_BERT;
		v->mem = tok_mem_default;
		d->options = &options;
		assert_true(tok_bert_norm_build(v, &options, &err));
		for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
			uint32_t want[TOK_BERT_SEQ_MAX], got[TOK_BERT_SEQ_MAX];
			const uint32_t n = becomes(d, cp, want);

			if (looked_up(&v->wordpiece.norm, cp, got) != n ||
				memcmp(got, want, n * sizeof(*got)) != 0)
				fail_msg("flags %x: U+%04X is another", flags, cp);
		}
		tok_vocab_free(v);
	}
	free(d);
}

/* ---- runs and pages ---- */

TEST(test_runs_spread_at_all_borders)
{
	/* Runs that end before, at and behind borders of pages, and longer than pages. */
	static const uint32_t run[] = {0x0 << 3 | 1, 0xff << 3 | 2, 0x100 << 3 | 3, 0x101 << 3 | 1,
		0x300 << 3 | 4, 0x4ff << 3 | 5, 0x700 << 3 | 6, 0x10ffff << 3 | 7};
	const uint32_t n = sizeof(run) / sizeof(run[0]);
	struct tok_spread s;

	assert_true(tok_spread_runs(&s, (struct tok_runs){run, n, 3}));
	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++)
		assert_int_equal(tok_spread_value(&s, cp), value_at(run, n, 3, cp));
	assert_true(s.n <= 16);
	free(s.value);
}

TEST(test_equal_pages_are_kept_once)
{
	static uint8_t room[8 * TOK_PAGE];
	struct tok_page_set set = {.page = room, .bytes = TOK_PAGE};

	for (uint32_t i = 0; i < 64; i++) {
		uint8_t page[TOK_PAGE] = {0};

		page[TOK_PAGE - 1] = (uint8_t)(i % 8);
		assert_int_equal(tok_page_put(&set, page), i % 8);
	}
	assert_int_equal(set.n, 8);
}
