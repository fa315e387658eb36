/* SPDX-License-Identifier: BSD-3-Clause */
/* General categories for pretokenizers. Data in unicode/classes.c (generated). */
#pragma once

#include <stdint.h>

/* The categories that pretokenizers distinguish. White_Space takes precedence. */
enum tok_cat {
	TOK_CAT_OTHER = 0,  /* \p{C}, and \p{Z} other than white space */
	TOK_CAT_MARK = 1,   /* \p{M} */
	TOK_CAT_SYMBOL = 2, /* \p{P}, \p{S} */
	TOK_CAT_NUMBER = 3, /* \p{N} */
	TOK_CAT_SPACE = 4,  /* \s: White_Space */
	TOK_CAT_UPPER = 5,  /* \p{Lu}, \p{Lt} */
	TOK_CAT_LOWER = 6,  /* \p{Ll} */
	TOK_CAT_LETTER = 7, /* \p{Lm}, \p{Lo}: letters without case */
};

#define TOK_CODE_POINTS 0x110000u

extern const char tok_unicode_version[];

/* Runs of equal category: first code point << 3 | category; a run ends where the next begins. */
extern const uint32_t tok_unicode_runs[];
extern const uint32_t tok_unicode_n_runs;
