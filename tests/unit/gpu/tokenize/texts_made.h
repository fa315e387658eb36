/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that are made from a seed, and slices of files: what pretokenizers and merges tell apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file to take slices of. */
struct texts_file {
	uint8_t *bytes;
	size_t n;
};

struct texts_made {
	uint64_t seed;
	const struct texts_file *file; /* [n_files]; none: only texts from pieces */
	uint32_t n_files;
	bool characters; /* also texts of all characters, most of them not in form C */
};

/* Write a text of at most `most` bytes. Returns their number. */
size_t texts_next(struct texts_made *m, uint8_t *out, size_t most);

/* All of a file; the caller frees `bytes`. False: it cannot be read. */
bool texts_read(struct texts_file *f, const char *path);

/*
 * Slice i of all of a file, of `bytes` bytes or up to 3 fewer: whole characters. It points into the
 * file, which is at least 4 bytes longer than a slice. Returns its bytes.
 */
size_t texts_slice(const struct texts_file *f, uint32_t i, size_t bytes, const uint8_t **slice);

#ifdef __cplusplus
}
#endif
