/* SPDX-License-Identifier: BSD-3-Clause */
/* Characters to words to ids (wordpiece.h). Hot path. */
#include "unicode/utf8.h"
#include "vocab.h"
#include "wordpiece.h"

void
tok_wordpiece_open(struct tok_stream *s)
{
	s->state = TOK_WORD_NONE;
	s->node = TOK_LONGEST_BEGIN;
	s->n_pos = 0;
	s->n_kept = 0;
	s->word.n_chars = 0;
	s->word.n_ids = 0;
	s->word.n_marks = 0;
}

/* The word is unknown, whatever follows: the rest of it is skipped. */
static void
give_up(struct tok_stream *s, uint32_t **ids)
{
	*(*ids)++ = s->vocab->wordpiece.unk;
	s->state = TOK_WORD_UNKNOWN;
	s->n_pos = 0;
}

static bool
take_char(struct tok_stream *s, uint32_t cp)
{
	const struct tok_longest *l = &s->vocab->longest;
	uint32_t *to = s->word.id + s->word.n_ids;
	uint8_t utf8[4];
	uint32_t n = tok_utf8_encode(cp, utf8);

	/* A token has a character at least: id[] holds as many as the word has characters. */
	for (uint32_t i = 0; i < n; i++) {
		if (!tok_longest_take(l, &s->node, &to, utf8[i]))
			return false;
	}
	s->word.n_ids = (uint32_t)(to - s->word.id);
	return true;
}

/*
 * The next starter follows, so all marks are known. Take them sorted by combining class, stable
 * (Unicode 16, D109). One pass per class: the marks that BERT keeps have six classes.
 */
static void
settle(struct tok_stream *s, uint32_t **ids)
{
	struct tok_open_word *word = &s->word;
	uint32_t n = word->n_marks, done = 0, ccc = 0;

	word->n_marks = 0;
	while (done < n && s->state == TOK_WORD_OPEN) {
		ccc = tok_bert_ccc_above(ccc, word->mark, n);
		for (uint32_t i = 0; i < n; i++) {
			if (TOK_BERT_CCC(word->mark[i]) != ccc)
				continue;
			done++;
			if (!take_char(s, word->mark[i] & TOK_BERT_TARGET)) {
				give_up(s, ids);
				return;
			}
		}
	}
}

/* Take a normalized character of the word. */
static void
add_char(struct tok_stream *s, uint32_t cp, uint32_t ccc, uint32_t **ids)
{
	if (s->word.n_marks > 0 && ccc == 0)
		settle(s, ids);
	if (s->state == TOK_WORD_UNKNOWN)
		return;
	s->state = TOK_WORD_OPEN;
	if (s->word.n_chars++ == s->vocab->wordpiece.max_chars) {
		give_up(s, ids);
		return;
	}
	s->n_pos += tok_utf8_bytes(cp);
	if (ccc != 0)
		s->word.mark[s->word.n_marks++] = cp | ccc << 24;
	else if (!take_char(s, cp))
		give_up(s, ids);
}

static void
end_word(struct tok_stream *s, uint32_t **ids)
{
	if (s->state == TOK_WORD_NONE)
		return;
	settle(s, ids);
	if (s->state == TOK_WORD_OPEN) {
		uint32_t *to = s->word.id + s->word.n_ids;
		bool known = true;

		while (known && s->node != TOK_LONGEST_GO_ON)
			known = tok_longest_fall_back(&s->vocab->longest, &s->node, &to);
		if (known) {
			memcpy(*ids, s->word.id, (size_t)(to - s->word.id) * sizeof(**ids));
			*ids += to - s->word.id;
		} else {
			give_up(s, ids);
		}
	}
	tok_wordpiece_open(s);
}

static void
add_any(struct tok_stream *s, uint32_t cp, uint32_t **ids)
{
	uint32_t element[TOK_BERT_SEQ_MAX];
	const uint32_t n = tok_bert_expand(&s->vocab->wordpiece.norm, cp, element);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t to = element[i] & TOK_BERT_TARGET, ccc = TOK_BERT_CCC(element[i]);
		const enum tok_bert_kind kind = TOK_BERT_KIND(element[i]);

		if (kind == TOK_BERT_BARRIER) {
			settle(s, ids);
			continue;
		}
		if (kind != TOK_BERT_CHAR)
			end_word(s, ids);
		if (kind != TOK_BERT_SPACE)
			add_char(s, to, ccc, ids);
		if (kind == TOK_BERT_ALONE)
			end_word(s, ids);
	}
}

/* Take the run of ASCII characters of a word; no marks are waiting. Returns its end. */
static const uint8_t *
add_plain(struct tok_stream *s, const uint8_t *p, const uint8_t *end, uint32_t **ids)
{
	const struct tok_wordpiece *w = &s->vocab->wordpiece;
	const struct tok_longest *l = &s->vocab->longest;
	const uint8_t *from = p;
	uint32_t node = s->node, *to = s->word.id + s->word.n_ids;
	uint32_t left = w->max_chars - s->word.n_chars;
	const uint8_t *limit = (size_t)(end - p) > left ? p + left : end;
	bool known = true;
	uint8_t c;

	while (p < limit && (c = w->norm.plain[*p]) != 0) {
		p++;
		if (!tok_longest_take(l, &node, &to, c)) {
			known = false;
			break;
		}
	}
	s->node = node;
	s->word.n_ids = (uint32_t)(to - s->word.id);
	s->word.n_chars += (uint32_t)(p - from);
	s->n_pos += (uint32_t)(p - from);
	s->state = TOK_WORD_OPEN;
	if (!known || (p < end && p == limit && w->norm.plain[*p] != 0))
		give_up(s, ids);
	return p;
}

const uint8_t *
tok_wordpiece_take(struct tok_stream *s, const uint8_t *p, const uint8_t *end, uint32_t **ids)
{
	uint32_t len;

	if (s->vocab->wordpiece.norm.plain[*p] != 0 && s->word.n_marks == 0 &&
		s->state != TOK_WORD_UNKNOWN)
		return add_plain(s, p, end, ids);
	len = tok_utf8_length(*p);
	add_any(s, tok_utf8_decode(p, len), ids);
	return p + len;
}

void
tok_wordpiece_finish(struct tok_stream *s, uint32_t **ids)
{
	end_word(s, ids);
}

uint32_t *
tok_wordpiece_word(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t *ids)
{
	for (const uint8_t *end = p + n; p < end;)
		p = tok_wordpiece_take(s, p, end, &ids);
	end_word(s, &ids);
	return ids;
}

struct tok_result
tok_wordpiece_decode(const struct tok_vocab *v, bool *begun, const uint32_t *ids, size_t n,
	uint8_t *out, size_t room)
{
	const struct tok_wordpiece *w = &v->wordpiece;
	const struct tok_unigram *u = &v->unigram;
	struct tok_result r = {.status = TOK_OK};

	for (; r.consumed < n; r.consumed++) {
		const uint32_t id = ids[r.consumed];
		struct tok_span text;

		if (id >= v->info.n_ids || v->span[id].len == 0) {
			r.status = TOK_BAD;
			r.error = TOK_ERROR_ID;
			break;
		}
		text = *begun ? w->behind[id] : w->at_start[id];
		if (text.len > room - r.produced) {
			r.status = TOK_MORE;
			break;
		}
		memcpy(out + r.produced, w->text + text.off, text.len);
		r.produced += text.len;
		*begun |= !u->norm.sentencepiece || text.len > 0 ||
			  (!u->norm.white && w->behind[id].len > 0);
	}
	return r;
}
