/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WordPiece with BERT's normalizer: what encode/wordpiece.c of lib/tokenizer does, with many
 * threads. What a word becomes does not depend on the text around it. So each thread takes the
 * words that begin in its part of the text, whatever their length.
 *
 * Combining marks are taken in the order of the text. If canonical ordering would move one, the
 * text is not plain.
 */
#pragma once

#include "classes.cuh"
#include "unicode/nfc_tables.h"

/* What a thread knows of its words. */
struct tokg_words {
	const struct tok_vocab *v;
	uint32_t *to;  /* the next id */
	uint32_t room; /* ids that there is room for: bytes of text, less characters taken */
	bool plain;    /* the text, so far */
	/* of the open word */
	uint32_t *first; /* its first id */
	uint32_t node;	 /* of the trie */
	uint32_t chars;	 /* normalized; 0: no word is open */
	uint32_t ccc;	 /* combining class of its last character */
	bool unknown;
};

TOKG_DEV void
tokg_word_open(tokg_words *w, uint32_t *to)
{
	w->to = w->first = to;
	w->node = TOK_LONGEST_BEGIN;
	w->chars = 0;
	w->ccc = 0;
	w->unknown = false;
}

TOKG_DEV void
tokg_word_close(tokg_words *w)
{
	while (!w->unknown && w->chars > 0 && w->node != TOK_LONGEST_GO_ON)
		w->unknown = !tok_longest_fall_back(&w->v->longest, &w->node, &w->to);
	if (w->unknown) {
		while (w->to > w->first)
			*--w->to = TOK_NO_TOKEN;
		*w->to++ = w->v->wordpiece.unk;
	}
	tokg_word_open(w, w->to);
}

/* Take a normalized character. A token has at least one: there is room for the ids. */
TOKG_DEV void
tokg_word_char(tokg_words *w, uint32_t cp, uint32_t ccc)
{
	uint8_t utf8[4];
	uint32_t n;

	/* Of a word that has failed, too: in their order the marks might not fail it. */
	w->plain &= ccc == 0 || ccc >= w->ccc;
	w->ccc = ccc;
	if (w->unknown)
		return;
	w->plain &= w->room > 0;
	if (!w->plain)
		return;
	w->room--;
	w->unknown = w->chars++ == w->v->wordpiece.max_chars;
	n = tok_utf8_encode(cp, utf8);
	for (uint32_t i = 0; i < n && !w->unknown; i++)
		w->unknown = !tok_longest_take(&w->v->longest, &w->node, &w->to, utf8[i]);
}

/* What character cp becomes, unless that is several elements. */
TOKG_DEV void
tokg_word_element(tokg_words *w, uint32_t cp, uint32_t element)
{
	const uint32_t to = element & TOK_BERT_TARGET;
	uint32_t letter[3], n;

	cp = to != 0 ? to : cp;
	switch (TOK_BERT_KIND(element)) {
	case TOK_BERT_CHAR:
		tokg_word_char(w, cp, TOK_BERT_CCC(element));
		break;
	case TOK_BERT_BARRIER:
		w->ccc = 0;
		break;
	case TOK_BERT_SPACE:
		tokg_word_close(w);
		break;
	case TOK_BERT_ALONE:
		tokg_word_close(w);
		tokg_word_char(w, cp, 0);
		tokg_word_close(w);
		break;
	case TOK_BERT_HANGUL:
		n = tok_nfc_letters(cp, letter);
		for (uint32_t i = 0; i < n; i++)
			tokg_word_char(w, letter[i], 0);
		break;
	case TOK_BERT_GONE:
	case TOK_BERT_SEQ:
		break;
	}
}

/* Take a character of the text, of len bytes. */
TOKG_DEV void
tokg_word_take(tokg_words *w, uint32_t cp, uint32_t len)
{
	const struct tok_bert_norm *const norm = &w->v->wordpiece.norm;
	const uint32_t element = tok_bert_element(norm, cp);

	w->room += len;
	if (TOK_BERT_KIND(element) != TOK_BERT_SEQ) {
		tokg_word_element(w, cp, element);
		return;
	}
	for (uint32_t i = 0; i < (element & 3); i++)
		tokg_word_element(w, 0, norm->seq[((element & TOK_BERT_TARGET) >> 2) + i]);
}

/* Category of the character that begins at `at`: what it is to words (tables/bert_norm.h). */
TOKG_DEV enum tok_cat
tokg_word_cat(const struct tokg_arrays *a, uint32_t at)
{
	return (enum tok_cat)(a->of_class[at] & 7);
}

/* The same of the character before; a text begins as if after a blank. */
TOKG_DEV enum tok_cat
tokg_word_cat_before(const struct tokg_text *t, const struct tokg_arrays *a, uint32_t at)
{
	return at == 0 ? TOK_CAT_SPACE : tokg_word_cat(a, at - 1 - tokg_behind_lead(t, at - 1));
}

/*
 * Take the words that begin in [from, to). Their ids lie side by side in id[], from the first byte
 * of the first one on: before the words of the next part.
 */
TOKG_DEV void
tokg_words_take(tokg_words *w, const struct tokg_text *t, const struct tokg_arrays *a,
	uint32_t from, uint32_t to)
{
	enum tok_cat before;
	bool own = false; /* the word at `at` began here */
	uint32_t at = from;

	while (at < to && (t->bytes[at] & 0xc0) == 0x80)
		at++;
	before = tokg_word_cat_before(t, a, at);
	while (at < t->n && (at < to || own)) {
		const uint32_t len = tok_utf8_length(t->bytes[at]);
		const enum tok_cat cat = tokg_word_cat(a, at);

		if (cat != TOK_CAT_OTHER || before != TOK_CAT_OTHER) {
			if (own)
				tokg_word_close(w);
			own = at < to && cat != TOK_CAT_SPACE;
			if (own && w->to == NULL)
				tokg_word_open(w, a->id + at);
		}
		if (own)
			tokg_word_take(w, tok_utf8_decode(t->bytes + at, len), len);
		before = cat;
		at += len;
	}
	if (own)
		tokg_word_close(w);
}

/* All words of a text whose characters have classes. False: it is not plain. */
TOKG_DEV bool
tokg_wordpiece_words(tokg_block *b, const struct tok_vocab *v, const struct tokg_text *t,
	const struct tokg_arrays *a)
{
	const uint32_t part = (t->n + b->n - 1) / b->n, from = b->tid * part;
	tokg_words w = {};

	w.v = v;
	w.plain = true;
	if (from < t->n)
		tokg_words_take(&w, t, a, from, t->n - from < part ? t->n : from + part);
	return tokg_sum(b, !w.plain) == 0;
}
