/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SentencePiece's models as byte-level ones: text is in characters there, and a character that is
 * no piece falls back to its bytes. Here each character is merged of its bytes first, before all
 * else, so that the same machine does both. Set-up only.
 */
#ifndef TOK_PIECES_H
#define TOK_PIECES_H

#include "vocab.h"
#include "model.h"

/* Bytes of a piece's text, blanks for U+2581, to out, which has room for len. Returns their number.
 */
size_t tok_piece_bytes(const char *text, size_t len, uint8_t *out);

/* Bytes, and beginnings of two and three bytes that characters have: by 21 and 5 lead bytes. */
#define TOK_PIECE_PARTS (256u + 21 * 64 + 5 * 64 * 64)
#define TOK_PIECE_PART_BYTES 3

/* tok_model_init, with room for what tok_piece_characters adds. */
bool tok_piece_init(struct tok_model *m, uint32_t n_ids, size_t n_bytes, uint32_t n_merges,
	struct tok_error *err);

/* The byte that "<0x41>" and the like stand for, or -1. */
int tok_piece_byte(const char *text, size_t len);

/*
 * Append a piece's token, as tok_model_put does: text, or a byte if that is not -1. Text with
 * U+0020 in it never comes: outside.
 */
void tok_piece_put(struct tok_model *m, uint32_t id, const char *text, size_t len, int byte);

/*
 * Of a model whose tokens are there, and no merges: the merges that make characters, and behind all
 * other tokens those that are part of one. A byte that is a character's token too is outside then.
 * Without byte_fallback, which m->unigram says, bytes are parts as well: of what is unknown.
 * `file` names it in errors.
 */
bool tok_piece_characters(struct tok_model *m, const char *file, struct tok_error *err);

/*
 * Of a vocabulary whose ranks and words are there, whole characters but for single bytes: which
 * code points are in a token, and the bits of tok_vocab.joins. Both are zero before.
 */
void tok_pieces_mark(
	const struct tok_vocab *v, uint32_t join_shift, uint8_t *known, uint64_t *joins);

/* The tables that say so. */
bool tok_pieces_build(struct tok_vocab *v, struct tok_error *err);

#endif
