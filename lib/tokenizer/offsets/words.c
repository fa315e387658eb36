/* SPDX-License-Identifier: BSD-3-Clause */
/* Split the text into the words of wordpiece.c again, and find where their characters come from.
 * Opt-in. */
#include "offsets.h"
#include "unicode/utf8.h"
#include "encode/wordpiece.h"

struct word {
	struct tok_offsets *o;
	struct tok_range from;		       /* the current character */
	struct tok_range at[TOK_WORD_MAX + 1]; /* what its characters come from */
	uint32_t n;			       /* characters, as the normalizer leaves them */
	uint32_t n_marks;		       /* the last of them are marks, not sorted yet */
	struct tok_range all;
};

/* Marks of a run are reordered, so each of them gets the range of the whole run. */
static void
settle(struct word *w)
{
	const uint32_t first = w->n - w->n_marks;

	for (uint32_t i = 0; i < w->n_marks; i++)
		w->at[first + i] = (struct tok_range){w->at[first].begin, w->all.end};
	w->n_marks = 0;
}

static void
add_char(struct word *w, uint32_t ccc)
{
	if (ccc == 0)
		settle(w);
	if (w->n == 0)
		w->all.begin = w->from.begin;
	w->all.end = w->from.end;
	if (w->n > TOK_WORD_MAX)
		return; /* unknown in every vocabulary */
	w->at[w->n++] = w->from;
	w->n_marks += ccc != 0 && w->n <= TOK_WORD_MAX;
}

/* Length of the ## before the text of an id that continues a word. */
static uint32_t
prefix_of(const struct tok_vocab *v, uint32_t id)
{
	const struct tok_span *span = &v->span[id];

	return !v->wordpiece.whole && span->len > 2 && memcmp(v->bytes + span->off, "##", 2) == 0
		       ? 2
		       : 0;
}

/* Characters of a word that an id stands for: the first one has no ## to leave out. */
static uint32_t
chars_of(const struct tok_vocab *v, uint32_t id, bool first)
{
	const uint32_t skip = first ? 0 : prefix_of(v, id);

	return (uint32_t)tok_utf8_count(v->bytes + v->span[id].off + skip, v->span[id].len - skip);
}

/* Number of ids that the word of n characters has: one, or as many as spell it. */
static uint32_t
ids_of_word(const struct tok_vocab *v, const uint32_t *id, size_t left, uint32_t n)
{
	uint32_t n_ids = 1, chars = chars_of(v, id[0], true);

	if (id[0] == v->wordpiece.unk)
		return 1;
	while (chars < n && n_ids < left && id[n_ids] < v->info.n_ids &&
		prefix_of(v, id[n_ids]) > 0)
		chars += chars_of(v, id[n_ids++], false);
	return n_ids;
}

static bool
end_word(struct word *w)
{
	const struct tok_vocab *v = w->o->vocab;
	const uint32_t *id = w->o->ids + w->o->next;
	const size_t left = w->o->n_ids - w->o->next;
	struct tok_range *range = w->o->range + w->o->next;
	uint32_t n_ids, at = 0, n = w->n;

	settle(w);
	w->n = 0;
	if (n == 0)
		return true;
	if (left == 0 || id[0] >= v->info.n_ids)
		return false;
	n_ids = ids_of_word(v, id, left, n);
	tok_offsets_word(w->o, n_ids);
	w->o->next += n_ids;
	w->o->n_word++;
	if (n_ids == 1) {
		range[0] = w->all;
		return true;
	}
	for (uint32_t i = 0; i < n_ids; i++) {
		const uint32_t chars = chars_of(v, id[i], i == 0);

		if (chars == 0 || chars > n - at)
			return false;
		range[i] = (struct tok_range){w->at[at].begin, w->at[at + chars - 1].end};
		at += chars;
	}
	return at == n;
}

static bool
add_any(struct word *w, uint32_t cp)
{
	uint32_t element[TOK_BERT_SEQ_MAX];
	const uint32_t n = tok_bert_expand(&w->o->vocab->wordpiece.norm, cp, element);
	bool ok = true;

	for (uint32_t i = 0; ok && i < n; i++) {
		const enum tok_bert_kind kind = TOK_BERT_KIND(element[i]);

		if (kind == TOK_BERT_BARRIER) {
			settle(w);
			continue;
		}
		ok = kind == TOK_BERT_CHAR || end_word(w);
		if (kind != TOK_BERT_SPACE)
			add_char(w, TOK_BERT_CCC(element[i]));
		ok = ok && (kind != TOK_BERT_ALONE || end_word(w));
	}
	return ok;
}

bool
tok_offsets_wordpiece(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	struct word w = {.o = o};
	struct tok_spm_char c;

	(void)next;
	while (tok_source_char(source, &c)) {
		w.from = c.from;
		if (!add_any(&w, tok_utf8_decode(c.p, c.len)))
			return false;
	}
	return end_word(&w);
}
