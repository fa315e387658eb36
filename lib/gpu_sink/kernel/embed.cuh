/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes the rows of ids, one row per team. Elements are converted to fp32, summed in the order
 * of BERT's reference, (word + type) + position, and rounded once, to nearest even, when stored; a
 * row of the word table alone is copied. An id or position beyond its table gives a zero row.
 */
#pragma once

#include "block.cuh"
#include "element.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#else
#include <math.h>
#endif

/* Tables where the consumer reads them; elements of `dtype`, bases aligned to 16 bytes. */
struct tokg_embed {
	uint32_t kind, dtype, dim, row_bytes;
	uint32_t n_ids, n_positions;
	const uint8_t *word, *position, *type, *gamma, *beta;
	float epsilon;
};

TOKG_DEV float
tokg_root_inverse(float f)
{
	return 1.0f / sqrtf(f);
}

TOKG_DEV float
tokg_element(uint32_t dtype, const uint8_t *row, uint32_t i)
{
	return dtype == TOKG_F32 ? ((const float *)row)[i]
				 : tokg_element16(dtype, ((const uint16_t *)row)[i]);
}

TOKG_DEV void
tokg_element_store(uint32_t dtype, uint8_t *row, uint32_t i, float f)
{
	if (dtype == TOKG_F32)
		((float *)row)[i] = f;
	else
		((uint16_t *)row)[i] = tokg_element16_of(dtype, f);
}

TOKG_DEV tokg_vec16
tokg_vec_add(uint32_t dtype, tokg_vec16 a, tokg_vec16 b)
{
	tokg_vec16 sum;

	for (int i = 0; i < 4; i++) {
		if (dtype == TOKG_F32) {
			sum.w[i] =
				tokg_float_bits(tokg_bits_float(a.w[i]) + tokg_bits_float(b.w[i]));
		} else {
			const float lo = tokg_element16(dtype, (uint16_t)a.w[i]) +
					 tokg_element16(dtype, (uint16_t)b.w[i]);
			const float hi = tokg_element16(dtype, (uint16_t)(a.w[i] >> 16)) +
					 tokg_element16(dtype, (uint16_t)(b.w[i] >> 16));

			sum.w[i] = tokg_element16_of(dtype, lo) |
				   (uint32_t)tokg_element16_of(dtype, hi) << 16;
		}
	}
	return sum;
}

/* Ordinary accesses: tables do not change, outputs belong to this team. */
TOKG_DEV tokg_vec16
tokg_vec_load(const uint8_t *row, uint32_t i)
{
#ifdef __CUDA_ARCH__
	const uint4 v = ((const uint4 *)row)[i];

	return {{v.x, v.y, v.z, v.w}};
#else
	tokg_vec16 v;

	__builtin_memcpy(&v, row + 16ull * i, 16);
	return v;
#endif
}

TOKG_DEV void
tokg_vec_store(uint8_t *row, uint32_t i, tokg_vec16 v)
{
#ifdef __CUDA_ARCH__
	((uint4 *)row)[i] = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
#else
	__builtin_memcpy(row + 16ull * i, &v, 16);
#endif
}

TOKG_DEV void
tokg_row_zero(const tokg_block *b, const tokg_embed *e, uint8_t *out)
{
	for (uint32_t i = b->lane; i < e->dim; i += b->lanes)
		tokg_element_store(e->dtype, out, i, 0.0f);
}

/*
 * Vectors that a thread loads before its first store: the compiler must assume that a store changes
 * later loads, so alternating them would wait for memory each time. 768 floats are 6 vectors per
 * lane.
 */
#define TOKG_ROW_AHEAD 6

/* Rows of a whole number of 16 bytes begin at multiples of 16 in tables and outputs. */
TOKG_DEV void
tokg_row_word(const tokg_block *b, const tokg_embed *e, const uint8_t *word, uint8_t *out)
{
	if (e->row_bytes % 16 == 0) {
		const uint32_t n = e->row_bytes / 16;

		for (uint32_t i = b->lane; i < n; i += TOKG_ROW_AHEAD * b->lanes) {
			tokg_vec16 w[TOKG_ROW_AHEAD] = {};

			for (uint32_t k = 0; k < TOKG_ROW_AHEAD; k++)
				if (i + k * b->lanes < n)
					w[k] = tokg_vec_load(word, i + k * b->lanes);
			for (uint32_t k = 0; k < TOKG_ROW_AHEAD; k++)
				if (i + k * b->lanes < n)
					tokg_vec_store(out, i + k * b->lanes, w[k]);
		}
	} else if (e->dtype == TOKG_F32) {
		for (uint32_t i = b->lane; i < e->dim; i += b->lanes)
			((uint32_t *)out)[i] = ((const uint32_t *)word)[i];
	} else {
		for (uint32_t i = b->lane; i < e->dim; i += b->lanes)
			((uint16_t *)out)[i] = ((const uint16_t *)word)[i];
	}
}

TOKG_DEV void
tokg_row_word_position(const tokg_block *b, const tokg_embed *e, const uint8_t *word,
	const uint8_t *position, uint8_t *out)
{
	if (e->row_bytes % 16 == 0) {
		const uint32_t n = e->row_bytes / 16;

		for (uint32_t i = b->lane; i < n; i += TOKG_ROW_AHEAD * b->lanes) {
			tokg_vec16 w[TOKG_ROW_AHEAD] = {}, q[TOKG_ROW_AHEAD] = {};

			for (uint32_t k = 0; k < TOKG_ROW_AHEAD; k++)
				if (i + k * b->lanes < n) {
					w[k] = tokg_vec_load(word, i + k * b->lanes);
					q[k] = tokg_vec_load(position, i + k * b->lanes);
				}
			for (uint32_t k = 0; k < TOKG_ROW_AHEAD; k++)
				if (i + k * b->lanes < n)
					tokg_vec_store(out, i + k * b->lanes,
						tokg_vec_add(e->dtype, w[k], q[k]));
		}
	} else {
		for (uint32_t i = b->lane; i < e->dim; i += b->lanes)
			tokg_element_store(e->dtype, out, i,
				tokg_element(e->dtype, word, i) +
					tokg_element(e->dtype, position, i));
	}
}

/* LayerNorm with the variance around the mean; the second and third pass hit the cache. */
TOKG_DEV void
tokg_row_bert(const tokg_block *b, const tokg_embed *e, const uint8_t *word,
	const uint8_t *position, uint8_t *out)
{
	const uint32_t t = e->dtype;
	float sum = 0, squares = 0, mean, scale;

#define TOKG_X(i)                                                                                  \
	((tokg_element(t, word, i) + tokg_element(t, e->type, i)) + tokg_element(t, position, i))
	for (uint32_t i = b->lane; i < e->dim; i += b->lanes)
		sum += TOKG_X(i);
	mean = tokg_team_sumf(sum) / (float)e->dim;
	for (uint32_t i = b->lane; i < e->dim; i += b->lanes) {
		const float d = TOKG_X(i) - mean;

		squares += d * d;
	}
	scale = tokg_root_inverse(tokg_team_sumf(squares) / (float)e->dim + e->epsilon);
	for (uint32_t i = b->lane; i < e->dim; i += b->lanes)
		tokg_element_store(t, out, i,
			(TOKG_X(i) - mean) * scale * tokg_element(t, e->gamma, i) +
				tokg_element(t, e->beta, i));
#undef TOKG_X
}

/*
 * Rows [0, n) of ids[], whose first has position `position`, to out[], by all teams of the block.
 * For all threads: how many ids were beyond the table, plus those of positions times 2^32.
 */
TOKG_DEV uint64_t
tokg_rows(tokg_block *b, const tokg_embed *e, const uint32_t *ids, uint32_t n, uint64_t position,
	uint8_t *out)
{
	uint64_t bad = 0;

	for (uint32_t r = b->team; r < n; r += b->teams) {
		const uint32_t id = tokg_read32(ids + r);
		const uint64_t p = position + r;
		const bool bad_id = id >= e->n_ids;
		const bool bad_position = e->kind != TOKG_KIND_WORD && p >= e->n_positions;
		uint8_t *const row = out + (uint64_t)r * e->row_bytes;

		if (bad_id || bad_position) {
			if (b->lane == 0)
				bad += (uint64_t)bad_position << 32 | (uint64_t)bad_id;
			tokg_row_zero(b, e, row);
			continue;
		}
		const uint8_t *const w = e->word + (uint64_t)id * e->row_bytes;

		if (e->kind == TOKG_KIND_WORD) {
			tokg_row_word(b, e, w, row);
			continue;
		}
		const uint8_t *const q = e->position + p * e->row_bytes;

		if (e->kind == TOKG_KIND_WORD_POSITION)
			tokg_row_word_position(b, e, w, q, row);
		else
			tokg_row_bert(b, e, w, q, row);
	}
	return tokg_sum(b, bad);
}
