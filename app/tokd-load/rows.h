/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of all requests, kept in memory until the end: nothing is written while measuring. */
#pragma once

#include <stdint.h>

#include "options.h"
#include "slices.h"

struct row {
	uint64_t intended_ns, first_ns, end_ns;
	uint64_t sent_ns;    /* 0: not sent */
	const char *failure; /* NULL: correct ids */
	uint32_t retransmits, n_ids, reason;
};

struct rows {
	struct row *row;
	uint64_t count;
	uint64_t start_ns; /* start of the time scale */
};

/* Write --out. Returns 0, or -1 after printing the error. */
int rows_write(const struct rows *rows, const struct options *o);
/* Print failures: a few of each kind, and their number. Returns the total. */
uint64_t rows_complain(const struct rows *rows, const struct slices *slices);
