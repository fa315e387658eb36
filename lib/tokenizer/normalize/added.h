/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Added tokens: strings that are cut out of the text before pretokenization. Each has its own id.
 * Matching is leftmost-longest. The text between two added tokens is tokenized as a separate text.
 *
 * There are two sets, as in the reference. One is searched in the original text. The other is
 * searched in the normalized text between the tokens of the first.
 */
#pragma once

#include "vocab.h"

/* A piece of text: whole characters. */
struct tok_added_piece {
	const uint8_t *p;
	size_t n;
	bool last;		       /* the text ends here */
	bool special;		       /* special tokens are recognised; otherwise they are text */
	const struct tok_vocab *model; /* leaves in the text what this model finds; or NULL */
	/* private, zero at the start: offsets in held[] followed by the piece */
	size_t from;  /* everything before was released */
	size_t to;    /* [from, to): text to be released */
	size_t next;  /* the search continues here */
	size_t white; /* end of the last run of white space that was scanned */
	uint32_t id;  /* of the token after `to`, which ends at `next`; or TOK_NO_TOKEN */
	bool strips;  /* that token takes the white space after it */
	bool found;   /* to, next and id are valid */
};

struct tok_added_span {
	const uint8_t *p; /* TOK_ADDED_TEXT: n bytes, whole characters, at least one */
	size_t n;
	bool ends;     /* TOK_ADDED_TEXT: a token or the end of the text follows */
	uint32_t id;   /* TOK_ADDED_TOKEN */
	size_t at;     /* where it begins, counted from held[0] at the time the piece came */
	size_t behind; /* where it ends */
};

enum tok_added_result {
	TOK_ADDED_DONE,	 /* the piece is consumed */
	TOK_ADDED_TEXT,	 /* text outside of added tokens */
	TOK_ADDED_TOKEN, /* an added token: the text before it ends here */
	TOK_ADDED_FULL,	 /* error: more than TOK_ADDED_HELD_MAX bytes are undecided */
};

/* The next text or token that is certain; call until TOK_ADDED_DONE. Text lies in the piece or in
 * *a. */
enum tok_added_result tok_added_next(struct tok_added_state *a, const struct tok_added *set,
	struct tok_added_piece *piece, struct tok_added_span *span);

/* Before tok_added_next: is it not needed, as the text ends with this piece, nothing waits before
 * it and no token begins in it? */
bool tok_added_none(const struct tok_added_state *a, const struct tok_added *set,
	struct tok_added_piece *piece);

static inline void
tok_added_init(struct tok_added_state *a)
{
	a->n_held = a->begun = 0;
	a->strip = a->word = false;
}

/* Can any token of the set be recognised with these enum tok_flags? */
static inline bool
tok_added_active(const struct tok_vocab *v, enum tok_added_which which, uint32_t flags)
{
	const struct tok_added *set = &v->added[which];

	/* sentencepiece's normalizer finds its own user-defined pieces (spm_longest.c). */
	return set->n > 0 && !(flags & TOK_ADDED_AS_TEXT) &&
	       !(v->unigram.norm.sentencepiece && which == TOK_ADDED_TEXT_SET) &&
	       (set->plain || (flags & TOK_SPECIAL));
}
