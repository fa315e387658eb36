/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that producers post as bytes (produce.h), and the rows that they must become. */
#pragma once

#include "produce.h"

struct tok_vocab;

struct measure_texts {
	struct tok_vocab *v;
	uint32_t n; /* texts */
	uint32_t most_bytes, *n_ids;
	uint32_t **ids; /* libtok's, of each */
	struct produce_texts posted;
};

/* Loads the vocabulary; with `greedy` by longest match. Exits with 1. */
void measure_texts_open(struct measure_texts *t, const char *vocabulary, bool greedy);
/* n slices of a file, of `bytes` bytes; rows have row_bytes. Exits with 1. */
void measure_texts_make(
	struct measure_texts *t, const char *file, uint32_t n, uint32_t bytes, uint32_t row_bytes);
/*
 * Compares rows of the kind word, of all slots of which posts are done: done[p] of producer p. The
 * consumer has been stopped. Returns how many texts were compared; exits with 1 if a row is not the
 * table's.
 */
uint32_t measure_texts_compare(const struct measure_texts *t, struct tokg_device *d,
	const struct produce_said *said, const void *word);
/* Bytes of the posts that are done. */
uint64_t measure_texts_bytes(const struct measure_texts *t, const struct tokg_geometry *g,
	const struct produce_said *said);
