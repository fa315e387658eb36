/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unigram: of all ways to spell a word by pieces the one with the highest sum of scores. Sums are
 * taken from left to right, and of ways that are equal in them the one whose last piece is longest
 * is taken, as the reference does (models/unigram/model.rs, encode_optimized). Of a .model sums are
 * of single precision, over the whole text, as sentencepiece takes them (unigram_model.cc).
 *
 * Text becomes words before (unigram_words.c), and is normalized before that (spm_norm.h).
 */
#ifndef TOK_UNIGRAM_H
#define TOK_UNIGRAM_H

#include "vocab.h"

/*
 * A piece may have fewer bytes than this: only so many scores are kept, in the place of
 * tok_stream.held.
 */
#define TOK_PIECE_BYTES_MAX TOK_UNIGRAM_SCORES

/* tok_stream.state */
enum tok_unigram_word {
	TOK_UNIGRAM_START = 0, /* nothing has come of the text between two added tokens */
	TOK_UNIGRAM_OPEN = 1,  /* a word is open */
	TOK_UNIGRAM_GAP = 2,   /* one has ended */
};

/* tok_unigram_state.run */
enum tok_unigram_run {
	TOK_RUN_NONE = 0,    /* the last id is of a piece */
	TOK_RUN_OPEN = 1,    /* something unknown; what goes on with it is of the same id */
	TOK_RUN_LITERAL = 2, /* the unknown piece's own text, whose id waits: byte_fallback */
};

/* A text begins. */
void tok_unigram_init(struct tok_stream *s);

/* Well-formed text behind the normalizer; false: more than TOK_CARRY_MAX bytes are uncertain. */
bool tok_unigram_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);

/* The text between two added tokens ends. */
void tok_unigram_finish(struct tok_stream *s, uint32_t **ids);

/* A border between words is certain to follow: the open word is over. */
void tok_unigram_border(struct tok_stream *s, uint32_t **ids);

/* ---- one word (unigram.c) ---- */

void tok_unigram_open(struct tok_stream *s);

/* Append whole characters to it. False: more than TOK_CARRY_MAX bytes are uncertain. */
bool tok_unigram_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids);

/* Give out the ids that no later byte can change. Returns the next free id. */
uint32_t *tok_unigram_release(struct tok_stream *s, uint32_t *ids);

/* It ends here: give out all its ids, and open the next. */
uint32_t *tok_unigram_close(struct tok_stream *s, uint32_t *ids);

/* In tok_stream.pos: a character that no piece is, with which one. */
#define TOK_UNKNOWN_CHAR 0x80000000u

/* ---- its parts, for offsets ---- */

/* Append a character of len bytes, for which there is room. */
void tok_unigram_take(struct tok_stream *s, const uint8_t *p, uint32_t len);

/* Bytes of the word whose pieces no later byte can change. */
uint32_t tok_unigram_certain(const struct tok_stream *s);

/*
 * The best way for position `end`, in order: pos[at] is the piece that begins at `at`. It is found
 * from its end, and turned round in place: a piece is read at its last byte and put at its first,
 * behind all that is still to be read.
 */
void tok_unigram_turn(struct tok_stream *s, uint32_t end);

/* Its first n bytes are given out. */
void tok_unigram_drop(struct tok_stream *s, uint32_t n);

#endif
