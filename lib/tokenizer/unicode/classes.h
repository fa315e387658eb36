/* SPDX-License-Identifier: BSD-3-Clause */
/* General categories for pretokenizers. Data in unicode/classes.c (generated). */
#pragma once

#include <stdint.h>

/* The categories that pretokenizers distinguish. White_Space takes precedence. */
enum tok_cat {
	TOK_CAT_OTHER = 0,  /* \p{C} other than white space */
	TOK_CAT_MARK = 1,   /* \p{M} */
	TOK_CAT_SYMBOL = 2, /* \p{P}, \p{S} */
	TOK_CAT_NUMBER = 3, /* \p{N} */
	TOK_CAT_SPACE = 4,  /* \s: White_Space, which is \p{Z} and some controls */
	TOK_CAT_UPPER = 5,  /* \p{Lu}, \p{Lt} */
	TOK_CAT_LOWER = 6,  /* \p{Ll} */
	TOK_CAT_LETTER = 7, /* \p{Lm}, \p{Lo}: letters without case */
};

#define TOK_CODE_POINTS 0x110000u

/* All general categories by number: "Lu", ... The last is Cc once more, for white space. */
#define TOK_N_GC 31u
#define TOK_GC_BITS 5
extern const char tok_gc_names[TOK_N_GC][3];
extern const uint8_t tok_gc_cat[TOK_N_GC]; /* enum tok_cat */

/* Runs of equal category: first code point << 5 | number; a run ends where the next begins. */
extern const uint32_t tok_unicode_runs[];
extern const uint32_t tok_unicode_n_runs;

/* The script Han: code points where membership begins and ends. */
extern const uint32_t tok_unicode_han[];
extern const uint32_t tok_unicode_n_han;
