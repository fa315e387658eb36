/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unigram: find the segmentation of a word into pieces with the highest sum of scores. As in the
 * reference, scores are added from left to right, and of equal sums the one with the longest last
 * piece wins (models/unigram/model.rs, encode_optimized). For a .model, sums have single precision
 * and run over the whole text, as in sentencepiece (unigram_model.cc).
 *
 * Text is first normalized (spm_norm.h), then split into words (unigram_words.c).
 */
#pragma once

#include "vocab.h"

/*
 * A piece must have fewer bytes than this: only so many scores are kept. They share memory with
 * tok_stream.held.
 */
#define TOK_PIECE_BYTES_MAX TOK_UNIGRAM_SCORES

/* tok_stream.state */
enum tok_unigram_word {
	TOK_UNIGRAM_START = 0, /* at the start of a text between two added tokens */
	TOK_UNIGRAM_OPEN = 1,  /* a word is open */
	TOK_UNIGRAM_GAP = 2,   /* a word has ended */
};

/* tok_unigram_state.run */
enum tok_unigram_run {
	TOK_RUN_NONE = 0,    /* the last id is that of a piece */
	TOK_RUN_OPEN = 1,    /* unknown; unknown characters that follow share its id */
	TOK_RUN_LITERAL = 2, /* byte_fallback: the unknown piece's own text; its id is held back */
};

/* Begin a text. */
void tok_unigram_init(struct tok_stream *s);

/* Feed normalized text. False: more than TOK_CARRY_MAX bytes are uncertain. */
bool tok_unigram_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);

/* End the open word: a border between words is certain to follow. */
void tok_unigram_border(struct tok_stream *s, uint32_t **ids);

/* ---- one word (unigram.c) ---- */

void tok_unigram_open(struct tok_stream *s);

/* Append whole characters to it. False: more than TOK_CARRY_MAX bytes are uncertain. */
bool tok_unigram_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids);

/* Release the ids that no later byte can change, as far as a bounded number of steps shows it.
 * Returns the next free id. */
uint32_t *tok_unigram_release(struct tok_stream *s, uint32_t *ids);

/* End the word: release all its ids, and open the next one. */
uint32_t *tok_unigram_close(struct tok_stream *s, uint32_t *ids);

/* Flag in tok_stream.pos: the entry is a code point that is not a piece. */
#define TOK_UNKNOWN_CHAR 0x80000000u

/* ---- its parts, for offsets ---- */

/* Append a character of len bytes. There must be room for it. */
void tok_unigram_take(struct tok_stream *s, const uint8_t *p, uint32_t len);

/* Number of bytes of the word whose pieces no later byte can change. */
uint32_t tok_unigram_certain(const struct tok_stream *s);

/*
 * Put the best segmentation up to position `end` in order: then pos[at] is the piece that begins at
 * `at`. It is traced back from the end and reversed in place: a piece is read at its last byte and
 * written at its first, which is after every entry still to be read.
 */
void tok_unigram_turn(struct tok_stream *s, uint32_t end);

/* Drop the first n bytes of the word: their ids were released. */
void tok_unigram_drop(struct tok_stream *s, uint32_t n);
