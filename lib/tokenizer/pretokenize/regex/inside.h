/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of the compiler. */
#pragma once

#include "regex.h"

/* Memory of one compilation, freed at once, and where errors go. */
struct rx {
	const char *where;
	struct tok_error *err;
	struct rx_chunk *chunks;
	uint32_t number, of;  /* of the expression that is parsed, from 1 */
	uint64_t work, bytes; /* done and allocated so far */
};

/* Zeroed memory. NULL with rx->err filled in. */
void *rx_alloc(struct rx *rx, size_t n, size_t size);
void rx_free(struct rx *rx);

/* Steps of work, which are limited: false with rx->err filled in if there are too many. */
bool rx_work(struct rx *rx, uint64_t n);
bool rx_too_much(struct rx *rx); /* always false */

/* ---- sets of characters: code points where membership changes, ascending (sets.c) ---- */

struct rx_set {
	uint32_t n;
	uint32_t *at;
};

struct rx_range {
	uint32_t low, high;
};

/* Each returns NULL if memory is short. */
struct rx_set *rx_set_of(struct rx *rx, struct rx_range *range, uint32_t n); /* sorts range[] */
struct rx_set *rx_set_not(struct rx *rx, const struct rx_set *a);
struct rx_set *rx_set_or(struct rx *rx, const struct rx_set *a, const struct rx_set *b);
struct rx_set *rx_set_and(struct rx *rx, const struct rx_set *a, const struct rx_set *b);
bool rx_set_equal(const struct rx_set *a, const struct rx_set *b);

/* A general category ("L", "Lu"), or a script ("Han"). *known: false if there is none of the name.
 */
struct rx_set *rx_set_property(struct rx *rx, const char *name, size_t n, bool *known);
/* \s, \d, \w */
struct rx_set *rx_set_escape(struct rx *rx, char letter, bool in_brackets);
/* What the reference's own splits take for it. */
struct rx_set *rx_set_punctuation(struct rx *rx);
struct rx_set *rx_set_numeric(struct rx *rx);

/* ---- trees (parse.c) ---- */

enum rx_kind {
	RX_EMPTY,
	RX_SET,	   /* one character of set */
	RX_CONCAT, /* a, then b */
	RX_EITHER, /* a, or else b */
	RX_REPEAT, /* a, min to max times */
	RX_LOOK,   /* the next character is in set, or the text ends here if `end` says so */
};

enum rx_mode {
	RX_GREEDY,
	RX_LAZY,
	RX_POSSESSIVE, /* of RX_SET only */
};

#define RX_NO_MAX UINT32_MAX

struct rx_node {
	enum rx_kind kind;
	struct rx_node *a, *b;
	struct rx_set *set;
	bool end;
	enum rx_mode mode;
	uint32_t min, max;
	bool nullable; /* matches the empty text */
};

/* NULL with rx->err filled in. */
struct rx_node *rx_parse(struct rx *rx, const char *regex);

/* ---- programs (program.c) ---- */

enum rx_op {
	RX_OP_SET,   /* take a character of set x, go to the next step */
	RX_OP_SPLIT, /* go to x, or else to y */
	RX_OP_LOOK,  /* go on if the next character is in set x, or if the text ends and y is 1 */
	RX_OP_MATCH,
};

struct rx_step {
	enum rx_op op;
	uint32_t x, y;
};

struct rx_program {
	struct rx_step *step;
	uint32_t n;
};

#define RX_SETS_MAX 64

/* The sets of all programs of a compilation; equal ones are stored once. */
struct rx_sets {
	const struct rx_set *set[RX_SETS_MAX];
	uint32_t n;
};

bool rx_program(
	struct rx *rx, const struct rx_node *tree, struct rx_sets *sets, struct rx_program *out);

/* ---- classes (classes.c) ---- */

struct rx_classes {
	uint32_t n;
	uint64_t sets[TOK_REGEX_CLASSES_MAX];  /* bit i: its characters are in set i */
	uint8_t number[TOK_REGEX_CLASSES_MAX]; /* in tables: variant << 3 | enum tok_cat */
	uint32_t width;			       /* of a row: above all numbers, and the end */
	uint32_t *run;			       /* first code point << 8 | number */
	uint32_t n_runs;
};

bool rx_classes(struct rx *rx, const struct rx_sets *sets, struct rx_classes *out);

/* ---- keys to numbers (intern.c) ---- */

#define RX_STATES_MAX 8192u /* before a machine is made minimal */

struct rx_key {
	const uint16_t *key;
	uint32_t len, hash;
};

struct rx_keys {
	uint32_t n, room;
	struct rx_key *entry;
	uint16_t *slot; /* [4 * room]: number + 1 */
};

#define RX_NO_NUMBER UINT32_MAX

/* Number of a key; a new one gets the next. RX_NO_NUMBER with rx->err filled in. */
uint32_t rx_number(struct rx *rx, struct rx_keys *keys, const uint16_t *key, uint32_t len);

/* ---- matchers (matcher.c) ---- */

#define RX_DEAD UINT16_MAX

/*
 * State 0 is the start. go[state * n_moves + class]: the next state, or RX_DEAD. ends[]: a match
 * ends before that character; with the end of text as class n_moves - 1.
 */
struct rx_matcher {
	uint32_t n, n_moves;
	uint16_t *go;
	bool *ends;
	bool *firm;   /* by state: however the text goes on, what was read is in the match */
	bool *closed; /* by state: however the text goes on, the match ends here */
};

bool rx_matcher(struct rx *rx, const struct rx_program *program, const struct rx_classes *classes,
	struct rx_matcher *out);

/* ---- readings (readings.c) ---- */

struct rx_splitter {
	struct rx_matcher matcher;
	enum tok_behavior behavior;
};

/* A character leads from one reading to another; `border`: a piece begins with the character. */
struct rx_edge {
	uint16_t to;
	bool border;
};

struct rx_reading {
	const struct rx_edge
		*edge; /* those of class c end at end[c], the ones before them at end[c - 1] */
	const uint32_t *end;
	bool accepts; /* the text may end here */
	bool alive;   /* some text leads on to where it may end */
	bool closes;  /* a piece ends here, whatever character follows */
};

/* All readings that texts lead to; 0 is where a piece begins. */
struct rx_readings {
	uint32_t n, n_classes;
	struct rx_reading *at;
};

/* The edges of a class that lead on. */
#define RX_EACH_EDGE(e, r, c)                                                                      \
	for (const struct rx_edge *e = (r)->edge + ((c) > 0 ? (r)->end[(c)-1] : 0);                \
		e < (r)->edge + (r)->end[c]; e++)

bool rx_readings(struct rx *rx, const struct rx_splitter *split, uint32_t n, uint32_t n_classes,
	struct rx_readings *out);

/* Are pieces those that would be found if the text began where a piece does? (fresh.c) */
bool rx_begins_fresh(struct rx *rx, const struct rx_readings *readings);

/* ---- machines (machine.c) ---- */

/* Readings to a table. */
bool rx_machine(struct rx *rx, const struct rx_readings *readings, const struct rx_classes *classes,
	struct tok_machine *out);
