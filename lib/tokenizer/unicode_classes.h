/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of code points as pretokenizers need them. Data in unicode_classes.c (generated). */
#ifndef TOK_UNICODE_CLASSES_H
#define TOK_UNICODE_CLASSES_H

#include <stdint.h>

enum tok_class {
	TOK_CLASS_OTHER = 0,
	TOK_CLASS_LETTER = 1, /* \p{L} */
	TOK_CLASS_NUMBER = 2, /* \p{N} */
	TOK_CLASS_SPACE = 3,  /* \s: White_Space */
};

#define TOK_CODE_POINTS 0x110000u

extern const char tok_unicode_version[];

/* Runs of equal class: first code point << 2 | class; a run ends where the next begins. */
extern const uint32_t tok_unicode_runs[];
extern const uint32_t tok_unicode_n_runs;

#endif
