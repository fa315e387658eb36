/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry: workers, and times of stages. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "datapath/stream/stream.h"
#include "fill.h"
#include "histogram.h"

static_assert(
	TOKD_HISTOGRAM_BUCKETS <= RTE_TEL_MAX_ARRAY_ENTRIES, "telemetry would truncate the array");

/* A worker's time: in TSC cycles, microseconds and thousandths. */
static void
add_time(struct rte_tel_data *d, const struct tokd_worker *w)
{
	static const struct {
		enum tokd_counter c;
		const char *cycles, *us, *permille;
	} account[] = {
		{C_CYCLES_BUSY, "busy", "busy_us", "busy_permille"},
		{C_CYCLES_BACKPRESSURED, "backpressured", "backpressured_us",
			"backpressured_permille"},
		{C_CYCLES_IDLE, "idle", "idle_us", "idle_permille"},
	};
	uint64_t cycles[RTE_DIM(account)], all = 0;

	for (size_t i = 0; i < RTE_DIM(account); i++) {
		cycles[i] = tokd_worker_counter(w, account[i].c);
		all += cycles[i];
	}
	for (size_t i = 0; i < RTE_DIM(account); i++) {
		rte_tel_data_add_dict_uint(d, account[i].cycles, cycles[i]);
		rte_tel_data_add_dict_uint(
			d, account[i].us, tokd_ticks_ns(cycles[i], w->tsc_hz) / 1000);
		rte_tel_data_add_dict_uint(d, account[i].permille,
			all == 0 ? 0 : (uint64_t)((double)cycles[i] * 1000 / (double)all + 0.5));
	}
}

/* Bounded resources in use. */
static void
add_held(struct rte_tel_data *d, const struct tokd_worker *w)
{
	const struct tokd_side *side = &w->side;
	uint32_t side_free = __atomic_load_n(&side->n_free, __ATOMIC_RELAXED);

	rte_tel_data_add_dict_uint(
		d, "streams", atomic_load_explicit(&w->streams->n_used, memory_order_relaxed));
	rte_tel_data_add_dict_uint(d, "held_mbufs", __atomic_load_n(&w->n_held, __ATOMIC_RELAXED));
	rte_tel_data_add_dict_uint(d, "mbufs", w->pool->size);
	rte_tel_data_add_dict_uint(d, "mbufs_in_use", rte_mempool_in_use_count(w->pool));
	rte_tel_data_add_dict_uint(d, "side_bytes", (uint64_t)side->n * sizeof(*side->data));
	rte_tel_data_add_dict_uint(
		d, "side_used", (uint64_t)(side->n - side_free) * sizeof(*side->data));
}

int
tokd_tel_workers(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	uint64_t held[TOKD_RINGS_MAX];
	uint32_t from = 0;

	if (params != NULL && params[0] != '\0' &&
		tokd_tel_number(params, app->n_workers - 1, &from) != 0)
		return -EINVAL;
	tokd_attach_held(&app->control.attach, held);
	rte_tel_data_start_dict(d);
	for (uint32_t i = from; i < app->n_workers && i < from + TOKD_TEL_WORKERS; i++) {
		const struct tokd_worker *w = app->worker[i];
		const struct tokd_ring_hdr *ring = w->ring.hdr;
		struct rte_tel_data *one;
		char name[16];

		snprintf(name, sizeof(name), "%" PRIu32, i);
		one = tokd_tel_add_dict(d, name);
		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_uint(one, "lcore", w->lcore);
		rte_tel_data_add_dict_int(one, "node", w->node);
		rte_tel_data_add_dict_uint(one, "queue", w->queue);
		rte_tel_data_add_dict_uint(one, "open_streams", tokd_worker_open_streams(w));
		add_time(one, w);
		add_held(one, w);
		rte_tel_data_add_dict_uint(
			one, "ring_head", __atomic_load_n(&ring->head, __ATOMIC_RELAXED));
		rte_tel_data_add_dict_uint(
			one, "ring_tail", __atomic_load_n(&ring->tail, __ATOMIC_RELAXED));
		rte_tel_data_add_dict_uint(one, "ring_bytes", ring->data_bytes);
		rte_tel_data_add_dict_uint(
			one, "ring_held", RTE_MAX(held[i], tokd_tel_sink_lag(w)));
		rte_tel_data_add_dict_int(one, "ring_huge", w->ring.huge);
	}
	return 0;
}

static void
add_summary(struct rte_tel_data *d, const struct tokd_histogram *h, uint64_t hz)
{
	static const struct {
		uint32_t permille;
		const char *name;
	} shown[] = {{500, "p50_ns"}, {900, "p90_ns"}, {990, "p99_ns"}, {999, "p99_9_ns"}};

	rte_tel_data_add_dict_uint(d, "count", tokd_histogram_count(h));
	rte_tel_data_add_dict_uint(d, "sum_ns", tokd_ticks_ns(h->sum, hz));
	for (size_t i = 0; i < RTE_DIM(shown); i++)
		rte_tel_data_add_dict_uint(d, shown[i].name,
			tokd_ticks_ns(tokd_histogram_percentile(h, shown[i].permille), hz));
	rte_tel_data_add_dict_uint(d, "max_ns", tokd_ticks_ns(h->max, hz));
}

static int
add_buckets(struct rte_tel_data *d, const struct tokd_histogram *h, uint64_t hz)
{
	struct rte_tel_data *array = tokd_tel_add_array(d, "buckets");

	if (array == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < TOKD_HISTOGRAM_BUCKETS; i++)
		rte_tel_data_add_array_uint(array, h->bucket[i]);
	rte_tel_data_add_dict_uint(d, "tsc_hz", hz);
	rte_tel_data_add_dict_uint(d, "unit_shift", TOKD_HISTOGRAM_UNIT_SHIFT);
	rte_tel_data_add_dict_uint(d, "sub_bits", TOKD_HISTOGRAM_SUB_BITS);
	return 0;
}

static struct tokd_histogram
merged(const struct tokd_app *app, struct tokd_tel_range range, uint32_t stage)
{
	struct tokd_histogram sum = {0};

	for (uint32_t w = range.from; w < range.to; w++)
		tokd_histogram_merge(&sum, &app->worker[w]->time[stage]);
	return sum;
}

/* T_COUNT: no such stage. */
static uint32_t
stage_of(const char *name, size_t n)
{
	uint32_t stage = 0;

	while (stage < T_COUNT && (strlen(tokd_stage_info[stage].name) != n ||
					  memcmp(tokd_stage_info[stage].name, name, n) != 0))
		stage++;
	return stage;
}

int
tokd_tel_histograms(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	const uint64_t hz = app->worker[0]->tsc_hz;
	size_t name = params == NULL ? 0 : strcspn(params, ",");
	uint32_t stage = name == 0 ? T_COUNT : stage_of(params, name);
	struct tokd_tel_range range;

	if (stage < T_COUNT) {
		const char *number = params[name] == ',' ? params + name + 1 : NULL;
		struct tokd_histogram h;

		if (tokd_tel_workers_of(app, number, &range) != 0)
			return -EINVAL;
		h = merged(app, range, stage);
		rte_tel_data_start_dict(d);
		add_summary(d, &h, hz);
		return add_buckets(d, &h, hz);
	}
	if (tokd_tel_workers_of(app, params, &range) != 0)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < T_COUNT; i++) {
		struct tokd_histogram h = merged(app, range, i);
		struct rte_tel_data *one = tokd_tel_add_dict(d, tokd_stage_info[i].name);

		if (one == NULL)
			return -ENOMEM;
		add_summary(one, &h, hz);
	}
	return 0;
}
