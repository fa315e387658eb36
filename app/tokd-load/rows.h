/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of each request, kept until all have ended: nothing is written while time is taken.
 */
#ifndef TOKD_LOAD_ROWS_H
#define TOKD_LOAD_ROWS_H

#include <stdint.h>

#include "options.h"
#include "slices.h"

struct row {
	uint64_t intended_ns, first_ns, end_ns;
	uint64_t sent_ns;    /* 0: never */
	const char *failure; /* NULL: its ids came and are right */
	uint32_t retransmits, n_ids, reason;
};

struct rows {
	struct row *row;
	uint64_t count;
	uint64_t start_ns; /* the times are told from here on */
};

/* --out. Prints what is wrong and returns -1. */
int rows_write(const struct rows *rows, const struct options *o);
/* Prints what failed, some of each kind and how often; returns how many did. */
uint64_t rows_complain(const struct rows *rows, const struct slices *slices);

#endif
