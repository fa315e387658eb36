/* SPDX-License-Identifier: BSD-3-Clause */
/* A model as plain lists: create, checksum, free. Set-up only. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_make.h"
#include "tables/crc32.h"
#include "unicode/utf8.h"

void
tok_make_printable(char *text)
{
	size_t n = strlen(text), at = 0, i;

	while (at < n) {
		struct tok_utf8_span span = tok_utf8_scan((const uint8_t *)text + at, n - at);

		at += span.valid;
		for (i = 0; at < n && i < span.rest; i++)
			text[at++] = '?';
	}
	for (i = 0; i < n; i++)
		text[i] = (unsigned char)text[i] < ' ' || text[i] == '\x7f' ? '?' : text[i];
}

bool
tok_fail(struct tok_error *err, const char *fmt, ...)
{
	va_list args;

	if (err == NULL)
		return false;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	tok_make_printable(err->text);
	return false;
}

bool
tok_model_init(struct tok_model *m, uint32_t n_tokens, size_t n_bytes, uint32_t n_merges,
	struct tok_error *err)
{
	m->n_tokens = n_tokens;
	m->token = calloc(n_tokens, sizeof(*m->token));
	m->bytes = malloc(n_bytes + 1);
	m->merge = malloc((n_merges + (size_t)1) * sizeof(*m->merge));
	if (m->token == NULL || m->bytes == NULL || m->merge == NULL)
		return tok_fail(err, "out of memory for %u tokens", n_tokens);
	return true;
}

void
tok_model_put(struct tok_model *m, uint32_t id, const uint8_t *bytes, uint32_t len, bool special)
{
	m->token[id] = (struct tok_model_token){
		.off = (uint32_t)m->n_bytes, .len = len, .special = special};
	memcpy(m->bytes + m->n_bytes, bytes, len);
	m->n_bytes += len;
}

void
tok_model_free(struct tok_model *m)
{
	free(m->token);
	free(m->bytes);
	free(m->merge);
	free(m->added);
	free(m->added_bytes);
	for (uint32_t i = 0; i < TOK_SPLITS_MAX; i++)
		free(m->regex[i]);
	free(m->unigram.charsmap);
	free(m->unigram.score);
	*m = (struct tok_model){0};
}

static uint32_t
add_number(uint32_t crc, uint32_t x)
{
	const uint8_t le[4] = {
		(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24)};

	return tok_crc32(crc, le, sizeof(le));
}

/*
 * Normalizer, words and tokens of a WordPiece model. Its special tokens are treated as text. The
 * decoder's cleanup does not affect ids.
 */
static uint32_t
add_bert(uint32_t crc, const struct tok_model *m)
{
	const struct tok_model_bert *b = &m->bert;

	crc = add_number(crc, m->kind);
	crc = add_number(crc, (uint32_t)b->clean_text << 3 |
				      (uint32_t)b->handle_chinese_chars << 2 |
				      (uint32_t)b->strip_accents << 1 | b->lowercase);
	crc = add_number(crc, b->max_chars);
	if (b->whole)
		crc = add_number(crc, 0x77686f);
	return add_number(crc, b->unk);
}

/* The normalization, and all scores exactly: a difference in the last bit can change ids. */
static uint32_t
add_unigram(uint32_t crc, const struct tok_model *m)
{
	const struct tok_model_unigram *u = &m->unigram;

	crc = add_number(crc, m->kind);
	crc = add_number(crc, (uint32_t)u->strip_left | (uint32_t)u->strip_right << 1 |
				      (uint32_t)u->squeeze << 2 |
				      (uint32_t)u->squeeze_to_mark << 3 | (uint32_t)u->words << 4 |
				      (uint32_t)u->blanks << 5 | (uint32_t)u->split << 6 |
				      (uint32_t)u->byte_fallback << 7 | (uint32_t)u->prefix << 8 |
				      (uint32_t)u->sentencepiece << 16 | (uint32_t)u->dummy << 17);
	crc = add_number(crc, u->unk);
	if (u->charsmap != NULL)
		crc = tok_crc32(crc, u->charsmap, u->charsmap_bytes);
	for (uint32_t i = 0; u->score != NULL && i < m->n_tokens; i++) {
		uint64_t bits;

		memcpy(&bits, &u->score[i], sizeof(bits));
		crc = add_number(crc, (uint32_t)bits);
		crc = add_number(crc, (uint32_t)(bits >> 32));
	}
	return crc;
}

/*
 * Added tokens that are not special, and special tokens with properties. Plain special tokens are
 * covered by the tokens already.
 */
static uint32_t
add_added(uint32_t crc, const struct tok_model *m)
{
	for (uint32_t i = 0; i < m->n_added; i++) {
		const struct tok_model_added *t = &m->added[i];
		const uint32_t ways = TOK_ADDED_LSTRIP | TOK_ADDED_RSTRIP | TOK_ADDED_SINGLE_WORD;

		if ((t->what & TOK_ADDED_SPECIAL) && !(t->what & ways))
			continue;
		crc = add_number(crc, t->id);
		crc = add_number(crc, t->what);
		crc = tok_crc32(crc, m->added_bytes + t->off, t->len);
	}
	return crc;
}

/* Everything that affects ids: pretokenizer, each id with its bytes, the live merges in order. */
uint32_t
tok_model_checksum(const struct tok_model *m)
{
	uint32_t crc = 0, i;

	crc = add_number(crc, m->pretok);
	for (i = 0; i < TOK_SPLITS_MAX && m->regex[i] != NULL; i++) {
		crc = tok_crc32(crc, m->regex[i], strlen(m->regex[i]) + 1);
		if (m->behavior[i] != TOK_SPLIT_ISOLATED)
			crc = add_number(crc, m->behavior[i]);
	}
	crc = add_number(crc, m->n_tokens);
	if (m->kind == TOK_KIND_WORDPIECE)
		crc = add_bert(crc, m);
	if (m->kind == TOK_KIND_UNIGRAM || m->unigram.sentencepiece)
		crc = add_unigram(crc, m);
	for (i = 0; i < m->n_tokens; i++) {
		bool other =
			m->token[i].outside || (m->kind == TOK_KIND_BPE && m->token[i].special);

		crc = add_number(crc, m->token[i].len << 1 | other);
		crc = tok_crc32(crc, m->bytes + m->token[i].off, m->token[i].len);
	}
	for (i = 0; i < m->n_merges; i++) {
		crc = add_number(crc, m->merge[i].left);
		crc = add_number(crc, m->merge[i].right);
		crc = add_number(crc, m->merge[i].result);
	}
	/* Only if it makes a difference, so that equal tokenizers have equal checksums. */
	if (tok_norm_is_form_c(&m->norm))
		crc = add_number(crc, 0x4e4643);
	else if (m->norm.n > 0)
		crc = tok_crc32(crc, &m->norm, sizeof(m->norm));
	if (m->metaspace.stage != TOK_METASPACE_OFF)
		crc = add_number(
			crc, 0x73700000u | (uint32_t)m->metaspace.stage << 8 | m->metaspace.prefix);
	if (m->word_end)
		crc = add_number(crc, 0x3c2f77);
	if (m->greedy)
		crc = add_number(crc, 0x677265);
	if (m->ignore_merges && m->n_unmerged > 0)
		crc = add_number(crc, m->n_unmerged);
	crc = add_added(crc, m);
	return crc == 0 ? 1 : crc; /* 0 means "the default" on the wire */
}
