/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Added tokens: texts that are cut out before pretokens are, each with an id of its own. Of those
 * that begin at the same place the longest is taken, then the search goes on behind it (leftmost,
 * longest). What is between two is tokenized as a text by itself.
 *
 * There are two sets, as in the reference: one is looked for in the text as it comes, the other
 * behind the normalizer, in what the first has left.
 */
#ifndef TOK_ADDED_H
#define TOK_ADDED_H

#include "vocab.h"

/* A piece of text: whole characters. */
struct tok_added_piece {
	const uint8_t *p;
	size_t n;
	bool last;    /* the text ends here */
	bool special; /* special tokens are recognised; otherwise they are text */
	/* private, zero at the start: places in held[] and the piece behind it */
	size_t from;  /* what comes before is given out */
	size_t to;    /* behind `from`: text to be given out */
	size_t next;  /* where the search goes on */
	size_t white; /* the last run of white space that was looked at ends here */
	uint32_t id;  /* of the token behind `to`, or TOK_NO_TOKEN; its text ends at `next` */
	bool strips;  /* that token takes the white space behind it */
	bool found;   /* to, next and id are valid */
};

struct tok_added_span {
	const uint8_t *p; /* TOK_ADDED_TEXT: n bytes, whole characters, at least one */
	size_t n;
	uint32_t id;   /* TOK_ADDED_TOKEN */
	size_t at;     /* where it begins, counted from what was held when the piece came */
	size_t behind; /* where it ends */
};

enum tok_added_result {
	TOK_ADDED_DONE,	 /* the piece is taken */
	TOK_ADDED_TEXT,	 /* text that belongs to no added token */
	TOK_ADDED_TOKEN, /* an added token: what came before it is a text that ends here */
	TOK_ADDED_FULL,	 /* more than TOK_ADDED_HELD_MAX bytes are undecided: the text is over */
};

/* What is certain, piece by piece, until TOK_ADDED_DONE. Text lies in the piece or in *a. */
enum tok_added_result tok_added_next(struct tok_added_state *a, const struct tok_added *set,
	struct tok_added_piece *piece, struct tok_added_span *span);

static inline void
tok_added_init(struct tok_added_state *a)
{
	a->n_held = a->begun = 0;
	a->strip = a->word = false;
}

/* Whether a token of the set can be recognised, by enum tok_flags. */
static inline bool
tok_added_active(const struct tok_vocab *v, enum tok_added_which which, uint32_t flags)
{
	const struct tok_added *set = &v->added[which];

	/* sentencepiece's normalizer looks for its own (spm_longest.c). */
	return set->n > 0 && !(flags & TOK_ADDED_AS_TEXT) &&
	       !(v->unigram.norm.sentencepiece && which == TOK_ADDED_TEXT_SET) &&
	       (set->plain || (flags & TOK_SPECIAL));
}

#endif
