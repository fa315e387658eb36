/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices at set-up, and consumers that end and start again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

static const uint32_t ids[3] = {1, 2, 3};

static void
restart(struct bench *b, enum tokg_stop how, uint32_t incarnation)
{
	bench_stop(b, how);
	bench_run(b, incarnation);
}

BENCH_TEST(a_claimed_slot_that_is_not_done_is_redone_and_marked, NULL)
{
	struct tokg_out_entry e;
	struct tokg_hdr h;

	bench_stop(b, TOKG_STOP_NOW);
	for (uint32_t slot = 0; slot < 3; slot++) {
		h = bench_hdr(b, 3);
		h.request = slot;
		bench_post(b, 0, slot, h, ids);
	}
	/* As incarnation 1 would have left it; the claim of slot 2 is of the ticket before. */
	b->d->ops->write_u64(b->d, tokg_claim_at(&b->d->geometry, 0, 0), TOKG_CLAIM(1, 1));
	b->d->ops->write_u64(b->d, tokg_claim_at(&b->d->geometry, 0, 2), TOKG_CLAIM(1, 0));
	bench_run(b, 2);
	for (uint32_t i = 0; i < 3; i++) {
		e = bench_entry(b);
		assert_int_equal(e.redo, e.request == 0 ? 1 : 0);
		assert_int_equal(e.incarnation, 2);
		assert_int_equal(bench_status(b, 0, e.slot), TOKG_OK);
	}
	assert_int_equal(bench_word(b, tokg_claim_at(&b->d->geometry, 0, 0)), TOKG_CLAIM(2, 1));
	assert_false(bench_has_entry(b));
}

BENCH_TEST(done_slots_are_not_redone_after_a_restart, NULL)
{
	for (uint32_t incarnation = 2; incarnation < 8; incarnation++) {
		for (uint32_t slot = 0; slot < 4; slot++) {
			bench_done(b, 1, slot, bench_hdr(b, 3), ids, TOKG_OK);
			assert_int_equal(bench_entry(b).ticket, incarnation - 1);
		}
		restart(b, TOKG_STOP_NOW, incarnation);
	}
	restart(b, TOKG_STOP_DRAIN, 8);
	assert_false(bench_has_entry(b));
}

BENCH_TEST(a_claim_of_this_incarnation_or_a_later_one_is_left_alone, NULL)
{
	bench_stop(b, TOKG_STOP_NOW);
	for (uint32_t slot = 0; slot < 2; slot++) {
		bench_post(b, 0, slot, bench_hdr(b, 3), ids);
		b->d->ops->write_u64(
			b->d, tokg_claim_at(&b->d->geometry, 0, slot), TOKG_CLAIM(2 + slot, 1));
	}
	for (uint32_t incarnation = 2; incarnation <= 4; incarnation++) {
		bench_run(b, incarnation);
		bench_stop(b, TOKG_STOP_DRAIN);
		if (incarnation > 2)
			assert_int_equal(bench_entry(b).slot, incarnation - 3);
		assert_false(bench_has_entry(b));
	}
}

static void
many_slots(struct tokg_device_config *c)
{
	c->geometry.producers = 8;
	c->geometry.slots = 256;
	c->workers = 2;
}

BENCH_TEST(drain_finishes_all_published_slots, many_slots)
{
	struct tokg_error err;
	struct tokg_hdr h;

	for (uint32_t i = 0; i < 2048; i++) {
		h = bench_hdr(b, 3);
		h.out_off = i % 256 * TOKG_OUT_ALIGN;
		bench_post(b, i / 256, i % 256, h, ids);
	}
	assert_int_equal(b->d->ops->stop(b->d, TOKG_STOP_DRAIN, 20000, &err), 0);
	for (uint32_t i = 0; i < 2048; i++)
		assert_int_equal(bench_word(b, tokg_done_at(&b->d->geometry, i / 256, i % 256)),
			TOKG_DONE(1, TOKG_OK));
	for (uint32_t i = 0; i < 2048; i++) {
		assert_true(bench_has_entry(b));
		bench_entry(b);
	}
	assert_false(bench_has_entry(b));
}

static void
heads(struct tokg_device_config *c)
{
	c->heads = true;
}

BENCH_TEST(with_heads_the_ring_comes_round_through_epochs_and_restarts, heads)
{
	struct tokg_hdr h;
	uint32_t incarnation = 1;

	for (uint32_t epoch = 7; epoch < 13; epoch++) {
		bench_grant(b, 0, epoch);
		for (uint32_t i = 0; i < 7 + epoch; i++) {
			h = bench_hdr(b, 3);
			h.epoch = epoch;
			bench_done(b, 0, i % 4, h, ids, TOKG_OK);
			assert_int_equal(bench_entry(b).epoch, epoch);
			if (i == 5)
				restart(b, TOKG_STOP_NOW, ++incarnation);
		}
	}
}

/* As if each head stood anywhere: also before and behind what is posted. */
BENCH_TEST(with_heads_a_slot_that_is_not_expected_is_found, heads)
{
	static const uint32_t order[] = {2, 3, 1, 0, 0, 3, 2, 1, 1, 3, 0, 2};

	for (uint32_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		bench_done(b, i % 2, order[i], bench_hdr(b, 3), ids, TOKG_OK);
		assert_int_equal(bench_entry(b).slot, order[i]);
	}
}

TEST(a_hole_in_the_outbox_is_filled_at_the_next_start)
{
	struct tokg_out_entry e;
	struct bench b;

	bench_skip_on_gpu("the hole is made in the counter of the device cpu");
	bench_start(&b, NULL);
	__atomic_fetch_add(&b.d->outbox->reserved, 1, __ATOMIC_ACQ_REL);
	bench_done(&b, 0, 0, bench_hdr(&b, 3), ids, TOKG_OK);
	assert_false(bench_has_entry(&b));
	restart(&b, TOKG_STOP_NOW, 2);
	e = bench_entry(&b);
	assert_int_equal(e.status, 0);
	e = bench_entry(&b);
	assert_int_equal(e.status, TOKG_OK);
	assert_int_equal(e.incarnation, 1);
	bench_close(&b);
}

BENCH_TEST(incarnations_rise_and_one_runs_at_a_time, NULL)
{
	struct tokg_error err = {{0}};

	assert_true(b->d->ops->start(b->d, 2, &err) < 0);
	assert_non_null(strstr(err.text, "incarnation 1 runs"));
	bench_stop(b, TOKG_STOP_NOW);
	bench_stop(b, TOKG_STOP_NOW);
	assert_true(b->d->ops->start(b->d, 1, &err) < 0);
	assert_non_null(strstr(err.text, "must be 2 to 65535"));
	assert_true(b->d->ops->start(b->d, 65536, &err) < 0);
	bench_run(b, 65535);
	assert_int_equal(bench_word(b, tokg_back_at(&b->d->geometry, 1) + 16), 7 | 65535ull << 32);
}

TEST(words_outside_the_region_are_refused)
{
	struct bench b;
	uint64_t v, end;

	bench_open(&b, NULL);
	end = b.d->geometry.region_bytes;
	assert_int_equal(b.d->ops->read(b.d, end - 8, &v, 8), 0);
	assert_true(b.d->ops->read(b.d, end, &v, 8) < 0);
	assert_true(b.d->ops->read(b.d, UINT64_MAX - 7, &v, 8) < 0);
	assert_true(b.d->ops->read(b.d, 4, &v, 8) < 0);
	assert_true(b.d->ops->write_u64(b.d, end, 0) < 0);
	assert_true(b.d->ops->write_u64(b.d, 12, 0) < 0);
	bench_close(&b);
}

TEST(the_region_has_its_geometry_and_outputs_are_sealed)
{
	struct tokg_ctl ctl;
	struct tokg_error err;
	struct bench b;

	bench_open(&b, NULL);
	assert_int_equal(b.d->ops->read(b.d, 0, &ctl, sizeof(ctl)), 0);
	assert_int_equal(ctl.magic, TOKG_MAGIC);
	assert_int_equal(ctl.ring_epoch, 1);
	assert_true(tokg_geometry_proved(&ctl.geometry, b.d->geometry.region_bytes, &err));
	if (!b.gpu)
		assert_ptr_equal(
			mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, b.d->outputs_fd, 0),
			MAP_FAILED);
	assert_int_equal(b.d->region_fd >= 0, !b.gpu || b.config.host_ring);
	assert_int_equal(b.d->region != NULL, !b.gpu || b.config.host_ring);
	if (b.d->region_fd >= 0)
		assert_int_equal(ftruncate(b.d->region_fd, 0), -1);
	assert_true(strlen(b.d->order_reason) > 0);
	bench_close(&b);
}

static void
refused(const struct bench *b, struct tokg_device_config c, const char *words)
{
	struct tokg_error err = {{0}};

	assert_null(b->gpu ? tokg_device_cuda(&c, &err) : tokg_device_cpu(&c, &err));
	if (strstr(err.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

TEST(a_wrong_configuration_is_refused_with_a_message)
{
	struct tokg_device_config c;
	struct bench b;

	bench_open(&b, NULL);
	c = b.config;
	c.ring_epoch = 0;
	refused(&b, c, "ring_epoch must not be 0");
	c = b.config;
	c.tables.dim = 9;
	refused(&b, c, "not those of the geometry");
	c = b.config;
	c.geometry.claim_off += 8;
	refused(&b, c, "is inconsistent");
	c = b.config;
	c.tables.word = NULL;
	refused(&b, c, "needs more tables");
	c = b.config;
	c.workers = 100000;
	refused(&b, c, b.gpu ? "100000 workers, it holds" : "at most 256");
	c = b.config;
	c.first_cpu = 100000;
	if (!b.gpu)
		refused(&b, c, "--first-cpu 100000: ");
	bench_close(&b);
}

static void
mortal(struct tokg_device_config *c)
{
	c->owner_limit_ms = 400;
	c->workers = 2;
}

/* Threads of this process. */
static int
threads(void)
{
	DIR *const d = opendir("/proc/self/task");
	int n = -2; /* . and .. */

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* A GPU's runs while this word rises; to read it is to say that the owner lives. */
static uint64_t
heartbeat(const struct bench *b)
{
	return bench_word(b, offsetof(struct tokg_ctl, heartbeat));
}

static void
it_has_left(const struct bench *b, int threads_left)
{
	uint64_t was;

	if (b->gpu) {
		usleep(1500000);
		was = heartbeat(b);
		usleep(200000);
		assert_int_equal(heartbeat(b), was);
		return;
	}
	for (int i = 0; i < 200 && threads() > threads_left; i++)
		usleep(50000);
	assert_int_equal(threads(), threads_left);
}

BENCH_TEST(a_consumer_whose_owner_is_silent_leaves_by_itself, mortal)
{
	struct tokg_error err = {{0}};
	uint64_t was = 0;
	int with;

	with = threads();
	for (int i = 0; i < 30; i++) {
		if (i == 10)
			was = heartbeat(b);
		usleep(50000);
		assert_true(heartbeat(b) >= was);
	}
	assert_true(heartbeat(b) > was);
	if (!b->gpu)
		assert_int_equal(threads(), with);
	it_has_left(b, with - 3);

	bench_post(b, 0, 0, bench_hdr(b, 3), ids);
	assert_int_equal(b->d->ops->stop(b->d, TOKG_STOP_NOW, 100, &err), 0);
	bench_run(b, 2);
	assert_int_equal(bench_status(b, 0, 0), TOKG_OK);
}

/* Where there is a GPU this makes one; everywhere else it says what is missing. */
TEST(a_missing_gpu_is_an_error_that_names_it)
{
	struct tokg_error err = {{0}};
	struct tokg_device *d;
	struct bench b;

	bench_open(&b, NULL);
	b.config.index = 1000;
	d = tokg_device_cuda(&b.config, &err);
	assert_null(d);
	assert_non_null(strstr(err.text, "device cuda:1000: "));
	print_message("# %s\n", err.text);
	bench_close(&b);
}

static void
pinned(struct tokg_device_config *c)
{
	c->workers = 0;
	c->first_cpu = 0;
}

TEST(threads_may_be_pinned)
{
	struct bench b;

	bench_skip_on_gpu("a kernel has no threads of the CPU to pin");
	bench_start(&b, pinned);
	bench_done(&b, 0, 0, bench_hdr(&b, 3), ids, TOKG_OK);
	bench_close(&b);
}
