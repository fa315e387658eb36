/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids on standard input: numbers, separated by blanks. */
#pragma once

#include "cli.h"

/* Per read: a digit and a blank each, and one continued number. */
#define IDS_MAX (CLI_READ_BYTES / 2 + 1)

struct ids {
	uint64_t value; /* the number being read */
	bool in_number;
	char bad;	   /* the byte that is not of a number */
	uint64_t n_before; /* ids of earlier reads */
	uint32_t n;	   /* of this one */
	uint32_t ids[IDS_MAX];
	char text[CLI_READ_BYTES];
};

/* After each the `n` ids are valid, also those before an invalid number. */
enum ids_state {
	IDS_MORE,
	IDS_LAST,
	IDS_BAD,    /* not a number: ids_error() prints it */
	IDS_FAILED, /* the error was printed */
};

enum ids_state ids_read(struct ids *in);

/* What a command whose input ended in `state` returns. */
int ids_error(const struct ids *in, enum ids_state state);
