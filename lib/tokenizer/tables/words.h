/* SPDX-License-Identifier: BSD-3-Clause */
/* What vocabularies have that take a text word by word: WordPiece and Unigram, and their
 * normalizers. */
#ifndef TOK_WORDS_H
#define TOK_WORDS_H

#include "bert_norm.h"
#include "kinds.h"

struct tok_wordpiece {
	struct tok_bert_norm norm;
	uint32_t unk;
	uint32_t max_chars;
	/* decoding: an id's text at the start, and behind other ids; by outside id */
	struct tok_span *at_start, *behind;
	uint8_t *text;
};

/* tok_vocab.cat has the properties of grapheme.h for it. */
struct tok_spm_norm {
	uint32_t *unit; /* of the trie; NULL: no map */
	uint8_t *text;	/* each ends with a NUL */
	bool on;	/* there is something to do */
	bool strip_left, strip_right, squeeze, squeeze_to_mark;
	bool sentencepiece;
	uint32_t dummy; /* enum tok_dummy */
	bool white;	/* one of the four */
	bool parts;	/* set-up: some added token is looked for in what comes of it */
	/* By ASCII character: it is printable, and no key; sentencepiece: none that only ASCII
	   follows in begins with it */
	bool stays[0x80];
};

struct tok_unigram {
	struct tok_spm_norm norm;
	uint32_t unk;
	uint32_t prefix; /* enum tok_prefix */
	bool words, blanks, split;
	bool byte_fallback; /* what is unknown becomes tok_vocab.ext[] of its bytes */
	bool border[256]; /* by a character's first byte: it may be one between words, or a blank */
};

#endif
