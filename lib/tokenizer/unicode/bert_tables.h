/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of code points for BERT's normalizer and pretokenizer, as the reference has them. Data
 * in bert_tables.c (generated; tools/gen/bert-tables names the source of each property).
 */
#ifndef TOK_BERT_TABLES_H
#define TOK_BERT_TABLES_H

#include <stdint.h>

enum tok_bert_class {
	TOK_BERT_PLAIN = 0,
	TOK_BERT_BLANK = 1,	    /* White_Space */
	TOK_BERT_PUNCT = 2,	    /* a word by itself */
	TOK_BERT_MARK = 3,	    /* nonspacing: removed with accents */
	TOK_BERT_CONTROL = 4,	    /* removed from clean text */
	TOK_BERT_CONTROL_BLANK = 5, /* likewise; white space if text is not cleaned */
};

/* Runs of equal class: first code point << 3 | class; a run ends where the next begins. */
extern const uint32_t tok_bert_classes[];
extern const uint32_t tok_bert_classes_n;

/* Canonical combining classes, likewise: first code point << 8 | class. */
extern const uint32_t tok_bert_ccc[];
extern const uint32_t tok_bert_ccc_n;

/*
 * Canonical decompositions without their marks, zero-padded; ascending. Not listed: characters that
 * decompose to themselves, marks, and Hangul syllables (Unicode 16, section 3.12).
 */
struct tok_bert_strip {
	uint32_t from, to[3];
};
extern const struct tok_bert_strip tok_bert_strip[];
extern const uint32_t tok_bert_strip_n;

/* Lower case of one character, if it differs; ascending. Not listed: U+0130, which becomes two. */
struct tok_bert_lower {
	uint32_t from, to;
};
extern const struct tok_bert_lower tok_bert_lower[];
extern const uint32_t tok_bert_lower_n;

#endif
