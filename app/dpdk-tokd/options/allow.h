/* SPDX-License-Identifier: BSD-3-Clause */
/* --allow: prefixes of addresses, on the command line and in files. */
#pragma once

#include <opt.h>

#define TOKD_ALLOW_MAX 10000 /* prefixes */

struct tokd_prefix {
	bool v6;
	uint8_t bits;
	uint32_t word[4]; /* host byte order; of IPv4 the first */
};

/*
 * Read PREFIX or FILE, separated by commas; a file, whose path begins with / or ., has a prefix a
 * line. *all: to be freed; NULL on failure, with *err set, which is empty before.
 */
bool tokd_allow_read(
	const char *text, struct tokd_prefix **all, uint32_t *n, struct opt_error *err);
