/* SPDX-License-Identifier: BSD-3-Clause */
/* Split lines into words with libtok's scanners, or with its table of BERT's normalizer. */
#include <assert.h>
#include <string.h>

#include "corpus.h"
#include "build/model_make.h"
#include "unicode/nfc_tables.h"
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
		const uint32_t k = n_open + tok_pretok_scan(&scan, start + n_open);

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
put_char(struct train_splitter *s, uint32_t cp)
{
	uint8_t *word = train_grow(s->word, &s->room, s->n + 4, 1);

	if (word == NULL)
		return false;
	s->word = word;
	s->n += tok_utf8_encode(cp, word + s->n);
	return true;
}

/* The next starter follows, so all marks are known: sort them by class. */
static bool
settle(struct train_splitter *s)
{
	uint64_t done = 0;
	uint32_t ccc = 0;

	while (done < s->n_marks) {
		uint32_t next = UINT32_MAX;

		for (uint64_t i = 0; i < s->n_marks; i++) {
			const uint32_t c = TOK_BERT_CCC(s->mark[i]);

			next = c > ccc && c < next ? c : next;
		}
		ccc = next;
		for (uint64_t i = 0; i < s->n_marks; i++) {
			if (TOK_BERT_CCC(s->mark[i]) != ccc)
				continue;
			done++;
			if (!put_char(s, s->mark[i] & TOK_BERT_TARGET))
				return false;
		}
	}
	s->n_marks = 0;
	return true;
}

static bool
add_char(struct train_splitter *s, uint32_t cp, uint32_t ccc)
{
	uint32_t *mark;

	if (ccc == 0)
		return settle(s) && put_char(s, cp);
	mark = train_grow(s->mark, &s->room_marks, s->n_marks + 1, sizeof(*mark));
	if (mark == NULL)
		return false;
	s->mark = mark;
	mark[s->n_marks++] = cp | ccc << 24;
	return true;
}

static bool
add_hangul(struct train_splitter *s, uint32_t cp)
{
	const uint32_t at = cp - TOK_NFC_S, t = at % TOK_NFC_TS;

	return add_char(s, TOK_NFC_L + at / (TOK_NFC_VS * TOK_NFC_TS), 0) &&
	       add_char(s, TOK_NFC_V + at / TOK_NFC_TS % TOK_NFC_VS, 0) &&
	       (t == 0 || add_char(s, TOK_NFC_T + t, 0));
}

static bool
end_word(struct train_splitter *s, struct tok_error *err)
{
	bool ok = settle(s) || tok_fail(err, "out of memory for a word");
	size_t range[2] = {0, s->n};

	if (ok && s->n > 0)
		ok = train_words_add(s->words, s->word, range, 1, err);
	s->n = 0;
	return ok;
}

/* What character cp becomes, unless that is several elements. */
static bool
add_element(struct train_splitter *s, uint32_t cp, uint32_t element, struct tok_error *err)
{
	const uint32_t to = element & TOK_BERT_TARGET;
	bool ok = true;

	cp = to != 0 ? to : cp;
	switch (TOK_BERT_KIND(element)) {
	case TOK_BERT_CHAR:
		ok = add_char(s, cp, TOK_BERT_CCC(element));
		break;
	case TOK_BERT_BARRIER:
		ok = settle(s);
		break;
	case TOK_BERT_SPACE:
		return end_word(s, err);
	case TOK_BERT_ALONE:
		if (!end_word(s, err))
			return false;
		return (add_char(s, cp, 0) || tok_fail(err, "out of memory for a word")) &&
		       end_word(s, err);
	case TOK_BERT_HANGUL:
		ok = add_hangul(s, cp);
		break;
	case TOK_BERT_GONE:
	case TOK_BERT_SEQ:
		break;
	}
	return ok || tok_fail(err, "out of memory for a word");
}

/* Take the run of ASCII characters of a word in one go; no marks are waiting. */
static bool
add_plain(struct train_splitter *s, const uint8_t **p, const uint8_t *end)
{
	const uint8_t *plain = s->vocab->wordpiece.norm.plain, *from = *p, *to = from;
	uint8_t *word;

	while (to < end && plain[*to] != 0)
		to++;
	word = train_grow(s->word, &s->room, s->n + (uint64_t)(to - from), 1);
	if (word == NULL)
		return false;
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
		uint32_t cp, element, several;

		if (s->n_marks == 0 && norm->plain[*p] != 0) {
			if (!add_plain(s, &p, end))
				return tok_fail(err, "out of memory for a word");
			continue;
		}
		cp = tok_utf8_decode(p, len);
		p += len;
		element = tok_bert_element(norm, cp);
		several = TOK_BERT_KIND(element) == TOK_BERT_SEQ ? element & 3 : 0;
		if (several == 0 && !add_element(s, cp, element, err))
			return false;
		/* Elements of a sequence always have a target character. */
		for (uint32_t i = 0; i < several; i++) {
			const uint32_t at = (element & TOK_BERT_TARGET) >> 2;

			if (!add_element(s, 0, norm->seq[at + i], err))
				return false;
		}
	}
	return end_word(s, err);
}
