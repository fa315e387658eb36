/* SPDX-License-Identifier: BSD-3-Clause */
#include <initializer_list>
#include <stdio.h>

#include "block.h"
#include "consumer.cuh"
#include "kernels.h"

namespace
{

struct neighbour {
	uint32_t n, written[FIBERS_MAX], wrong;
	bool barrier;
};

void
neighbour_thread(uint32_t tid, void *arg)
{
	neighbour *const k = (neighbour *)arg;
	tokg_block b = fibers_block(tid, k->n);

	k->written[tid] = tid + 1;
	if (k->barrier)
		tokg_sync(&b);
	k->wrong += k->written[(tid + 1) % k->n] != (tid + 1) % k->n + 1;
}

struct sums {
	uint32_t n, wrong;
};

/* Of thread i. Twice, as a thread may come to the second before others have read the first. */
uint32_t
number(uint32_t i)
{
	return i * i + 3;
}

void
sums_thread(uint32_t tid, void *arg)
{
	sums *const k = (sums *)arg;
	tokg_block b = fibers_block(tid, k->n);
	uint64_t sum = 0, before = 0;
	float team = 0;
	bool right = true;

	for (uint32_t i = 0; i < k->n; i++) {
		sum += number(i);
		before += i < tid ? number(i) : 0;
		team += i / FIBERS_TEAM == b.team ? (float)i : 0;
	}
	for (uint32_t turn = 0; turn < 2; turn++) {
		uint32_t total;

		right &= tokg_sum(&b, number(tid) + turn) == sum + (uint64_t)turn * k->n;
		right &= tokg_prefix(&b, number(tid), &total) == before && total == sum;
		right &= tokg_team_sumf((float)tid) == team;
		right &= tokg_team_min(number(b.n - tid)) ==
			 number(b.n - b.team * FIBERS_TEAM - b.lanes + 1);
	}
	k->wrong += !right;
}

struct apart {
	uint32_t n;
	kernel_where where;
};

void
apart_thread(uint32_t tid, void *arg)
{
	const apart *const k = (const apart *)arg;
	tokg_block b = fibers_block(tid, k->n);

	if (tid < k->n / 2)
		tokg_sync(&b);
	else if (k->where == KERNEL_OTHER)
		tokg_sum(&b, 1);
	else if (k->where == KERNEL_TEAM_HALVES && b.lane < b.lanes / 2)
		tokg_team_sumf(1);
}

#define POSITIONS 30
#define POSITION0 2
#define IDS 8
#define DIM_MAX KERNEL_DIM_MAX

struct rows {
	uint32_t n;
	tokg_embed e;
	uint32_t ids[KERNEL_ROWS];
	uint64_t bad[FIBERS_MAX];
	uint8_t *out;
};

void
rows_thread(uint32_t tid, void *arg)
{
	rows *const k = (rows *)arg;
	tokg_block b = fibers_block(tid, k->n);

	k->bad[tid] = tokg_rows(&b, &k->e, k->ids, KERNEL_ROWS, POSITION0, k->out);
}

/* The sum of a row is dim * (row % 3), and the element says where it stands. */
void
table_fill(const tokg_embed *e, uint8_t *table, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++) {
		for (uint32_t i = 0; i < e->dim; i++) {
			const int away = (int)((i / 2 + r) % 5) * (i % 2 == 0 ? 1 : -1);
			const bool last = e->dim % 2 == 1 && i == e->dim - 1;

			tokg_element_store(e->dtype, table + (size_t)r * e->row_bytes, i,
				(float)(r % 3) + (last ? 0.0f : (float)away));
		}
	}
}

} // namespace

int
kernel_neighbour(const struct fibers_how *how, bool barrier, char report[FIBERS_TEXT])
{
	neighbour k = {};

	k.n = how->n;
	k.barrier = barrier;
	return fibers_run(how, neighbour_thread, &k, report) ? (int)k.wrong : -1;
}

int
kernel_sums(const struct fibers_how *how, char report[FIBERS_TEXT])
{
	sums k = {how->n, 0};

	return fibers_run(how, sums_thread, &k, report) ? (int)k.wrong : -1;
}

bool
kernel_apart(const struct fibers_how *how, enum kernel_where where, char report[FIBERS_TEXT])
{
	apart k = {how->n, where};

	return fibers_run(how, apart_thread, &k, report);
}

uint64_t
kernel_rows(const struct fibers_how *how, uint32_t kind, uint32_t dtype, uint32_t dim, uint8_t *out,
	char report[FIBERS_TEXT])
{
	alignas(16) static uint8_t word[IDS * DIM_MAX * 4], position[POSITIONS * DIM_MAX * 4],
		type[DIM_MAX * 4], gamma[DIM_MAX * 4], beta[DIM_MAX * 4];
	static rows k;

	k = {};
	k.n = how->n;
	k.out = out;
	k.e.kind = kind;
	k.e.dtype = dtype;
	k.e.dim = dim;
	k.e.row_bytes = dim * (dtype == TOKG_F32 ? 4 : 2);
	k.e.n_ids = IDS;
	k.e.n_positions = POSITIONS;
	k.e.word = word;
	k.e.position = position;
	k.e.type = type;
	k.e.gamma = gamma;
	k.e.beta = beta;
	k.e.epsilon = 1e-6f;
	table_fill(&k.e, word, IDS);
	table_fill(&k.e, position, POSITIONS);
	for (uint8_t *const table : {type, gamma, beta})
		table_fill(&k.e, table, 1);
	for (uint32_t i = 0; i < KERNEL_ROWS; i++)
		k.ids[i] = i == 5 ? IDS : i % IDS;
	if (!fibers_run(how, rows_thread, &k, report))
		return UINT64_MAX;
	for (uint32_t i = 1; i < how->n; i++) {
		if (k.bad[i] != k.bad[0]) {
			snprintf(report, FIBERS_TEXT, "thread %u has another sum than 0", i);
			return UINT64_MAX;
		}
	}
	return ((uint32_t)k.bad[0] != 0) | (k.bad[0] >> 32 != 0) << 1;
}

/* Of the second of two producers. Entries of the list that nobody claimed have the ticket 0. */
uint32_t
kernel_head(uint32_t slots, uint32_t head, const uint32_t *taken, uint32_t n)
{
	static tokg_scan s;
	tokg_consumer c = {};

	c.g.slots = slots;
	c.heads = true;
	s.head[1] = head;
	s.n_taken = 0;
	for (uint32_t i = 0; i < n; i++) {
		s.taken[s.n_taken++].ticket = 0;
		s.taken[s.n_taken].slot = slots + taken[i];
		s.taken[s.n_taken++].ticket = 1 + taken[i];
	}
	if (tokg_taken_list(&c, &s) != n)
		return UINT32_MAX;
	for (uint32_t i = 0; i < n; i++)
		if (s.taken[i].ticket != 1 + taken[i])
			return UINT32_MAX;
	return s.head[1];
}
