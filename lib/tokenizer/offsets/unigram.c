/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Split the text into the words of unigram_words.c again, and find where their pieces come from.
 * The words are encoded again, because an id for a run of unknown characters does not give its
 * length. Opt-in.
 */
#include "encode/unigram.h"
#include "encode/unigram_words.h"
#include "offsets.h"

/* The text between two added tokens. */
struct section {
	struct tok_offsets *o;
	struct tok_stream word;		      /* the open one */
	struct tok_range from[TOK_CARRY_MAX]; /* by its bytes */
	struct tok_range unknown;	      /* the open run of unknown characters */
	uint32_t n_unknown;		      /* its bytes */
	bool literal;			      /* it is the unknown piece's text */
};

/* ---- a word ---- */

/* End the run of unknown characters: each of its ids gets the range of the whole run. */
static bool
end_unknown(struct section *x)
{
	const struct tok_unigram *u = &x->o->vocab->unigram;
	const bool bytes = u->byte_fallback && !x->literal;
	uint32_t n = x->n_unknown;

	if (n > 0 && !bytes)
		n = 1;
	for (; n > 0; n--) {
		struct tok_range *range = tok_offsets_next(x->o, bytes ? TOK_NO_TOKEN : u->unk);

		if (range == NULL)
			return false;
		*range = x->unknown;
	}
	x->n_unknown = 0;
	return true;
}

static bool
end_piece(struct section *x, uint32_t piece, const struct tok_range *from, uint32_t n)
{
	const bool is_char = piece & TOK_UNKNOWN_CHAR;
	struct tok_range *range;

	if (is_char || piece == x->o->vocab->unigram.unk) {
		if (x->n_unknown == 0)
			x->unknown.begin = from[0].begin;
		x->literal = x->n_unknown == 0 && !is_char;
		x->unknown.end = from[n - 1].end;
		x->n_unknown += n;
		return true;
	}
	if (!end_unknown(x))
		return false;
	range = tok_offsets_next(x->o, piece);
	if (range == NULL)
		return false;
	*range = (struct tok_range){from[0].begin, from[n - 1].end};
	return true;
}

/* Give ranges to the ids of the first n bytes of the word. */
static bool
spell(struct section *x, uint32_t n)
{
	struct tok_stream *s = &x->word;

	tok_unigram_turn(s, n);
	for (uint32_t at = 0; at < n;) {
		const uint32_t piece = s->pos[at], len = tok_unigram_bytes(s->vocab, piece);

		if (!end_piece(x, piece, x->from + at, len))
			return false;
		at += len;
	}
	tok_unigram_drop(s, n);
	memmove(x->from, x->from + n, s->n_pos * sizeof(x->from[0]));
	return true;
}

static bool
push(struct section *x, const uint8_t *p, uint32_t len, struct tok_range from)
{
	struct tok_stream *s = &x->word;

	if (s->n_pos + len > TOK_CARRY_MAX && !spell(x, tok_unigram_certain(s)))
		return false;
	if (s->n_pos + len > TOK_CARRY_MAX)
		return false;
	for (uint32_t i = 0; i < len; i++)
		x->from[s->n_pos + i] = from;
	tok_unigram_take(s, p, len);
	s->state = TOK_UNIGRAM_OPEN;
	return true;
}

static bool
end_word(struct section *x)
{
	struct tok_stream *s = &x->word;

	if (s->state != TOK_UNIGRAM_OPEN)
		return true;
	if (!spell(x, s->n_pos) || !end_unknown(x))
		return false;
	tok_unigram_open(s);
	s->state = TOK_UNIGRAM_GAP;
	x->o->n_word++;
	return true;
}

/* ---- words ---- */

static bool
add_char(struct section *x, const struct tok_spm_char *c)
{
	static const uint8_t blank = ' ';
	const struct tok_unigram *u = &x->o->vocab->unigram;
	uint32_t len;

	switch (tok_unigram_border_at(u, c->p, &len)) {
	case TOK_BORDER_WHITE:
		return end_word(x);
	case TOK_BORDER_BLANK:
		return (!u->split || end_word(x)) && push(x, &blank, 1, c->from);
	case TOK_BORDER_NONE:
		break;
	}
	/* A blank put before the word has the range of the first character. */
	return (!tok_unigram_wants_prefix(&x->word) || push(x, &blank, 1, c->from)) &&
	       push(x, c->p, c->len, c->from);
}

bool
tok_offsets_unigram(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source)
{
	struct tok_spm_char c;
	struct section x;

	(void)next;
	x.o = o;
	x.n_unknown = 0;
	x.literal = false;
	tok_stream_init(&x.word, o->vocab, NULL, 0);
	x.word.unigram.later = o->later;
	while (tok_source_char(source, &c)) {
		if (!add_char(&x, &c))
			return false;
	}
	return end_word(&x);
}
