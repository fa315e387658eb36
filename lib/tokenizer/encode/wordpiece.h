/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BERT's tokenizer. bert_norm.h splits the text into words. A word is split by longest match. If
 * that does not reach its end, or the word has more than max_chars characters, the word becomes the
 * unknown token. The second trie of tok_vocab.longest holds tokens without their ##.
 */
#pragma once

#include "vocab.h"

/* State of the open word, tok_stream.state. */
enum tok_word_state {
	TOK_WORD_NONE = 0,    /* no word is open */
	TOK_WORD_OPEN = 1,    /* its ids wait in tok_stream.word */
	TOK_WORD_UNKNOWN = 2, /* it is unknown, and the unknown token was released */
};

void tok_wordpiece_open(struct tok_stream *s);

/*
 * Take some of the well-formed text [p, end), at least a character. Returns the end of what was
 * taken. An id is released when its word ends or is certain to be unknown.
 */
const uint8_t *tok_wordpiece_take(
	struct tok_stream *s, const uint8_t *p, const uint8_t *end, uint32_t **ids);

/* End the open word. */
void tok_wordpiece_finish(struct tok_stream *s, uint32_t **ids);

/* Append the ids of n bytes, after which a word ends. No word may be open. Returns the next free
 * id. */
uint32_t *tok_wordpiece_word(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t *ids);

/* As tok_decode. *begun: there is text before the first id; it is updated. */
struct tok_result tok_wordpiece_decode(const struct tok_vocab *v, bool *begun, const uint32_t *ids,
	size_t n, uint8_t *out, size_t room);
