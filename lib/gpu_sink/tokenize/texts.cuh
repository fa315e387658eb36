/* SPDX-License-Identifier: BSD-3-Clause */
/* What a block does for texts.h. */
#pragma once

#include "encode.cuh"
#include "texts.h"

/* All of it is memory of the device. */
struct tokg_texts_plan {
	const struct tokg_view *view;
	const uint8_t *bytes;
	const uint64_t *begin;
	uint32_t n;
	uint32_t *ids;
	struct tokg_texts_result *result;
	uint8_t *scratch; /* of each block */
	uint64_t scratch_bytes;
};

/* Text of a plan; the block encodes it with its scratch. */
TOKG_DEV struct tokg_text
tokg_texts_text(const struct tokg_texts_plan *p, uint32_t i, uint32_t block)
{
	const uint64_t begin = p->begin[i];
	const uint32_t n = (uint32_t)(p->begin[i + 1] - begin);

	return {p->bytes + begin, n, n, p->ids + begin, p->scratch + block * p->scratch_bytes};
}

/* Encode the texts of one block of `blocks`. */
TOKG_DEV void
tokg_texts_block(const struct tokg_texts_plan *p, tokg_block *b, uint32_t block, uint32_t blocks)
{
	for (uint32_t i = block; i < p->n; i += blocks) {
		const struct tokg_text t = tokg_texts_text(p, i, block);
		const uint64_t from = tokg_now();
		uint32_t n_ids;
		const enum tokg_text_status status = tokg_encode(b, p->view, &t, &n_ids);

		tokg_sync(b);
		if (b->tid == 0)
			p->result[i] = {(uint32_t)status, n_ids, tokg_now() - from};
	}
}

/* Bytes of scratch for any of these texts. Those that are too long need none. */
static inline uint64_t
tokg_texts_scratch(const uint64_t *begin, uint32_t n)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t bytes = begin[i + 1] - begin[i];

		if (bytes <= TOKG_TEXT_MAX && bytes > longest)
			longest = bytes;
	}
	return (tokg_text_scratch((uint32_t)longest) + 255) & ~255ull;
}
