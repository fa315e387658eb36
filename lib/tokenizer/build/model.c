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

/* A second or two. Published vocabularies need a fortieth of it at most. */
#define WORK_MAX ((uint64_t)1 << 30)

bool
tok_model_add_work(uint64_t *work, uint32_t len, struct tok_error *err)
{
	*work += (uint64_t)len * len;
	return *work <= WORK_MAX ||
	       tok_fail(err,
		       "its tokens are too long: the squares of their bytes are more than %llu in "
		       "all, the limit",
		       (unsigned long long)WORK_MAX);
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

/* What a checksum is of. It comes in small parts, and a CRC-32 is fast for large ones. */
struct sum {
	uint32_t crc, n;
	uint8_t part[4096];
};

static void
add_bytes(struct sum *s, const void *bytes, size_t n)
{
	if (n > sizeof(s->part) - s->n) {
		s->crc = tok_crc32(s->crc, s->part, s->n);
		s->n = 0;
	}
	if (n > sizeof(s->part)) {
		s->crc = tok_crc32(s->crc, bytes, n);
		return;
	}
	memcpy(s->part + s->n, bytes, n);
	s->n += (uint32_t)n;
}

static void
add_number(struct sum *s, uint32_t x)
{
	const uint8_t le[4] = {
		(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24)};

	add_bytes(s, le, sizeof(le));
}

static void
add_text(struct sum *s, const uint8_t *text, uint32_t n)
{
	add_number(s, n);
	add_bytes(s, text, n);
}

/* The steps of a normalizer: what each kind uses, and not the struct, which may change. */
static void
add_norm(struct sum *s, const struct tok_model_norm *norm)
{
	add_number(s, norm->n);
	for (uint32_t i = 0; i < norm->n; i++) {
		const struct tok_model_step *step = &norm->step[i];

		add_number(s, step->kind);
		add_number(s, step->kind == TOK_NORM_MAP ? step->n_ops : step->arg);
		for (uint32_t k = 0; k < step->n_ops; k++) {
			const struct tok_map_op *op = &step->op[k];

			add_number(s, op->kind);
			add_number(s, op->cp);
			add_text(s, op->to, op->n_to);
		}
		if (step->kind == TOK_NORM_LITERAL) {
			add_text(s, step->literal.text, step->literal.n);
			add_text(s, step->literal.to, step->literal.n_to);
		}
	}
}

/*
 * Normalizer, words and tokens of a WordPiece model. Its special tokens are treated as text. The
 * decoder's cleanup does not affect ids.
 */
static void
add_bert(struct sum *s, const struct tok_model *m)
{
	const struct tok_model_bert *b = &m->bert;

	add_number(s, m->kind);
	add_number(s, (uint32_t)b->clean_text << 3 | (uint32_t)b->handle_chinese_chars << 2 |
			      (uint32_t)b->strip_accents << 1 | b->lowercase);
	add_number(s, b->max_chars);
	if (b->whole)
		add_number(s, 0x77686f);
	add_number(s, b->unk);
}

/* The normalization, and all scores exactly: a difference in the last bit can change ids. */
static void
add_unigram(struct sum *s, const struct tok_model *m)
{
	const struct tok_model_unigram *u = &m->unigram;

	add_number(s, m->kind);
	add_number(s, (uint32_t)u->strip_left | (uint32_t)u->strip_right << 1 |
			      (uint32_t)u->squeeze << 2 | (uint32_t)u->squeeze_to_mark << 3 |
			      (uint32_t)u->words << 4 | (uint32_t)u->blanks << 5 |
			      (uint32_t)u->split << 6 | (uint32_t)u->byte_fallback << 7 |
			      (uint32_t)u->prefix << 8 | (uint32_t)u->sentencepiece << 16 |
			      (uint32_t)u->dummy << 17);
	add_number(s, u->unk);
	if (u->charsmap != NULL)
		add_bytes(s, u->charsmap, u->charsmap_bytes);
	for (uint32_t i = 0; u->score != NULL && i < m->n_tokens; i++) {
		uint64_t bits;

		memcpy(&bits, &u->score[i], sizeof(bits));
		add_number(s, (uint32_t)bits);
		add_number(s, (uint32_t)(bits >> 32));
	}
}

/*
 * Added tokens that are not special, and special tokens with properties. Plain special tokens are
 * covered by the tokens already.
 */
static void
add_added(struct sum *s, const struct tok_model *m)
{
	for (uint32_t i = 0; i < m->n_added; i++) {
		const struct tok_model_added *t = &m->added[i];
		const uint32_t ways = TOK_ADDED_LSTRIP | TOK_ADDED_RSTRIP | TOK_ADDED_SINGLE_WORD;

		if ((t->what & TOK_ADDED_SPECIAL) && !(t->what & ways))
			continue;
		add_number(s, t->id);
		add_number(s, t->what);
		add_bytes(s, m->added_bytes + t->off, t->len);
	}
}

/* Everything that affects ids: pretokenizer, each id with its bytes, the live merges in order. */
uint32_t
tok_model_checksum(const struct tok_model *m)
{
	struct sum sum, *s = &sum;
	uint32_t crc, i;

	s->crc = s->n = 0;
	add_number(s, m->pretok);
	for (i = 0; i < TOK_SPLITS_MAX && m->regex[i] != NULL; i++) {
		add_bytes(s, m->regex[i], strlen(m->regex[i]) + 1);
		if (m->behavior[i] != TOK_SPLIT_ISOLATED)
			add_number(s, m->behavior[i]);
	}
	add_number(s, m->n_tokens);
	if (m->kind == TOK_KIND_WORDPIECE)
		add_bert(s, m);
	if (m->kind == TOK_KIND_UNIGRAM || m->unigram.sentencepiece)
		add_unigram(s, m);
	for (i = 0; i < m->n_tokens; i++) {
		bool other =
			m->token[i].outside || (m->kind == TOK_KIND_BPE && m->token[i].special);

		add_number(s, m->token[i].len << 1 | other);
		add_bytes(s, m->bytes + m->token[i].off, m->token[i].len);
	}
	for (i = 0; i < m->n_merges; i++) {
		add_number(s, m->merge[i].left);
		add_number(s, m->merge[i].right);
		add_number(s, m->merge[i].result);
	}
	/* Only if it makes a difference, so that equal tokenizers have equal checksums. */
	if (tok_norm_is_form_c(&m->norm))
		add_number(s, 0x4e4643);
	else if (m->norm.n > 0)
		add_norm(s, &m->norm);
	if (m->metaspace.stage != TOK_METASPACE_OFF)
		add_number(
			s, 0x73700000u | (uint32_t)m->metaspace.stage << 8 | m->metaspace.prefix);
	if (m->word_end != TOK_WORD_END_NONE)
		add_number(s, 0x3c2f76 + m->word_end);
	if (m->greedy)
		add_number(s, 0x677265);
	if (m->ignore_merges && m->n_unmerged > 0)
		add_number(s, m->n_unmerged);
	add_added(s, m);
	crc = tok_crc32(s->crc, s->part, s->n);
	return crc == 0 ? 1 : crc; /* 0 means "the default" on the wire */
}
