/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compile the regular expressions of a pretokenizer into one table, which tok_pretok_step()
 * (pretokenize/pretok.h) reads. Set-up only.
 *
 *   parse.c    expression to a tree (Oniguruma's Ruby syntax: what `tokenizers` uses)
 *   sets.c     sets of characters
 *   classes.c  characters that no expression tells apart become one class
 *   program.c  tree to a program, whose threads are tried in order, as a backtracking matcher would
 *   matcher.c  lists of threads to states: which characters lead from one to another
 *   readings.c what each split guesses about a text, and what proves it wrong
 *   fresh.c    whether a border forgets the text before it
 *   machine.c  sets of readings to steps: what is taken, held, closed
 *   check.c    what a table must fulfil, also one from a file
 */
#pragma once

#include "tables/kinds.h"

#define TOK_REGEX_STATES_MAX 2048u  /* of a machine */
#define TOK_REGEX_CLASSES_MAX 248u  /* their numbers are stored in a byte */
#define TOK_REGEX_BYTES_MAX 8192u   /* of one expression */
#define TOK_REGEX_PROGRAM_MAX 4096u /* steps of a program */

struct tok_machine {
	uint16_t *step; /* [state * width + class]; the last class of a row is the end of text */
	uint32_t n_states, width;
	uint32_t *run; /* classes by code point: first code point << 8 | class */
	uint32_t n_runs;
};

/*
 * Compile n >= 1 splits, which are applied in order: each splits the pieces that the ones before it
 * made (`tokenizers`: Split). `where` begins error messages. False with *err filled in; else
 * tok_machine_free frees.
 */
bool tok_regex_compile(const char *where, const struct tok_pretok_split *split, size_t n,
	struct tok_machine *machine, struct tok_error *err);
void tok_machine_free(struct tok_machine *machine);

/*
 * Can a table make no stream loop, and no index leave the table? If not, returns what is wrong. It
 * also finds tables that would scan a text over and over.
 */
const char *tok_machine_check(const uint16_t *step, uint32_t n_states, uint32_t width);
