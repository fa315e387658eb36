/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts with their expected ids. A file of little-endian u32: number of slices, then for each:
 * bytes of text, number of ids, the text, the ids. tools/bench/texts/slices.py writes it.
 */
#pragma once

#include <stdint.h>

struct slice {
	const uint8_t *text;
	const uint8_t *ids; /* n_ids * 4 bytes, unaligned */
	uint32_t text_len;
	uint32_t n_ids;
};

struct slices {
	struct slice *slice;
	uint8_t *file; /* the slices point into it */
	uint32_t count;
	uint32_t max_text; /* bytes of the longest text */
	uint32_t max_ids;
};

/* Returns 0, or -1 after printing the error. */
int slices_load(struct slices *s, const char *path);
void slices_free(struct slices *s);
