/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of vocabularies that encode word by word, WordPiece and Unigram, and of their normalizers.
 */
#pragma once

#include "bert_norm.h"
#include "kinds.h"

struct tok_wordpiece {
	struct tok_bert_norm norm;
	uint32_t unk;
	uint32_t max_chars;
	bool whole; /* WordLevel: no token continues a word */
	/* decoding, by outside id: an id's text at the start, and its text after other ids */
	struct tok_span *at_start, *behind;
	uint8_t *text;
};

/* SentencePiece's normalizer. tok_vocab.cat has the properties of grapheme.h for it. */
struct tok_spm_norm {
	uint32_t *unit; /* of the trie; NULL: no map */
	uint8_t *text;	/* each ends with a NUL */
	bool on;	/* the normalizer changes anything at all */
	bool strip_left, strip_right, squeeze, squeeze_to_mark;
	bool sentencepiece;
	uint32_t dummy;	  /* enum tok_dummy */
	bool white;	  /* at least one of the four above is set */
	uint32_t several; /* set-up: the most ids of a key of several characters, by character */
	bool parts;	  /* set-up: some added token is searched in its output */
	/* By ASCII character: printable, and not a key; sentencepiece: no key of only ASCII begins
	   with it */
	bool stays[0x80];
	bool all_stay; /* all that are printable; not for sentencepiece */
};

struct tok_unigram {
	struct tok_spm_norm norm;
	uint32_t unk;
	uint32_t prefix; /* enum tok_prefix */
	bool words, blanks, split;
	bool byte_fallback; /* an unknown character becomes tok_vocab.ext[] of its bytes */
	bool border[256];   /* by first byte: a character that may be a border between words, or a
			       blank */
};
