/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BertNormalizer and BertPreTokenizer as one table: what each code point becomes with the options
 * of a vocabulary. In the reference the steps are passes over the whole text: clean, separate CJK,
 * NFD, remove marks, lower case, split. Each step treats characters one by one. The only exception
 * is the canonical ordering of NFD, which moves only nonstarters, and never across a starter.
 */
#pragma once

#include "unicode/classes.h"
#include "unicode/nfc_tables.h"

/* An element: target code point (0: the character itself) | kind << 21 | combining class << 24. */
enum tok_bert_kind {
	TOK_BERT_CHAR = 0,    /* belongs to a word */
	TOK_BERT_GONE = 1,    /* is removed */
	TOK_BERT_BARRIER = 2, /* a starter removed after ordering: marks do not move across it */
	TOK_BERT_SPACE = 3,   /* ends a word */
	TOK_BERT_ALONE = 4,   /* a word of its own */
	TOK_BERT_SEQ = 5,     /* several elements: target is their index in seq[] << 2 | number */
	TOK_BERT_HANGUL = 6,  /* a syllable, to be decomposed */
};
#define TOK_BERT_TARGET 0x1fffffu
#define TOK_BERT_KIND(element) ((enum tok_bert_kind)((element) >> 21 & 7))
#define TOK_BERT_CCC(element) ((element) >> 24)

#define TOK_BERT_SEQ_MAX 3 /* most elements that one code point becomes */

struct tok_bert_norm {
	uint8_t plain[256]; /* ASCII that belongs to a word: what it becomes; else 0 */
	uint16_t *page;	    /* by code point / 256: index of a page of 256 in `element` */
	uint32_t *element;  /* equal pages are stored once */
	uint32_t *seq;
};

/*
 * The category by which pretokens are found, tok_vocab.cat: TOK_CAT_SPACE ends a word,
 * TOK_CAT_SYMBOL is one of its own, TOK_CAT_OTHER is part of one, or becomes several elements.
 */
TOK_INLINE enum tok_cat
tok_bert_cat(uint32_t element)
{
	switch (TOK_BERT_KIND(element)) {
	case TOK_BERT_SPACE:
		return TOK_CAT_SPACE;
	case TOK_BERT_ALONE:
		return TOK_CAT_SYMBOL;
	default:
		return TOK_CAT_OTHER;
	}
}

TOK_INLINE uint32_t
tok_bert_element(const struct tok_bert_norm *t, uint32_t cp)
{
	return t->element[(uint32_t)t->page[cp >> 8] << 8 | (cp & 255)];
}

/*
 * What character cp becomes: out[0 .. n), each TOK_BERT_CHAR, _BARRIER, _SPACE or _ALONE, with its
 * target. Returns n, which is 0 for one that is removed.
 */
TOK_INLINE uint32_t
tok_bert_expand(const struct tok_bert_norm *t, uint32_t cp, uint32_t out[TOK_BERT_SEQ_MAX])
{
	const uint32_t element = tok_bert_element(t, cp), target = element & TOK_BERT_TARGET;
	uint32_t n = 0;

	switch (TOK_BERT_KIND(element)) {
	case TOK_BERT_GONE:
		return 0;
	case TOK_BERT_HANGUL:
		return tok_nfc_letters(cp, out);
	case TOK_BERT_SEQ: /* elements of a sequence have a target */
		for (; n < (element & 3); n++)
			out[n] = t->seq[(target >> 2) + n];
		return n;
	default:
		out[0] = target != 0 ? element : element | cp;
		return 1;
	}
}

/* The lowest combining class above `ccc` of n marks, or UINT32_MAX. */
TOK_INLINE uint32_t
tok_bert_ccc_above(uint32_t ccc, const uint32_t *mark, size_t n)
{
	uint32_t next = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		const uint32_t c = TOK_BERT_CCC(mark[i]);

		next = c > ccc && c < next ? c : next;
	}
	return next;
}
