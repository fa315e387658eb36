/* SPDX-License-Identifier: BSD-3-Clause */
/* The most ids that the steps of a normalizer lead to, and what they make of a text. Set-up only.
 */
#include <stdlib.h>

#include "normalize/spm_norm.h"
#include "tables/bert_norm.h"
#include "build/parts.h"
#include "unicode/nfc_tables.h"
#include "unicode/utf8.h"
#include "unicode/word.h"
#include "build/vocab_table.h"

/*
 * What a character becomes, in ids: for each step, the most that it and the later steps make of one
 * character. So the time is linear in the size of the tables. Only some pages of characters are
 * changed at all.
 */
struct bound {
	const struct tok_vocab *v;
	bool changed[TOK_PAGES];
	/* by code point, of changed pages: from the current step on, and from the next on */
	uint16_t *now, *next;
	/* the part that a character may have in what the next step makes of a composite */
	uint16_t *share;
	/* by element of the maps: what the next step makes of its text; 0: not known yet. So the
	   time does not grow with the characters that share a text. */
	uint16_t *text;
	size_t n_text;
};

/* Behind the last step: sentencepiece's map may follow, or BERT's. */
static uint32_t
of_character(const struct tok_vocab *v, uint32_t cp)
{
	const bool chars = v->kind == TOK_KIND_UNIGRAM && !v->unigram.byte_fallback;
	uint8_t utf8[4];
	const uint8_t *p = utf8;
	uint32_t n = tok_utf8_encode(cp, utf8), most = 0, text;
	bool open;

	if (v->kind == TOK_KIND_WORDPIECE) {
		const uint32_t kind = TOK_BERT_KIND(tok_bert_element(&v->wordpiece.norm, cp));

		return n < 3 && (kind == TOK_BERT_SEQ || kind == TOK_BERT_HANGUL) ? 3 : n;
	}
	if (v->unigram.norm.unit != NULL) {
		text = tok_spm_find(&v->unigram.norm, utf8, n, &open);
		p = text == TOK_SPM_NO_TEXT ? p : v->unigram.norm.text + text;
		n = text == TOK_SPM_NO_TEXT ? n : (uint32_t)strlen((const char *)p);
	}
	for (uint32_t i = 0; i < n; i++)
		most += !chars || (p[i] & 0xc0) != 0x80;
	return most;
}

static uint32_t
next_of(const struct bound *b, uint32_t cp)
{
	return b->changed[cp / TOK_PAGE] ? b->next[cp] : of_character(b->v, cp);
}

/* At least one for a character: a later step may drop it, but has to look at it. */
static uint32_t
of_text(const struct bound *b, const uint8_t *p, uint32_t n)
{
	uint32_t most = 0, chars = 0;

	for (uint32_t at = 0; at < n; chars++) {
		const uint32_t len = tok_utf8_length(p[at]);

		most += next_of(b, tok_utf8_decode(p + at, len));
		at += len;
	}
	return most > chars ? most : chars;
}

static uint32_t
of_map(const struct bound *b, uint32_t map, uint32_t cp)
{
	const struct tok_norm *norm = &b->v->norm;
	const uint32_t at =
		(uint32_t)norm->page[map * TOK_NORM_PAGES + (cp >> 8)] << 8 | (cp & 255);
	const uint32_t element = norm->element[at];

	if (element == TOK_MAP_AROUND)
		return next_of(b, cp) + 2 * next_of(b, ' ');
	if (!(element & TOK_MAP_TEXT))
		return next_of(b, cp);
	if (b->text[at] == 0) {
		const uint32_t ids =
			of_text(b, norm->text + ((element & ~TOK_MAP_TEXT) >> TOK_MAP_BITS),
				element & TOK_MAP_BYTES);

		b->text[at] = (uint16_t)(ids < UINT16_MAX ? ids : UINT16_MAX);
	}
	return b->text[at];
}

static uint32_t
per_byte(uint32_t most, uint32_t n)
{
	return (most + n - 1) / n;
}

/* Each of the bytes of a text of several characters has its part in what replaces it. */
static uint32_t
of_literal(const struct bound *b, const struct tok_literal *l, uint32_t cp)
{
	const uint32_t most = next_of(b, cp);
	uint32_t part;

	if (cp >= 0x80 || memchr(l->text, (int)cp, l->n) == NULL)
		return most;
	part = per_byte(of_text(b, l->to, l->n_to), l->n);
	return part > most ? part : most;
}

/* The canonical decomposition of a character, which may be itself. */
static const uint32_t *
decompose(uint32_t cp, uint32_t room[3], uint32_t *n)
{
	const uint32_t *part;

	if (cp - TOK_NFC_S < TOK_NFC_SS) {
		*n = tok_nfc_letters(cp, room);
		return room;
	}
	part = tok_nfc_decompose(cp, n);
	if (part != NULL)
		return part;
	room[0] = cp;
	*n = 1;
	return room;
}

/* Its parts together stand for a composite, each by its bytes. */
static void
share_composite(struct bound *b, uint32_t cp)
{
	uint32_t room[3], n, bytes = 0;
	const uint32_t *part = decompose(cp, room, &n), most = next_of(b, cp);
	uint8_t utf8[4];

	for (uint32_t i = 0; i < n; i++)
		bytes += tok_utf8_encode(part[i] & TOK_NFC_CP, utf8);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t one = part[i] & TOK_NFC_CP;
		const uint32_t share = per_byte(most * tok_utf8_encode(one, utf8), bytes);

		if (share > b->share[one])
			b->share[one] = (uint16_t)(share < UINT16_MAX ? share : UINT16_MAX);
	}
}

static void
share_composites(struct bound *b)
{
	for (uint32_t i = 0; i < 1u << TOK_NFC_PAIR_BITS; i++) {
		if (tok_nfc_pair[i] != 0)
			share_composite(b, (uint32_t)tok_nfc_pair[i] & TOK_NFC_CP);
	}
	for (uint32_t cp = TOK_NFC_S; cp < TOK_NFC_S + TOK_NFC_SS; cp++)
		share_composite(b, cp);
}

/* Decomposed, and then maybe composed with others. */
static uint32_t
of_form(const struct bound *b, uint32_t cp)
{
	uint32_t room[3], n, most = 0;
	const uint32_t *part = decompose(cp, room, &n), itself = next_of(b, cp);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t one = part[i] & TOK_NFC_CP, some = next_of(b, one);

		most += some > b->share[one] ? some : b->share[one];
	}
	return most > itself ? most : itself;
}

static uint32_t
of_step(const struct bound *b, struct tok_norm_step step, uint32_t cp)
{
	uint32_t itself, blank;

	switch ((enum tok_norm_kind)step.kind) {
	case TOK_NORM_MAP:
		return of_map(b, step.arg, cp);
	case TOK_NORM_FORM_C:
	case TOK_NORM_FORM_D:
		return of_form(b, cp);
	case TOK_NORM_LITERAL:
		return of_literal(b, &b->v->norm.literal[step.arg], cp);
	case TOK_NORM_SQUEEZE:
		itself = next_of(b, cp);
		blank = tok_is_white(cp) ? next_of(b, ' ') : 0;
		return blank > itself ? blank : itself;
	case TOK_NORM_STRIP:
		break;
	}
	return next_of(b, cp);
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

/*
 * Fill in b->now for step `step`; v->norm.n: after the last. Returns the most for a byte: text may
 * wait before each step.
 */
static uint32_t
fill_step(struct bound *b, uint32_t step)
{
	const struct tok_vocab *v = b->v;
	uint32_t most = 0;

	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++) {
		uint8_t utf8[4];
		uint32_t ids;

		if (!b->changed[cp / TOK_PAGE]) {
			cp |= TOK_PAGE - 1;
			continue;
		}
		ids = step == v->norm.n ? of_character(v, cp) : of_step(b, v->norm.step[step], cp);
		b->now[cp] = (uint16_t)(ids < UINT16_MAX ? ids : UINT16_MAX);
		ids = per_byte(ids, tok_utf8_encode(cp, utf8));
		most = ids > most ? ids : most;
	}
	return most;
}

/* The most ids that the steps, and what comes after them, make of a byte. */
static uint32_t
fill_all(struct bound *b)
{
	uint32_t most = 0, some;

	for (uint32_t page = 0; page < TOK_PAGES; page++)
		b->changed[page] = changes(b->v, page);
	for (uint32_t step = b->v->norm.n + 1; step-- > 0;) {
		uint16_t *next = b->now;

		if (step < b->v->norm.n && b->v->norm.step[step].kind == TOK_NORM_FORM_C)
			share_composites(b);
		memset(b->text, 0, b->n_text * sizeof(*b->text));
		some = fill_step(b, step);
		most = some > most ? some : most;
		b->now = b->next;
		b->next = next;
	}
	some = next_of(b, 0xfffd); /* an ill-formed byte */
	return some > most ? some : most;
}

/* 0: out of memory. */
static uint32_t
ids_per_byte(const struct tok_vocab *v)
{
	const size_t n_text = tok_vocab_table_n(v, TOK_TABLE_MAP_ELEMENT);
	uint16_t *room = calloc(3 * (size_t)TOK_CODE_POINTS + n_text, sizeof(*room));
	struct bound b = {.v = v, .n_text = n_text};
	uint32_t most;

	if (room == NULL)
		return 0;
	b.now = room;
	b.next = room + TOK_CODE_POINTS;
	b.share = room + 2 * (size_t)TOK_CODE_POINTS;
	b.text = room + 3 * (size_t)TOK_CODE_POINTS;
	most = fill_all(&b);
	free(room);
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

const char *
tok_norm_bound(struct tok_vocab *v)
{
	const bool form_c = v->norm.n == 1 && v->norm.step[0].kind == TOK_NORM_FORM_C;

	v->tight = (v->norm.n > 0 && !form_c) || v->unigram.norm.on;
	if (v->norm.n > 0 && !form_c) { /* form C stays below the least bound */
		/* A text after each added token in normalized text may get a blank in front. */
		const uint32_t most = ids_per_byte(v), several = v->unigram.norm.several;
		const uint32_t all =
			(several > 1 ? most * several : most) +
			(v->kind == TOK_KIND_UNIGRAM && v->unigram.prefix == TOK_PREFIX_EACH);

		if (most == 0)
			return "out of memory for the bound of its normalizer";
		v->ids_per_byte = all > v->ids_per_byte ? all : v->ids_per_byte;
	}
	static_assert(TOK_IDS_PER_BYTE_MAX == 12, "in the text");
	return v->ids_per_byte <= TOK_IDS_PER_BYTE_MAX
		       ? NULL
		       : "its normalizer gives more than 12 ids for a byte: not implemented";
}

/* A stream whose last stage keeps the text. */
struct kept {
	struct tok_stream s;
	uint8_t *out;
	size_t n, room;
};

static enum tok_error_code
keep(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p, size_t n,
	bool last, uint32_t **ids)
{
	struct kept *k = (struct kept *)s;

	(void)next;
	(void)last;
	(void)ids;
	if (n > k->room - k->n)
		return TOK_ERROR_ADDED;
	memcpy(k->out + k->n, p, n);
	k->n += n;
	return TOK_ERROR_NONE;
}

bool
tok_norm_apply(const struct tok_vocab *v, const uint8_t *p, size_t n, uint8_t *out, size_t room,
	size_t *len)
{
	static const struct tok_stage keeps = {.feed = keep};
	const struct tok_stage *stage[TOK_NORMS_MAX + 1], **end = tok_stages_of_norm(v, stage);
	struct kept *k = malloc(sizeof(*k));
	uint32_t *none = NULL;
	bool ok = k != NULL;

	*len = 0;
	if (ok) {
		*end = &keeps;
		k->s.vocab = v;
		k->out = out;
		k->room = room;
		k->n = 0;
		for (const struct tok_stage **at = stage; at < end; at++) {
			if ((*at)->open != NULL)
				(*at)->open(&k->s);
		}
		ok = tok_stage_next(&k->s, stage, p, n, true, &none) == TOK_ERROR_NONE;
		*len = k->n;
	}
	free(k);
	return ok;
}
