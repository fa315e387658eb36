/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of code points for BERT's normalizer and pretokenizer, as the reference has them. Its
 * decompositions and combining classes are those of nfc_tables.h. Data in bert_tables.c (generated;
 * tools/gen/bert-tables names the source of each property).
 */
#pragma once

#include <stdint.h>

enum tok_bert_class {
	TOK_BERT_PLAIN = 0,
	TOK_BERT_BLANK = 1,	    /* White_Space */
	TOK_BERT_PUNCT = 2,	    /* a word by itself */
	TOK_BERT_MARK = 3,	    /* nonspacing: removed with accents */
	TOK_BERT_CONTROL = 4,	    /* removed from clean text */
	TOK_BERT_CONTROL_BLANK = 5, /* likewise; white space if text is not cleaned */
};

/* Runs of equal class: first code point << bits | class; a run ends where the next begins. */
#define TOK_BERT_CLASS_BITS 3
extern const uint32_t tok_bert_classes[];
extern const uint32_t tok_bert_classes_n;

/*
 * Characters that differ from their lower case, ascending: every `step`-th from `first` to `last`
 * becomes the one `by` after it. Not listed: U+0130, which becomes two.
 */
struct tok_bert_lower {
	uint32_t first, last, step;
	int32_t by;
};
extern const struct tok_bert_lower tok_bert_lower[];
extern const uint32_t tok_bert_lower_n;
