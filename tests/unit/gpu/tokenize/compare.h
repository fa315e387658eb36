/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids of texts on a device beside those of tok_encode. */
#pragma once

#include "texts.h"
#include "texts_made.h"

#define COMPARE_TEXTS 64u	 /* at once */
#define COMPARE_BYTES (1u << 17) /* of a text: more than is encoded */

struct compare {
	const struct tok_vocab *v;
	struct tokg_texts *x;
	struct tok_cache *cache; /* or NULL */
	uint64_t n[4];		 /* texts by enum tokg_text_status */
	uint64_t bytes, ids;	 /* of those that were encoded */
	uint8_t *text;
	uint64_t begin[COMPARE_TEXTS + 1];
	uint32_t *expected;
	char why[512]; /* of a difference */
};

/* False: no memory. `x` stays the caller's. */
bool compare_open(struct compare *c, const struct tok_vocab *v, struct tokg_texts *x);
void compare_close(struct compare *c);

/* Compare n texts, which lie in `text` from `begin` on. False: c->why. */
bool compare_some(struct compare *c, uint32_t n);

/* Compare `count` made texts of at most `most` bytes. */
bool compare_made(struct compare *c, struct texts_made *m, uint64_t count, size_t most);
