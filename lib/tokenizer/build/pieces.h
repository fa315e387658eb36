/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SentencePiece BPE models as byte-level ones. Such a model works on characters; a character that
 * is not a piece falls back to its bytes. Here the bytes of each character are merged first, before
 * all other merges, so the byte-level machine handles both. Set-up only.
 */
#pragma once

#include "vocab.h"
#include "model.h"

/*
 * Write a piece's text to `out`, with blanks for U+2581. `out` has room for len bytes. Returns the
 * length.
 */
size_t tok_piece_bytes(const char *text, size_t len, uint8_t *out);

/*
 * The most tokens that are parts: bytes, and the first two or three bytes of characters (21 and 5
 * lead bytes).
 */
#define TOK_PIECE_PARTS (256u + 21 * 64 + 5 * 64 * 64)
#define TOK_PIECE_PART_BYTES 3

/* tok_model_init, with room for what tok_piece_characters() adds. */
bool tok_piece_init(struct tok_model *m, uint32_t n_ids, size_t n_bytes, uint32_t n_merges,
	struct tok_error *err);

/* The byte that a text such as "<0x41>" stands for, or -1. */
int tok_piece_byte(const char *text, size_t len);

/*
 * Add the token of a piece. byte: as tok_piece_byte() returns it; if not -1, the token is this
 * byte. A text that contains U+0020 never occurs in normalized text: its token is `outside`.
 */
void tok_piece_put(struct tok_model *m, uint32_t id, const char *text, size_t len, int byte);

/*
 * Add the merges that make characters from bytes, and after all other tokens those that are parts
 * of characters. The model must have its tokens and no merges. A byte token of byte_fallback
 * becomes `outside` if the byte is also a character's own token. Without byte_fallback (m->unigram)
 * bytes are parts too: those of unknown characters. `file` is named in errors.
 */
bool tok_piece_characters(struct tok_model *m, const char *file, struct tok_error *err);

/*
 * Build the tables `cat`, `joins` and `cuts` from the ranks and words. From then on `ext` has no
 * more ids of parts of characters.
 */
bool tok_pieces_build(struct tok_vocab *v, struct tok_error *err);
