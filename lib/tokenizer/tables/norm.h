/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Normalization in steps, as a file lists them. Each step is a stage (stages.h) that takes text and
 * passes text. Steps that look at one character at a time are one map: character to text.
 */
#pragma once

#include "unicode/classes.h"

enum tok_norm_kind {
	TOK_NORM_MAP = 0,     /* each character becomes a text */
	TOK_NORM_FORM_C = 1,  /* canonical composition; needs the marks of a run */
	TOK_NORM_FORM_D = 2,  /* canonical decomposition; likewise */
	TOK_NORM_LITERAL = 3, /* an ASCII text of several characters is replaced */
	TOK_NORM_SQUEEZE = 4, /* several characters of white space become a blank */
	TOK_NORM_STRIP = 5,   /* white space at the ends is dropped */
};
#define TOK_NORM_KINDS 6

/* What TOK_NORM_SQUEEZE replaces by one blank. */
enum tok_squeeze {
	TOK_SQUEEZE_BLANKS = 0,	 /* several blanks */
	TOK_SQUEEZE_WHITE = 1,	 /* any white space */
	TOK_SQUEEZE_SEVERAL = 2, /* several of it, or one of \n, \r and \t */
};

/* The run of white space at the end of what came. */
enum tok_white_run {
	TOK_WHITE_NONE = 0,
	TOK_WHITE_HELD = 1,  /* one character, which may stay */
	TOK_WHITE_BLANK = 2, /* its blank was released */
};

/* Of a border between words. */
enum tok_side {
	TOK_SIDE_WHITE = 0,
	TOK_SIDE_WORD = 1,
	TOK_SIDE_OTHER = 2,
};

/* TOK_NORM_STRIP */
#define TOK_STRIP_LEFT 1u
#define TOK_STRIP_RIGHT 2u

/* Of a kind, the most steps. */
#define TOK_MAPS_MAX 3
#define TOK_NORMS_MAX 10 /* of all kinds together */

/* A step: which map or literal, enum tok_squeeze, or sides. */
struct tok_norm_step {
	uint8_t kind, arg;
};

/*
 * Maps, by code point: 0: the character itself; TOK_MAP_AROUND: itself between two blanks; else
 * TOK_MAP_TEXT | offset in text[] << TOK_MAP_BITS | bytes.
 */
#define TOK_MAP_TEXT (1u << 31)
#define TOK_MAP_AROUND (1u << 30)
#define TOK_MAP_BITS 6
#define TOK_MAP_BYTES ((1u << TOK_MAP_BITS) - 1)       /* most bytes of a text */
#define TOK_MAP_TEXTS (TOK_MAP_AROUND >> TOK_MAP_BITS) /* offsets are below */

struct tok_literal {
	uint8_t n, n_to;
	uint8_t text[15], to[15];
	uint8_t back[16]; /* by bytes that matched: how many still do if the next one does not */
};
#define TOK_LITERAL_BYTES 15

struct tok_norm {
	struct tok_norm_step *step;
	uint16_t *page;	   /* [map * TOK_NORM_PAGES + code point / 256]: index of a page */
	uint32_t *element; /* pages; equal ones are stored once */
	uint8_t *text;
	struct tok_literal *literal;
	uint32_t n; /* steps */
	/* of the only step of a kind: set by tok_norm_sum */
	uint8_t squeeze, sides;
};
#define TOK_NORM_PAGES (TOK_CODE_POINTS / 256)

static inline uint32_t
tok_map_element(const struct tok_norm *t, uint32_t map, uint32_t cp)
{
	return t->element[(uint32_t)t->page[map * TOK_NORM_PAGES + (cp >> 8)] << 8 | (cp & 255)];
}
