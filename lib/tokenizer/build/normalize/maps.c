/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables of tables/norm.h from the steps of a model. Set-up only. */
#include <stdlib.h>

#include "build/parts.h"
#include "unicode/bert_tables.h"
#include "unicode/compat_tables.h"
#include "unicode/nfc_tables.h"
#include "unicode/utf8.h"
#include "build/vocab_table.h"

#define PARTS_MAX 64u /* code points that one becomes */

struct making {
	struct tok_spread bert;			/* enum tok_bert_class */
	struct tok_page_set elements;		/* of all maps */
	uint64_t changed[TOK_CODE_POINTS / 64]; /* by the map that is being made */
	uint16_t *page;				/* of all maps */
	uint8_t *text;
	size_t n_text, room;
	struct tok_error *err;
	bool refused; /* err says why; else there is no memory */
};

static void
change(struct making *g, uint32_t first, uint32_t last)
{
	for (uint32_t cp = first; cp <= last; cp++)
		g->changed[cp / 64] |= 1ull << cp % 64;
}

static enum tok_bert_class
class_of(const struct making *g, uint32_t cp)
{
	return (enum tok_bert_class)tok_spread_value(&g->bert, cp);
}

/* ---- what each operation makes of a character ---- */

static uint32_t
lower(uint32_t cp, uint32_t *to)
{
	to[0] = cp;
	for (uint32_t i = 0; i < tok_bert_lower_n && tok_bert_lower[i].first <= cp; i++) {
		const struct tok_bert_lower *run = &tok_bert_lower[i];

		if (cp <= run->last && (cp - run->first) % run->step == 0)
			to[0] = cp + (uint32_t)run->by;
	}
	if (cp == 0x130) { /* the only one that becomes two */
		to[0] = 'i';
		to[1] = 0x307;
		return 2;
	}
	return 1;
}

static uint32_t
compat(uint32_t cp, uint32_t *to)
{
	uint32_t low = 0, high = tok_compat_n, at;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (tok_compat[middle] >> 24 <= cp)
			low = middle + 1;
		else
			high = middle;
	}
	to[0] = cp;
	if (low == 0)
		return 1;
	at = cp - (uint32_t)(tok_compat[--low] >> 24);
	if (at > (tok_compat[low] >> 17 & 127))
		return 1;
	for (uint32_t i = 0; i < (tok_compat[low] & 31); i++)
		to[i] = tok_compat_part[(tok_compat[low] >> 5 & 0xfff) + i] + at;
	return tok_compat[low] & 31;
}

static bool
is_mark(uint32_t cp)
{
	uint32_t n = 0;

	while (n < tok_marks_n && tok_marks[n] <= cp)
		n++;
	return n % 2 == 1;
}

static uint32_t
clean(const struct making *g, uint32_t cp, uint32_t *to)
{
	const enum tok_bert_class class = class_of(g, cp);

	to[0] = class == TOK_BERT_BLANK ? ' ' : cp;
	return class != TOK_BERT_CONTROL && class != TOK_BERT_CONTROL_BLANK;
}

static uint32_t
around(uint32_t cp, uint32_t *to)
{
	if (!tok_bert_is_cjk(cp)) {
		to[0] = cp;
		return 1;
	}
	to[0] = to[2] = ' ';
	to[1] = cp;
	return 3;
}

static uint32_t
one_char(const struct tok_map_op *op, uint32_t cp, uint32_t *to)
{
	uint32_t n = 0;

	if (cp != op->cp) {
		to[0] = cp;
		return 1;
	}
	for (uint32_t at = 0; at < op->n_to; n++) {
		const uint32_t len = tok_utf8_length(op->to[at]);

		to[n] = tok_utf8_decode(op->to + at, len);
		at += len;
	}
	return n;
}

/* Write what becomes of cp to to[0 .. TOK_COMPAT_PARTS). Returns the number of code points. */
static uint32_t
apply_one(const struct making *g, const struct tok_map_op *op, uint32_t cp, uint32_t *to)
{
	to[0] = cp;
	switch (op->kind) {
	case TOK_OP_LOWER:
		return lower(cp, to);
	case TOK_OP_COMPAT:
		return compat(cp, to);
	case TOK_OP_MARKS:
		return !is_mark(cp);
	case TOK_OP_ACCENTS:
		return class_of(g, cp) != TOK_BERT_MARK;
	case TOK_OP_CLEAN:
		return clean(g, cp, to);
	case TOK_OP_AROUND:
		return around(cp, to);
	case TOK_OP_CHAR:
		return one_char(op, cp, to);
	}
	return 1;
}

/* Mark the characters that an operation may change. */
static void
mark_op(struct making *g, const struct tok_map_op *op)
{
	switch (op->kind) {
	case TOK_OP_LOWER:
		change(g, 0x130, 0x130);
		for (uint32_t i = 0; i < tok_bert_lower_n; i++) {
			const struct tok_bert_lower *run = &tok_bert_lower[i];

			for (uint32_t cp = run->first; cp <= run->last; cp += run->step)
				change(g, cp, cp);
		}
		break;
	case TOK_OP_COMPAT:
		for (uint32_t i = 0; i < tok_compat_n; i++) {
			const uint32_t first = (uint32_t)(tok_compat[i] >> 24);

			change(g, first, first + (tok_compat[i] >> 17 & 127));
		}
		break;
	case TOK_OP_MARKS:
		for (uint32_t i = 0; i + 1 < tok_marks_n; i += 2)
			change(g, tok_marks[i], tok_marks[i + 1] - 1);
		break;
	case TOK_OP_ACCENTS:
	case TOK_OP_CLEAN:
		for (uint32_t i = 0; i < tok_bert_classes_n; i++) {
			const uint32_t first = tok_bert_classes[i] >> TOK_BERT_CLASS_BITS;
			const uint32_t end =
				i + 1 < tok_bert_classes_n
					? tok_bert_classes[i + 1] >> TOK_BERT_CLASS_BITS
					: TOK_CODE_POINTS;

			if (class_of(g, first) != TOK_BERT_PLAIN &&
				class_of(g, first) != TOK_BERT_PUNCT)
				change(g, first, end - 1);
		}
		break;
	case TOK_OP_AROUND:
		for (uint32_t i = 0; i < TOK_BERT_CJK_BLOCKS; i++)
			change(g, tok_bert_cjk[i][0], tok_bert_cjk[i][1]);
		break;
	case TOK_OP_CHAR:
		change(g, op->cp, op->cp);
		break;
	}
}

/* ---- elements ---- */

#define NO_ELEMENT UINT32_MAX

static uint32_t
refuse(struct making *g, uint32_t cp)
{
	g->refused = true;
	tok_fail(g->err,
		"the normalizer makes too much of U+%04X: the limits are %u characters and %u "
		"bytes, and %u bytes for all characters",
		cp, PARTS_MAX, TOK_MAP_BYTES, TOK_MAP_TEXTS);
	return NO_ELEMENT;
}

/* The element of a character; NO_ELEMENT: refused, or there is no memory. */
static uint32_t
element_of(struct making *g, const struct tok_model_step *step, uint32_t cp)
{
	uint32_t from[PARTS_MAX], to[PARTS_MAX + TOK_COMPAT_PARTS], n = 1, len = 0;
	const size_t at = g->n_text;

	from[0] = cp;
	for (uint32_t i = 0; i < step->n_ops; i++) {
		uint32_t more = 0;

		for (uint32_t k = 0; k < n; k++) {
			more += apply_one(g, &step->op[i], from[k], to + more);
			if (more > PARTS_MAX)
				return refuse(g, cp);
		}
		memcpy(from, to, more * sizeof(*to));
		n = more;
	}
	if (n == 1 && from[0] == cp)
		return 0;
	if (n == 3 && from[0] == ' ' && from[1] == cp && from[2] == ' ')
		return TOK_MAP_AROUND;
	if (g->room - at < 4 * PARTS_MAX) {
		uint8_t *more = realloc(g->text, 2 * g->room + 4 * PARTS_MAX);

		if (more == NULL)
			return NO_ELEMENT;
		g->text = more;
		g->room = 2 * g->room + 4 * PARTS_MAX;
	}
	for (uint32_t i = 0; i < n; i++)
		len += tok_utf8_encode(from[i], g->text + at + len);
	if (len > TOK_MAP_BYTES || at >= TOK_MAP_TEXTS)
		return refuse(g, cp);
	g->n_text += len;
	return TOK_MAP_TEXT | (uint32_t)at << TOK_MAP_BITS | len;
}

static bool
make_map(struct making *g, const struct tok_model_step *step, uint16_t *page)
{
	uint32_t element[TOK_PAGE];

	memset(g->changed, 0, sizeof(g->changed));
	for (uint32_t i = 0; i < step->n_ops; i++)
		mark_op(g, &step->op[i]);
	for (uint32_t p = 0; p < TOK_PAGES; p++) {
		uint8_t *pages = realloc(g->elements.page, (g->elements.n + 1) * sizeof(element));

		if (pages == NULL)
			return false;
		g->elements.page = pages;
		memset(element, 0, sizeof(element));
		for (uint32_t w = 0; w < TOK_PAGE / 64; w++) {
			uint64_t bits = g->changed[p * (TOK_PAGE / 64) + w];

			for (; bits != 0; bits &= bits - 1) {
				const uint32_t i = 64 * w + (uint32_t)__builtin_ctzll(bits);

				element[i] = element_of(g, step, p * TOK_PAGE + i);
				if (element[i] == NO_ELEMENT)
					return false;
			}
		}
		page[p] = tok_page_put(&g->elements, element);
	}
	return true;
}

/* ---- together ---- */

static void
make_literal(struct tok_literal *to, const struct tok_literal *from)
{
	*to = *from;
	to->back[0] = 0;
	to->back[1] = 0;
	for (uint32_t n = 2; n < from->n; n++) {
		uint8_t k = to->back[n - 1];

		while (k > 0 && from->text[k] != from->text[n - 1])
			k = to->back[k];
		to->back[n] = (uint8_t)(k + (from->text[k] == from->text[n - 1]));
	}
}

static bool
make_all(struct tok_vocab *v, const struct tok_model_norm *norm, struct making *g, uint32_t n_maps,
	uint32_t n_literals)
{
	uint32_t map = 0, literal = 0;

	if (!tok_vocab_table_make(v, TOK_TABLE_NORM_STEP, norm->n) ||
		(n_literals > 0 && !tok_vocab_table_make(v, TOK_TABLE_LITERAL, n_literals)) ||
		(n_maps > 0 &&
			!tok_vocab_table_make(v, TOK_TABLE_MAP_PAGE, (size_t)n_maps * TOK_PAGES)))
		return false;
	for (uint32_t i = 0; i < norm->n; i++) {
		const struct tok_model_step *from = &norm->step[i];
		struct tok_norm_step *to = &v->norm.step[i];

		*to = (struct tok_norm_step){(uint8_t)from->kind, (uint8_t)from->arg};
		if (from->kind == TOK_NORM_MAP) {
			if (!make_map(g, from, v->norm.page + map * TOK_PAGES))
				return false;
			to->arg = (uint8_t)map++;
		} else if (from->kind == TOK_NORM_LITERAL) {
			make_literal(&v->norm.literal[literal], &from->literal);
			to->arg = (uint8_t)literal++;
		}
	}
	if (n_maps == 0)
		return true;
	if (!tok_vocab_table_make(v, TOK_TABLE_MAP_ELEMENT, g->elements.n * TOK_PAGE) ||
		!tok_vocab_table_make(v, TOK_TABLE_MAP_TEXT, g->n_text + 1))
		return false;
	memcpy(v->norm.element, g->elements.page, g->elements.n * g->elements.bytes);
	memcpy(v->norm.text, g->text, g->n_text);
	return true;
}

bool
tok_norm_build(struct tok_vocab *v, const struct tok_model_norm *norm, struct tok_error *err)
{
	const struct tok_runs classes = {tok_bert_classes, tok_bert_classes_n, TOK_BERT_CLASS_BITS};
	struct making *g = calloc(1, sizeof(*g));
	uint32_t n_maps = 0, n_literals = 0;
	bool ok, refused;

	for (uint32_t i = 0; i < norm->n; i++) {
		n_maps += norm->step[i].kind == TOK_NORM_MAP;
		n_literals += norm->step[i].kind == TOK_NORM_LITERAL;
	}
	ok = norm->n == 0 || (g != NULL && tok_spread_runs(&g->bert, classes));
	if (ok && norm->n > 0) {
		g->elements.bytes = TOK_PAGE * sizeof(uint32_t);
		g->err = err;
		ok = make_all(v, norm, g, n_maps, n_literals);
	}
	refused = g != NULL && g->refused;
	if (g != NULL) {
		free(g->bert.value);
		free(g->elements.page);
		free(g->text);
	}
	free(g);
	if (!ok)
		return !refused && tok_fail(err, "out of memory for the tables of the normalizer");
	tok_norm_sum(v);
	return true;
}
