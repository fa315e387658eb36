/* SPDX-License-Identifier: BSD-3-Clause */
/* Split lines into words with libtok's scanners, or with its table of BERT's normalizer. */
#include <assert.h>
#include <string.h>

#include "corpus.h"
#include "build/model_make.h"
#include "pretokenize/pretok.h"
#include "unicode/utf8.h"
#include "encode/wordpiece.h"

struct tok_vocab *
train_splitter_vocab(const struct tok_train_options *o, struct tok_error *err)
{
	const bool bert = o->kind == TOK_KIND_WORDPIECE;
	struct tok_model m = {
		.format = "", .kind = o->kind, .pretok = bert ? TOK_PRETOK_BERT : o->pretok};
	struct tok_vocab *v = NULL;

	m.bert = (struct tok_model_bert){
		.clean_text = o->clean_text,
		.handle_chinese_chars = o->handle_chinese_chars,
		.lowercase = o->lowercase,
		.strip_accents = o->strip_accents < 0 ? o->lowercase : o->strip_accents != 0,
		.max_chars = 1,
	};
	if (!tok_model_init(&m, TOK_BYTES, TOK_BYTES, 0, err))
		return NULL;
	for (uint32_t i = 0; i < TOK_BYTES; i++) {
		const uint8_t byte = (uint8_t)i;

		if (!bert || i == 'a') /* WordPiece needs some token */
			tok_model_put(&m, i, &byte, 1, false);
	}
	m.bert.unk = 'a';
	v = tok_vocab_build(&m, "", "", NULL, err);
	tok_model_free(&m);
	return v;
}

bool
train_split_bytes(struct train_splitter *s, const uint8_t *line, size_t n, struct tok_error *err)
{
	struct tok_pretok_scan scan = {.v = s->vocab, .text = line, .n = n, .last = true};
	size_t start[1 + TOK_SCAN_BLOCK]; /* the first is that of the open word */
	uint32_t n_open = 0;

	static_assert(TRAIN_WORDS_MAX >= TOK_SCAN_BLOCK, "those of a block are counted in one go");
	while (scan.at < n) {
		const uint32_t k = n_open + tok_pretok_scan(&scan, start + n_open, TOK_SCAN_BLOCK);

		if (k == 0)
			continue;
		if (!train_words_add(s->words, line, start, k - 1, err))
			return false;
		start[0] = start[k - 1];
		n_open = 1;
	}
	start[1] = n;
	return n_open == 0 || train_words_add(s->words, line, start, 1, err);
}

/* ---- BERT: as in wordpiece.c, but characters are stored instead of looked up ---- */

static bool
put_char(struct train_splitter *s, uint32_t cp, struct tok_error *err)
{
	uint8_t *word = train_grow(s->word, &s->room, s->n + 4, 1);

	if (word == NULL)
		return tok_fail(err, "out of memory for a word");
	s->word = word;
	s->n += tok_utf8_encode(cp, word + s->n);
	return true;
}

/* The next starter follows, so all marks are known: sort them by class. */
static bool
settle(struct train_splitter *s, struct tok_error *err)
{
	uint64_t done = 0;
	uint32_t ccc = 0;

	while (done < s->n_marks) {
		ccc = tok_bert_ccc_above(ccc, s->mark, s->n_marks);
		for (uint64_t i = 0; i < s->n_marks; i++) {
			if (TOK_BERT_CCC(s->mark[i]) != ccc)
				continue;
			done++;
			if (!put_char(s, s->mark[i] & TOK_BERT_TARGET, err))
				return false;
		}
	}
	s->n_marks = 0;
	return true;
}

static bool
add_char(struct train_splitter *s, uint32_t cp, uint32_t ccc, struct tok_error *err)
{
	uint32_t *mark;

	if (ccc == 0)
		return settle(s, err) && put_char(s, cp, err);
	mark = train_grow(s->mark, &s->room_marks, s->n_marks + 1, sizeof(*mark));
	if (mark == NULL)
		return tok_fail(err, "out of memory for a word");
	s->mark = mark;
	mark[s->n_marks++] = cp | ccc << 24;
	return true;
}

static bool
end_word(struct train_splitter *s, struct tok_error *err)
{
	bool ok = settle(s, err);
	size_t range[2] = {0, s->n};

	if (ok && s->n > 0)
		ok = train_words_add(s->words, s->word, range, 1, err);
	s->n = 0;
	return ok;
}

static bool
add_any(struct train_splitter *s, uint32_t cp, struct tok_error *err)
{
	uint32_t element[TOK_BERT_SEQ_MAX];
	const uint32_t n = tok_bert_expand(&s->vocab->wordpiece.norm, cp, element);
	bool ok = true;

	for (uint32_t i = 0; ok && i < n; i++) {
		const uint32_t to = element[i] & TOK_BERT_TARGET, ccc = TOK_BERT_CCC(element[i]);
		const enum tok_bert_kind kind = TOK_BERT_KIND(element[i]);

		if (kind == TOK_BERT_BARRIER)
			ok = settle(s, err);
		else
			ok = (kind == TOK_BERT_CHAR || end_word(s, err)) &&
			     (kind == TOK_BERT_SPACE || add_char(s, to, ccc, err)) &&
			     (kind != TOK_BERT_ALONE || end_word(s, err));
	}
	return ok;
}

/* Take the run of ASCII characters of a word in one go; no marks are waiting. */
static bool
add_plain(struct train_splitter *s, const uint8_t **p, const uint8_t *end, struct tok_error *err)
{
	const uint8_t *plain = s->vocab->wordpiece.norm.plain, *from = *p, *to = from;
	uint8_t *word;

	while (to < end && plain[*to] != 0)
		to++;
	word = train_grow(s->word, &s->room, s->n + (uint64_t)(to - from), 1);
	if (word == NULL)
		return tok_fail(err, "out of memory for a word");
	s->word = word;
	for (; from < to; from++)
		word[s->n++] = plain[*from];
	*p = to;
	return true;
}

bool
train_split_bert(struct train_splitter *s, const uint8_t *line, size_t n, struct tok_error *err)
{
	const struct tok_bert_norm *norm = &s->vocab->wordpiece.norm;
	const uint8_t *p = line, *end = line + n;

	while (p < end) {
		const uint32_t len = tok_utf8_length(*p);
		bool ok;

		if (s->n_marks == 0 && norm->plain[*p] != 0) {
			ok = add_plain(s, &p, end, err);
		} else {
			ok = add_any(s, tok_utf8_decode(p, len), err);
			p += len;
		}
		if (!ok)
			return false;
	}
	return end_word(s, err);
}
