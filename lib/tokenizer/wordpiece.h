/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BERT's tokenizer: bert_norm.h makes words of the text, and a word is split by longest match
 * first: the longest token that begins it, then the longest "##" token that goes on, to its end; if
 * there is none, or the word has more than max_chars characters, it is the unknown token.
 *
 * One pass over the bytes finds it (Song et al., "Fast WordPiece Tokenization", EMNLP 2021): a
 * trie with failure links. Where no child goes on, the node's `pop` are the tokens that longest
 * match surely takes of what the node spells, and `fail` spells what is left of it.
 */
#ifndef TOK_WORDPIECE_H
#define TOK_WORDPIECE_H

#include "bert_norm.h"
#include "vocab.h"

/* Two tries in one array: below node 0 tokens that begin a word, below node 1 those that go on. */
#define TOK_WP_BEGIN 0u
#define TOK_WP_GO_ON 1u

/* Numbered breadth first, as struct tok_node. */
struct tok_wp_node {
	uint64_t child[4]; /* bit b: there is a child for byte b */
	uint8_t below[4];  /* number of children in child[0 .. i) */
	uint32_t first;	   /* node of the first child */
	uint32_t fail;	   /* or TOK_NO_TOKEN: no token goes on from here, nor a shorter one */
	uint32_t pop;	   /* place in pop[] */
	uint32_t n_pop;
	uint32_t reserved[3];
};
static_assert(sizeof(struct tok_wp_node) == 64, "one cache line");

struct tok_wordpiece {
	struct tok_bert_norm norm;
	struct tok_wp_node *node;
	uint32_t *pop; /* outside ids */
	uint32_t unk;
	uint32_t max_chars;
	/* decoding: an id's text at the start, and behind other ids; by outside id */
	struct tok_span *at_start, *behind;
	uint8_t *text;
};

/* State of the open word, tok_stream.state. */
enum tok_word_state {
	TOK_WORD_NONE = 0,    /* no word is open */
	TOK_WORD_OPEN = 1,    /* its ids wait in tok_stream.word */
	TOK_WORD_UNKNOWN = 2, /* it is the unknown token, which has been given out */
};

void tok_wordpiece_open(struct tok_stream *s);

/* Well-formed text. An id is given out when its word ends, or is certainly unknown. */
void tok_wordpiece_feed(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids);

/* The text ends: so does the open word. */
void tok_wordpiece_finish(struct tok_stream *s, uint32_t **ids);

/* As tok_decode, but the first id has `begun` text before it or not. */
struct tok_result tok_wordpiece_decode(const struct tok_vocab *v, bool begun, const uint32_t *ids,
	size_t n, uint8_t *out, size_t room);

/* Set-up: v->span and v->bytes are there. */
bool tok_wordpiece_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err);

#endif
