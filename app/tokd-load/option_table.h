/* SPDX-License-Identifier: BSD-3-Clause */
/* Options as a table, from which they are parsed and explained. */
#ifndef TOKD_LOAD_OPTION_TABLE_H
#define TOKD_LOAD_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_TEXT,   /* const char * */
	OPTION_NUMBER, /* uint64_t, from `least` to `most` */
	OPTION_SERVER, /* struct sockaddr_in */
	OPTION_FLAG,   /* bool; has no argument */
	OPTION_OTHER,  /* `parse` says */
};

struct option_def {
	const char *name, *arg;
	enum option_kind kind;
	size_t at; /* in the struct that is filled in */
	uint64_t least, most;
	int (*parse)(const char *option, const char *text, void *field); /* as values.h */
	const char *help;
};

struct option_table {
	const struct option_def *def;
	size_t n;
	const char *usage; /* stands above the options' help */
};

/*
 * 0: run; 1: help was printed; -1: what is wrong was printed. What the arguments do not name stays
 * as it is in `options`.
 */
int option_table_parse(const struct option_table *t, void *options, int argc, char **argv);

#endif
