/* SPDX-License-Identifier: BSD-3-Clause */
/* How much longer the steps of a normalizer make a text, and what they make of one. Set-up only. */
#include <stdlib.h>

#include "normalize/spm_norm.h"
#include "build/parts.h"
#include "unicode/nfc_tables.h"
#include "unicode/utf8.h"
#include "unicode/word.h"
#include "build/vocab_table.h"

struct bound {
	const struct tok_vocab *v;
	bool ids; /* count ids, the most that the model gives; else bytes */
};

static uint32_t from_step(const struct bound *b, uint32_t step, uint32_t cp);

static uint32_t
of_text(const struct bound *b, uint32_t step, const uint8_t *p, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t at = 0; at < n;) {
		const uint32_t len = tok_utf8_length(p[at]);

		most += from_step(b, step, tok_utf8_decode(p + at, len));
		at += len;
	}
	return most;
}

static uint32_t
of_map(const struct bound *b, uint32_t step, uint32_t cp)
{
	const struct tok_norm *norm = &b->v->norm;
	const uint32_t element = tok_map_element(norm, norm->step[step].arg, cp);

	if (element == TOK_MAP_AROUND)
		return from_step(b, step + 1, cp) + 2 * from_step(b, step + 1, ' ');
	if (element & TOK_MAP_TEXT)
		return of_text(b, step + 1,
			norm->text + ((element & ~TOK_MAP_TEXT) >> TOK_MAP_BITS),
			element & TOK_MAP_BYTES);
	return from_step(b, step + 1, cp);
}

/*
 * The parts may be composed again. A composite is among the characters that the caller asks for,
 * and has at most as many bytes as its parts (tools/gen/unicode-nfc checks this).
 */
static uint32_t
of_parts(const struct bound *b, uint32_t step, uint32_t cp)
{
	uint32_t letter[3], n = 0, most = 0;
	const uint32_t *part = tok_nfc_decompose(cp, &n);

	if (cp - TOK_NFC_S < TOK_NFC_SS) {
		n = tok_nfc_letters(cp, letter);
		part = letter;
	}
	for (uint32_t i = 0; i < n; i++)
		most += from_step(b, step + 1, part[i] & TOK_NFC_CP);
	return most;
}

/* Behind the last step: sentencepiece's map may follow. */
static uint32_t
of_character(const struct bound *b, uint32_t cp)
{
	const struct tok_vocab *v = b->v;
	const bool chars = b->ids && v->kind == TOK_KIND_UNIGRAM && !v->unigram.byte_fallback;
	uint8_t utf8[4];
	const uint8_t *p = utf8;
	uint32_t n = tok_utf8_encode(cp, utf8), most = 0, text;
	bool open;

	if (b->ids && v->unigram.norm.unit != NULL) {
		text = tok_spm_find(&v->unigram.norm, utf8, n, &open);
		p = text == TOK_SPM_NO_TEXT ? p : v->unigram.norm.text + text;
		n = text == TOK_SPM_NO_TEXT ? n : (uint32_t)strlen((const char *)p);
	}
	for (uint32_t i = 0; i < n; i++)
		most += !chars || (p[i] & 0xc0) != 0x80;
	return most;
}

/* The most that the steps from `step` on make of a character. */
static uint32_t
from_step(const struct bound *b, uint32_t step, uint32_t cp)
{
	const struct tok_norm *norm = &b->v->norm;
	uint32_t other = 0, itself;

	if (step == norm->n)
		return of_character(b, cp);
	if (norm->step[step].kind == TOK_NORM_MAP)
		return of_map(b, step, cp);
	if (norm->step[step].kind == TOK_NORM_FORM_C || norm->step[step].kind == TOK_NORM_FORM_D)
		other = of_parts(b, step, cp);
	else if (norm->step[step].kind == TOK_NORM_SQUEEZE && tok_is_white(cp))
		other = from_step(b, step + 1, ' ');
	itself = from_step(b, step + 1, cp);
	return other > itself ? other : itself;
}

static uint32_t
per_byte(uint32_t most, uint32_t n)
{
	return (most + n - 1) / n;
}

/* The most for a byte of a text of several characters that is replaced. */
static uint32_t
of_literals(const struct bound *b)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < b->v->norm.n; i++) {
		const struct tok_norm_step step = b->v->norm.step[i];
		uint32_t some;

		if (step.kind != TOK_NORM_LITERAL)
			continue;
		some = per_byte(of_text(b, i + 1, b->v->norm.literal[step.arg].to,
					b->v->norm.literal[step.arg].n_to),
			b->v->norm.literal[step.arg].n);
		most = some > most ? some : most;
	}
	return most;
}

/* May a step change a character of this page? */
static bool
changes(const struct tok_vocab *v, uint32_t page)
{
	const uint32_t n_pages = tok_vocab_table_n(v, TOK_TABLE_MAP_PAGE);
	uint32_t any = page == 0 || tok_nfc_page[page] != 0 ||
		       page - TOK_NFC_S / TOK_PAGE <= TOK_NFC_SS / TOK_PAGE ||
		       v->unigram.norm.unit != NULL;

	for (uint32_t at = page; at < n_pages; at += TOK_PAGES) {
		for (uint32_t i = 0; i < TOK_PAGE; i++)
			any |= v->norm.element[v->norm.page[at] * TOK_PAGE + i];
	}
	return any != 0;
}

uint32_t
tok_norm_ids_per_byte(const struct tok_vocab *v)
{
	const struct bound b = {v, true};
	uint32_t most = of_literals(&b), some = from_step(&b, 0, 0xfffd);

	most = some > most ? some : most; /* an ill-formed byte */
	for (uint32_t p = 0; p < TOK_PAGES; p++) {
		if (!changes(v, p))
			continue;
		for (uint32_t cp = p * TOK_PAGE; cp < (p + 1) * TOK_PAGE; cp++) {
			uint8_t utf8[4];

			some = per_byte(from_step(&b, 0, cp), tok_utf8_encode(cp, utf8));
			most = some > most ? some : most;
		}
	}
	return most;
}

void
tok_norm_sum(struct tok_vocab *v)
{
	v->norm.n = tok_vocab_table_n(v, TOK_TABLE_NORM_STEP);
	for (uint32_t i = 0; i < v->norm.n; i++) {
		const struct tok_norm_step step = v->norm.step[i];

		if (step.kind == TOK_NORM_SQUEEZE)
			v->norm.squeeze = step.arg;
		if (step.kind == TOK_NORM_STRIP)
			v->norm.sides = step.arg;
	}
}

bool
tok_norm_bound(struct tok_vocab *v)
{
	const bool form_c = v->norm.n == 1 && v->norm.step[0].kind == TOK_NORM_FORM_C;

	v->tight = (v->norm.n > 0 && !form_c) || v->unigram.norm.on;
	if (v->norm.n > 0 && !form_c) { /* form C stays below the least bound */
		/* A text behind each added token in normalized text may get a blank in front. */
		const uint32_t most = tok_norm_ids_per_byte(v), several = v->unigram.norm.several;
		const uint32_t all =
			(several > 1 ? most * several : most) +
			(v->kind == TOK_KIND_UNIGRAM && v->unigram.prefix == TOK_PREFIX_EACH);

		v->ids_per_byte = all > v->ids_per_byte ? all : v->ids_per_byte;
	}
	return v->ids_per_byte <= TOK_IDS_PER_BYTE_MAX;
}

bool
tok_norm_apply(const struct tok_vocab *v, const uint8_t *p, size_t n, uint8_t *out, size_t room,
	size_t *len)
{
	const struct bound b = {v, false};
	const size_t most = (size_t)of_text(&b, 0, p, (uint32_t)n) + n * of_literals(&b);
	const struct tok_stage *stage[TOK_NORMS_MAX + 1], **end = tok_stages_of_norm(v, stage);
	struct tok_stream *s = malloc(sizeof(*s));
	uint32_t *bytes = malloc((most + 1) * sizeof(*bytes)), *to = bytes;
	bool ok = s != NULL && bytes != NULL;

	if (ok) {
		*end = &tok_stage_collect;
		s->vocab = v;
		for (const struct tok_stage **at = stage; at < end; at++) {
			if ((*at)->open != NULL)
				(*at)->open(s);
		}
		ok = tok_stage_next(s, stage, p, n, true, &to) == TOK_ERROR_NONE &&
		     (size_t)(to - bytes) <= room;
	}
	*len = 0;
	while (ok && bytes + *len < to) {
		out[*len] = (uint8_t)bytes[*len];
		++*len;
	}
	free(s);
	free(bytes);
	return ok;
}
