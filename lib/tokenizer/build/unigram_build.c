/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables of unigram.h, and the texts that ids decode to. Set-up only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "encode/unigram.h"
#include "model_make.h"
#include "parts.h"
#include "unicode/utf8.h"
#include "vocab_table.h"

#define MARK "\xe2\x96\x81" /* U+2581 */
#define MARK_BYTES 3
#define UNK_PENALTY 10.0 /* models/unigram/model.rs, K_UNK_PENALTY */

/* ---- pieces ---- */

/* Can this piece occur in a word? With `split` a blank can only be its first byte. */
static bool
is_in_words(const struct tok_model *m, const struct tok_model_token *t)
{
	return t->len > 0 && !t->outside &&
	       !(m->unigram.split && t->len > 1 &&
		       memchr(m->bytes + t->off + 1, ' ', t->len - 1) != NULL);
}

static bool
list_pieces(
	const struct tok_model *m, struct tok_trie_word *word, uint32_t *n, struct tok_error *err)
{
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];

		if (!is_in_words(m, t))
			continue;
		if (t->len >= TOK_PIECE_BYTES_MAX)
			return tok_fail(err, "token %u has %u bytes, the limit for Unigram is %u",
				id, t->len, TOK_PIECE_BYTES_MAX - 1);
		/* Paths of the lattice lead from character to character. */
		if (tok_utf8_scan(m->bytes + t->off, t->len).valid != t->len)
			return tok_fail(err, "token %u is not UTF-8", id);
		if (!isfinite(m->unigram.score[id]))
			return tok_fail(err, "token %u has a score that is no finite number", id);
		word[(*n)++] = (struct tok_trie_word){m->bytes + t->off, t->len, id, 0, 0};
	}
	return true;
}

static double
least_score(const struct tok_model *m)
{
	double least = m->unigram.score[0];

	for (uint32_t id = 1; id < m->unigram.n_pieces; id++) {
		if (m->unigram.score[id] < least)
			least = m->unigram.score[id];
	}
	return least;
}

static bool
build_pieces(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	struct tok_trie_word *word = calloc(m->n_tokens + (size_t)1, sizeof(*word));
	uint32_t n = 0;
	bool ok = word != NULL || tok_fail(err, "out of memory for %u tokens", m->n_tokens);

	ok = ok && list_pieces(m, word, &n, err) && tok_automaton_build(v, word, n, err);
	if (ok)
		v->node[0].score = m->unigram.sentencepiece ? m->unigram.unknown
							    : least_score(m) - UNK_PENALTY;
	for (uint32_t at = 0; ok && at < v->n_nodes; at++) {
		if (v->node[at].token != TOK_NO_TOKEN)
			v->node[at].score = m->unigram.score[v->node[at].token];
	}
	free(word);
	return ok;
}

/* ---- what is unknown ---- */

/* Is p[0 .. n) a repetition of the unknown token's text? */
static bool
repeats(const struct tok_model *m, const uint8_t *p, uint32_t n)
{
	const struct tok_model_token *unk = &m->token[m->unigram.unk];

	for (; n >= unk->len; p += unk->len, n -= unk->len) {
		if (memcmp(p, m->bytes + unk->off, unk->len) != 0)
			return false;
	}
	return n == 0;
}

/*
 * The reference looks up each run of unknown characters as one text. Here this is not done, so it
 * must never be a piece. It is not, because the path through the piece would have a higher score.
 * This needs a score below zero for unknown characters, and no piece that may contain the unknown
 * token's text.
 */
static bool
check_unknown(const struct tok_model *m, struct tok_error *err)
{
	const struct tok_model_token *unk = &m->token[m->unigram.unk];
	const double score = m->unigram.score[m->unigram.unk];

	if (m->unigram.sentencepiece)
		return true; /* it looks up nothing, and this text is not a piece */
	if (least_score(m) >= UNK_PENALTY)
		return tok_fail(err, "scores above %.0f alone are not implemented", UNK_PENALTY);
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];
		const uint8_t *bytes = m->bytes + t->off;

		if (t->outside || t->len <= unk->len)
			continue;
		if (repeats(m, bytes, t->len) ||
			(score > 0 && memmem(bytes, t->len, m->bytes + unk->off, unk->len) != NULL))
			return tok_fail(err,
				"token %u has the text of the unknown token in it: not implemented",
				id);
	}
	return true;
}

/* In a .model: pieces of type BYTE. Returns how many of the 256 bytes there are. */
static uint32_t
find_byte_pieces(struct tok_vocab *v, const struct tok_model *m)
{
	uint32_t n = 0;

	memset(v->ext, 0xff, TOK_BYTES * sizeof(*v->ext));
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		uint32_t *ext = &v->ext[m->bytes[m->token[id].off]];

		if (!m->token[id].byte)
			continue;
		n += *ext == TOK_NO_TOKEN;
		*ext = id;
	}
	return n;
}

/* Find the ids of the 256 bytes. *n: how many there are. */
static bool
find_bytes(struct tok_vocab *v, const struct tok_model *m, uint32_t *n, struct tok_error *err)
{
	struct tok_index x;

	if (!tok_vocab_table_make(v, TOK_TABLE_EXT, TOK_BYTES))
		return tok_fail(err, "out of memory for bytes");
	if (m->unigram.sentencepiece) {
		*n = find_byte_pieces(v, m);
		return true;
	}
	if (!tok_index_init(&x, m, err))
		return tok_fail(err, "out of memory for bytes");
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		if (!m->token[id].outside && m->token[id].len == 6)
			tok_index_add(&x, id);
	}
	for (uint32_t byte = 0; byte < TOK_BYTES; byte++) {
		char name[8];

		snprintf(name, sizeof(name), "<0x%02X>", byte);
		v->ext[byte] = tok_index_find(&x, (const uint8_t *)name, 6);
		*n += v->ext[byte] != TOK_NO_TOKEN;
	}
	tok_index_free(&x);
	return true;
}

/*
 * Unknown characters become bytes if all bytes are tokens. With only some of them, the reference's
 * result depends on the whole run of unknown characters.
 */
static bool
build_fallback(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	const struct tok_model_token *unk = &m->token[m->unigram.unk];
	uint32_t n = 0, shortest = 0;

	v->unigram.byte_fallback = m->unigram.byte_fallback;
	if (!m->unigram.byte_fallback)
		return true;
	if (!find_bytes(v, m, &n, err))
		return false;
	if (n == 0 && !m->unigram.sentencepiece) {
		v->unigram.byte_fallback = false;
		memset(v->ext, 0, TOK_BYTES * sizeof(*v->ext));
		return true;
	}
	if (n < TOK_BYTES)
		return tok_fail(err,
			"byte_fallback with %u of the tokens <0x00> to <0xFF> is not implemented "
			"(implemented: with all%s)",
			n, m->unigram.sentencepiece ? "" : ", or none");
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];

		shortest += !t->outside && t->len == 1 && m->bytes[t->off] == ' ';
	}
	if (m->unigram.blanks &&
		(shortest == 0 || memchr(m->bytes + unk->off, ' ', unk->len) != NULL))
		return tok_fail(err,
			"byte_fallback of blanks is not implemented: U+2581 is to be a "
			"token, and not in the unknown one");
	return true;
}

/* ---- decoding ---- */

/* The text of a token as decoders get it: with U+2581, or with blanks in its place. */
struct text {
	const uint8_t *p;
	uint32_t len;
	bool has_blanks;
	bool as_it_is; /* keep U+2581 */
	bool leads;    /* only the leading blank may be dropped */
	uint8_t normal[TOK_ADDED_BYTES_MAX];
};

/* A normalized added token decodes to its normal form (added_vocabulary.rs). */
static bool
find_text(const struct tok_vocab *v, const struct tok_model *m, const uint32_t *added, uint32_t id,
	struct text *text, struct tok_error *err)
{
	const struct tok_model_token *t = &m->token[id];
	const struct tok_model_added *a;
	size_t len;

	text->p = m->bytes + t->off;
	text->len = t->len;
	text->has_blanks = m->unigram.blanks && !t->outside && !t->byte;
	text->leads = m->unigram.sentencepiece;
	text->as_it_is = m->unigram.sentencepiece && id == m->unigram.unk;
	if (text->as_it_is) {
		text->p = m->bytes + m->unigram.unk_text.off;
		text->len = m->unigram.unk_text.len;
		text->has_blanks = false;
	}
	if (added[id] == 0 || !v->unigram.norm.on)
		return true;
	a = &m->added[added[id] - 1];
	if (!tok_spm_normalize(
		    v, m->added_bytes + a->off, a->len, text->normal, sizeof(text->normal), &len))
		return tok_fail(err, "added token %u: its normal form has more than %u bytes", id,
			TOK_ADDED_BYTES_MAX);
	text->p = text->normal;
	text->len = (uint32_t)len;
	text->has_blanks = false;
	return true;
}

/* Write the text with U+2581 replaced by a blank, or dropped. */
static uint32_t
put_text(const struct text *text, bool strip, uint8_t *out)
{
	const uint8_t *p = text->p, *end = p + text->len;
	uint8_t *to = out;

	while (p < end) {
		const bool mark = !text->as_it_is && end - p >= MARK_BYTES &&
				  memcmp(p, MARK, MARK_BYTES) == 0;

		if (mark || (text->has_blanks && *p == ' ')) {
			if (!strip || (text->leads && p > text->p))
				*to++ = ' ';
			p += mark ? MARK_BYTES : 1;
		} else {
			*to++ = *p++;
		}
	}
	return (uint32_t)(to - out);
}

static bool
fill_texts(struct tok_vocab *v, const struct tok_model *m, const uint32_t *added,
	struct tok_error *err)
{
	struct tok_wordpiece *w = &v->wordpiece;
	uint32_t at = 0;

	for (uint32_t id = 0; id < v->info.n_ids; id++) {
		struct text text;

		if (!find_text(v, m, added, id, &text, err))
			return false;
		w->at_start[id].off = at;
		w->at_start[id].len = put_text(&text, m->unigram.decode_strips, w->text + at);
		at += w->at_start[id].len;
		w->behind[id].off = at;
		w->behind[id].len = put_text(&text, false, w->text + at);
		at += w->behind[id].len;
		if (!m->token[id].special && w->behind[id].len > v->info.max_token_bytes)
			v->info.max_token_bytes = w->behind[id].len;
	}
	return true;
}

static bool
build_texts(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	const uint32_t n = v->info.n_ids;
	uint32_t *added = calloc(n, sizeof(*added)); /* by id: index in m->added + 1; 0: none */
	size_t bytes = m->n_bytes;
	bool ok;

	for (uint32_t i = 0; added != NULL && i < m->n_added; i++) {
		if (m->unigram.sentencepiece || !(m->added[i].what & TOK_ADDED_NORMALIZED))
			continue;
		added[m->added[i].id] = i + 1;
		bytes += TOK_ADDED_BYTES_MAX;
	}
	ok = added != NULL && tok_vocab_table_make(v, TOK_TABLE_AT_START, n) &&
	     tok_vocab_table_make(v, TOK_TABLE_BEHIND, n) &&
	     tok_vocab_table_make(v, TOK_TABLE_TEXT, 2 * bytes + 1);
	ok = ok ? fill_texts(v, m, added, err) : tok_fail(err, "out of memory for %u texts", n);
	free(added);
	return ok;
}

/* ---- all of it ---- */

static bool
build_lengths(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	if (!tok_vocab_table_make(v, TOK_TABLE_LEN, m->n_tokens))
		return tok_fail(err, "out of memory for %u tokens", m->n_tokens);
	for (uint32_t id = 0; id < m->n_tokens; id++)
		v->len[id] = (uint16_t)m->token[id].len;
	return true;
}

void
tok_unigram_sum(struct tok_vocab *v)
{
	struct tok_unigram *u = &v->unigram;

	tok_spm_norm_sum(v);
	if (u->blanks)
		u->border[' '] = u->border[0xe2] = true;
	if (!u->words)
		return;
	/* White space (unicode/word.h): these are its first bytes. */
	for (uint32_t c = 0x09; c <= 0x0d; c++)
		u->border[c] = true;
	u->border[' '] = u->border[0xc2] = true;
	u->border[0xe1] = u->border[0xe2] = u->border[0xe3] = true;
}

static void
put_settings(struct tok_unigram *u, const struct tok_model *m)
{
	u->blanks = m->unigram.blanks;
	u->norm.sentencepiece = m->unigram.sentencepiece;
	u->norm.dummy = m->unigram.dummy;
	u->unk = m->unigram.unk;
}

bool
tok_unigram_build_normalizer(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	put_settings(&v->unigram, m);
	v->unigram.byte_fallback = m->unigram.byte_fallback;
	return tok_spm_norm_build(v, &m->unigram, err) && build_texts(v, m, err);
}

bool
tok_unigram_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	struct tok_unigram *u = &v->unigram;

	put_settings(u, m);
	u->words = m->unigram.words;
	u->split = m->unigram.split;
	u->prefix = m->unigram.prefix;
	for (uint32_t i = 0; i < m->n_added; i++)
		u->norm.parts |= (m->added[i].what & TOK_ADDED_NORMALIZED) != 0;
	return check_unknown(m, err) && build_pieces(v, m, err) && build_lengths(v, m, err) &&
	       build_fallback(v, m, err) && tok_spm_norm_build(v, &m->unigram, err) &&
	       build_texts(v, m, err);
}
