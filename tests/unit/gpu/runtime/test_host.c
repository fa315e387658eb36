/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's half of the device cuda, with a runtime that was made for it. No kernel is run. */
#include <string.h>

#include <cuda_runtime_api.h>

#include "device.h"
#include "fake_cuda.h"
#include "ring/geometry.h"
#include "test.h"

#define N_IDS 10

static float word[N_IDS * 8];

static struct tokg_device_config
config(uint32_t lanes)
{
	struct tokg_device_config c = {
		.geometry = {.producers = 2,
			.slots = 4,
			.slot_bytes = 4096,
			.flags = TOKG_CHECKED,
			.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 8,
			.n_ids = N_IDS,
			.lanes = lanes,
			.log = 16 * lanes,
			.out_bytes = 1 << 20},
		.tables = {.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 8,
			.n_ids = N_IDS,
			.word = word},
		.ring_epoch = 1,
		.workers = TOKG_WORKERS_DEFAULT,
	};
	struct tokg_error err = {""};

	fake = (struct fake_cuda){0};
	if (!tokg_geometry_fill(&c.geometry, &err))
		fail_msg("%s", err.text);
	return c;
}

static struct tokg_device *
opened(const struct tokg_device_config *c)
{
	struct tokg_error err = {""};
	struct tokg_device *const d = tokg_device_cuda(c, &err);

	if (d == NULL)
		fail_msg("%s", err.text);
	return d;
}

static void
close_all(struct tokg_device *d)
{
	assert_true(d->ops->close(d));
	assert_int_equal(fake.allocations, 0);
	assert_int_equal(fake.streams + fake.graphs + fake.executables, 0);
}

static void
start(struct tokg_device *d, uint32_t incarnation)
{
	struct tokg_error err = {""};

	fake.stop_of_ring = &((struct tokg_ctl *)d->region_address)->stop;
	if (d->ops->start(d, incarnation, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(*fake.stop, TOKG_RUN);
}

/* All that the agent does while the kernel runs, then a stop. */
static void
use_and_stop(struct tokg_device *d)
{
	const uint64_t at = tokg_back_at(&d->geometry, 1) + offsetof(struct tokg_back, epoch);
	struct tokg_error err = {""};
	uint64_t v = 0;
	float row[8];

	assert_int_equal(d->ops->write_u64(d, at, 7), 0);
	assert_int_equal(d->ops->write_u64_later(d, at, 8), 0);
	assert_int_equal(d->ops->read(d, at, &v, sizeof(v)), 0);
	assert_int_equal(v, 8);
	assert_int_equal(d->ops->read(d, tokg_done_at(&d->geometry, 1, 1), &v, sizeof(v)), 0);
	assert_int_equal(d->ops->read_outputs(d, 0, row, sizeof(row)), 0);
	assert_int_equal(d->ops->taken(d, &v), 0);
	assert_int_equal(d->ops->stop(d, TOKG_STOP_NOW, 1000, &err), 0);
}

/* Two incarnations. `executables`: of each. */
static void
two_lives(struct tokg_device_config *c, uint32_t executables)
{
	struct tokg_device *const d = opened(c);

	for (uint32_t incarnation = 1; incarnation <= 2; incarnation++) {
		start(d, incarnation);
		assert_int_equal(fake.launches, incarnation);
		assert_int_equal(fake.executables, executables);
		assert_int_equal(fake.uploads, incarnation * executables);
		assert_int_equal(fake.graphs, 0);
		use_and_stop(d);
		assert_int_equal(fake.last, cudaSuccess); /* or the next launch would have it */
	}
	close_all(d);
}

TEST(nothing_waits_for_the_kernel_while_it_runs)
{
	struct tokg_device_config c = config(2);

	two_lives(&c, 0);
}

TEST(nothing_waits_for_the_kernel_whose_ring_is_in_host_memory)
{
	struct tokg_device_config c = config(2);

	c.host_ring = true;
	two_lives(&c, 0);
}

TEST(nothing_waits_for_the_scheduler_and_its_graphs_are_uploaded)
{
	struct tokg_device_config c = config(2);

	c.graphs = true;
	two_lives(&c, 2 * 120 + 1);
}

TEST(graphs_of_steps_are_made_only_with_lanes)
{
	struct tokg_device_config c = config(0);

	c.graphs = true;
	two_lives(&c, 120 + 1);
}

TEST(what_an_old_driver_does_not_know_is_no_error)
{
	struct tokg_device_config c = config(2);
	struct tokg_device *d;

	fake.old_driver = true;
	d = opened(&c);
	assert_int_equal(fake.last, cudaSuccess);
	assert_int_equal(d->order, TOKG_ORDER_STRICT);
	assert_non_null(strstr(d->sharing, "without MPS"));
	close_all(d);
}

TEST(memory_that_cannot_be_registered_is_named_as_tools_gpu_check_looks_for_it)
{
	struct tokg_device_config c = config(2);
	struct tokg_error err = {""};

	c.host_ring = true;
	fake.no_register = true;
	assert_null(tokg_device_cuda(&c, &err));
	assert_string_equal(err.text,
		"device cuda:0: --ring host: it cannot use the ring's memory: operation not "
		"supported");
	assert_int_equal(fake.allocations + fake.streams, 0);
}
