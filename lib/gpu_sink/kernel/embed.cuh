/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes the rows of ids, one row per team. Elements are converted to fp32, summed in the order
 * of BERT's reference, (word + type) + position, and rounded once, to nearest even, when stored; a
 * row of the word table alone is copied. An id or position beyond its table gives a zero row.
 */
#pragma once

#include "block/block.cuh"
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

/*
 * Vectors of 16 bytes of a row that a thread holds in registers. Word, position and type are then
 * loaded once, many in flight together; without that, LayerNorm's three passes would wait for
 * memory once per element. A team of a GPU holds 1024 elements.
 */
#ifdef __CUDA_ARCH__
#define TOKG_TEAM 1u
#define TOKG_UNROLL _Pragma("unroll")
#else
#define TOKG_TEAM 32u /* one thread is what 32 are there */
#define TOKG_UNROLL
#endif
#define TOKG_HELD (32u * TOKG_TEAM) /* elements, at most */
/*
 * Vectors that are loaded together. Two blocks on a multiprocessor leave a thread 128 registers,
 * and a row of 1024 elements of fp32 at once would need more. Of word, type and position: a whole
 * row of 768. Of gamma and beta, which are near: fewer.
 */
#define TOKG_TOGETHER (6u * TOKG_TEAM)
#define TOKG_SCALED (4u * TOKG_TEAM)

/* No load moves over it: the compiler moves none over a barrier. */
TOKG_DEV void
tokg_loads_apart(void)
{
#ifdef __CUDA_ARCH__
	__syncwarp();
#endif
}

TOKG_DEV uint32_t
tokg_held(uint32_t dtype)
{
	return (dtype == TOKG_F32 ? 8 : 4) * TOKG_TEAM;
}

/* How many of them there are in this row. On a GPU a constant, so that they are registers. */
TOKG_DEV uint32_t
tokg_holds(const tokg_block *b, const tokg_embed *e, uint32_t dtype)
{
#ifdef __CUDA_ARCH__
	return tokg_held(dtype);
#else
	return (e->row_bytes / 16 + b->lanes - 1) / b->lanes;
#endif
}

TOKG_DEV uint32_t
tokg_per_vec(uint32_t dtype)
{
	return dtype == TOKG_F32 ? 4 : 8;
}

TOKG_DEV float
tokg_vec_element(uint32_t dtype, tokg_vec16 v, uint32_t i)
{
	if (dtype == TOKG_F32)
		return tokg_bits_float(v.w[i]);
	return tokg_element16(dtype, (uint16_t)(v.w[i / 2] >> i % 2 * 16));
}

/* Into a vector that was 0. */
TOKG_DEV void
tokg_vec_element_set(uint32_t dtype, tokg_vec16 *v, uint32_t i, float f)
{
	if (dtype == TOKG_F32)
		v->w[i] = tokg_float_bits(f);
	else
		v->w[i / 2] |= (uint32_t)tokg_element16_of(dtype, f) << i % 2 * 16;
}

/* (word + type) + position of this thread's elements; returns their sum. */
TOKG_DEV float
tokg_held_load(const tokg_block *b, const tokg_embed *e, uint32_t dtype, const uint8_t *word,
	const uint8_t *position, float *x)
{
	const uint32_t per = tokg_per_vec(dtype), n = e->row_bytes / 16;
	const uint32_t holds = tokg_holds(b, e, dtype);
	float sum = 0;

	TOKG_UNROLL
	for (uint32_t k = 0; k < holds; k++) {
		const uint32_t at = b->lane + k * b->lanes;
		tokg_vec16 w = {}, t = {}, q = {};

		if (k == TOKG_TOGETHER)
			tokg_loads_apart();

		if (at < n) {
			w = tokg_vec_load(word, at);
			t = tokg_vec_load(e->type, at);
			q = tokg_vec_load(position, at);
		}
		TOKG_UNROLL
		for (uint32_t i = 0; i < per; i++)
			x[k * per + i] =
				(tokg_vec_element(dtype, w, i) + tokg_vec_element(dtype, t, i)) +
				tokg_vec_element(dtype, q, i);
	}
	TOKG_UNROLL
	for (uint32_t i = 0; i < per * holds; i++)
		sum += x[i];
	return sum;
}

/* Some of gamma and beta. */
struct tokg_scaling {
	tokg_vec16 gamma[TOKG_SCALED], beta[TOKG_SCALED];
};

/* Those of the vectors from `from` on. */
TOKG_DEV void
tokg_scaling_load(const tokg_block *b, const tokg_embed *e, uint32_t from, tokg_scaling *s)
{
	TOKG_UNROLL
	for (uint32_t k = 0; k < TOKG_SCALED; k++) {
		const uint32_t at = b->lane + (from + k) * b->lanes;

		s->gamma[k] = s->beta[k] = {};
		if (at < e->row_bytes / 16) {
			s->gamma[k] = tokg_vec_load(e->gamma, at);
			s->beta[k] = tokg_vec_load(e->beta, at);
		}
	}
}

/* LayerNorm of a row of whole vectors, at most tokg_held() for each thread. */
TOKG_DEV void
tokg_row_bert_held(const tokg_block *b, const tokg_embed *e, uint32_t dtype, const uint8_t *word,
	const uint8_t *position, uint8_t *out)
{
	const uint32_t per = tokg_per_vec(dtype), n = e->row_bytes / 16;
	const uint32_t holds = tokg_holds(b, e, dtype);
	float x[TOKG_HELD], squares = 0, mean, scale;
	tokg_scaling s;

	mean = tokg_team_sumf(tokg_held_load(b, e, dtype, word, position, x)) / (float)e->dim;
	TOKG_UNROLL
	for (uint32_t k = 0; k < holds; k++) {
		if (b->lane + k * b->lanes >= n)
			continue;
		TOKG_UNROLL
		for (uint32_t i = 0; i < per; i++) {
			const float d = x[k * per + i] - mean;

			squares += d * d;
		}
	}
	tokg_scaling_load(b, e, 0, &s);
	scale = tokg_root_inverse(tokg_team_sumf(squares) / (float)e->dim + e->epsilon);
	/* All loads are before the first store, which the compiler must assume to change them. */
	TOKG_UNROLL
	for (uint32_t k = 0; k < holds; k++) {
		if (k > 0 && k % TOKG_SCALED == 0) {
			tokg_loads_apart();
			tokg_scaling_load(b, e, k, &s);
		}
		TOKG_UNROLL
		for (uint32_t i = 0; i < per; i++)
			x[k * per + i] =
				(x[k * per + i] - mean) * scale *
					tokg_vec_element(dtype, s.gamma[k % TOKG_SCALED], i) +
				tokg_vec_element(dtype, s.beta[k % TOKG_SCALED], i);
	}
	TOKG_UNROLL
	for (uint32_t k = 0; k < holds; k++) {
		tokg_vec16 v = {};

		if (b->lane + k * b->lanes >= n)
			continue;
		TOKG_UNROLL
		for (uint32_t i = 0; i < per; i++)
			tokg_vec_element_set(dtype, &v, i, x[k * per + i]);
		tokg_vec_store(out, b->lane + k * b->lanes, v);
	}
}

/* LayerNorm of any other row; the second and third pass hit the cache. */
TOKG_DEV void
tokg_row_bert_any(const tokg_block *b, const tokg_embed *e, const uint8_t *word,
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

/* LayerNorm with the variance around the mean. The type is a constant of each call: it decides
 * which registers there are. */
TOKG_DEV void
tokg_row_bert(const tokg_block *b, const tokg_embed *e, const uint8_t *word,
	const uint8_t *position, uint8_t *out)
{
	if (e->row_bytes % 16 != 0 || e->row_bytes / 16 > tokg_held(e->dtype) * b->lanes)
		tokg_row_bert_any(b, e, word, position, out);
	else if (e->dtype == TOKG_F32)
		tokg_row_bert_held(b, e, TOKG_F32, word, position, out);
	else if (e->dtype == TOKG_F16)
		tokg_row_bert_held(b, e, TOKG_F16, word, position, out);
	else
		tokg_row_bert_held(b, e, TOKG_BF16, word, position, out);
}

#define TOKG_ROW_BAD_ID 1u
#define TOKG_ROW_BAD_POSITION 2u

/* One row; returns what was wrong with it. */
TOKG_DEV uint32_t
tokg_row(const tokg_block *b, const tokg_embed *e, uint32_t id, uint64_t position, uint8_t *out)
{
	const bool bad_id = id >= e->n_ids;
	const bool bad_position = e->kind != TOKG_KIND_WORD && position >= e->n_positions;
	const uint8_t *w, *q;

	if (bad_id || bad_position) {
		tokg_row_zero(b, e, out);
		return bad_position ? TOKG_ROW_BAD_POSITION : TOKG_ROW_BAD_ID;
	}
	w = e->word + (uint64_t)id * e->row_bytes;
	if (e->kind == TOKG_KIND_WORD) {
		tokg_row_word(b, e, w, out);
		return 0;
	}
	q = e->position + position * e->row_bytes;
	if (e->kind == TOKG_KIND_WORD_POSITION)
		tokg_row_word_position(b, e, w, q, out);
	else
		tokg_row_bert(b, e, w, q, out);
	return 0;
}

/*
 * Rows [0, n) of ids[], whose first has position `position`, to out[], by all teams of the block. A
 * team's ids are loaded together, one by each thread: one wait for all, not one per row.
 * For all threads: how many threads saw an id beyond the table, plus those of positions times 2^32.
 */
TOKG_DEV uint64_t
tokg_rows(tokg_block *b, const tokg_embed *e, const uint32_t *ids, uint32_t n, uint64_t position,
	uint8_t *out)
{
	uint32_t bad = 0;

	for (uint32_t r0 = b->team; r0 < n; r0 += b->teams * b->lanes) {
		const uint32_t mine = r0 + b->lane * b->teams;
		const uint32_t id = mine < n ? tokg_read32(ids + mine) : 0;

		for (uint32_t k = 0; k < b->lanes && r0 + k * b->teams < n; k++) {
			const uint32_t r = r0 + k * b->teams;

			bad |= tokg_row(b, e, tokg_team_of(id, k), position + r,
				out + (uint64_t)r * e->row_bytes);
		}
	}
	return tokg_sum(b, (uint64_t)(bad & TOKG_ROW_BAD_POSITION) << 31 | (bad & TOKG_ROW_BAD_ID));
}
