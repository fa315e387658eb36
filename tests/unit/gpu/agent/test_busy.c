/* SPDX-License-Identifier: BSD-3-Clause */
/* A consumer with so much work that a scan takes seconds: it is not taken for stalled, it stops
 * when told to, and no producer starves. */

#include <stdlib.h>
#include <time.h>

#include <monotonic.h>
#include "test.h"
#include "../device/post.h"
#include "tokd-gpu/consumer.h"

#define DIM 1022 /* no whole number of 16 bytes: slow on purpose */
#define N_IDS 100
#define IDS 2048 /* of a slot */
#define SLOTS 2048
#define STUCK_MS 500
#define BUSY_MS 1500
#define WAIT_NS 60000000000ull

struct work {
	struct tokg_device *d;
	float *word;
	uint32_t ids[IDS];
	uint32_t n; /* slots of producer 0 that are posted */
	uint64_t ticket[2][SLOTS];
};

static void
nap(void)
{
	const struct timespec ms = {0, 1000000};

	nanosleep(&ms, NULL);
}

/* Published, by the thread that looks. */
static void
post(struct work *w, uint32_t producer, uint32_t slot)
{
	struct tokg_hdr h = {.kind = TOKG_KIND_WORD,
		.bytes = 4 * IDS,
		.tokens = IDS,
		.epoch = POST_EPOCH,
		.flags = TOKG_FIRST | TOKG_LAST};

	post_slot(w->d, producer, slot, &h, ++w->ticket[producer][slot], w->ids);
}

static bool
is_done(const struct work *w, uint32_t producer, uint32_t slot)
{
	uint64_t done;

	assert_int_equal(w->d->ops->read(w->d, tokg_done_at(&w->d->geometry, producer, slot), &done,
				 sizeof(done)),
		0);
	return done == TOKG_DONE(w->ticket[producer][slot], TOKG_OK);
}

static uint32_t
n_done(const struct work *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++)
		n += is_done(w, 0, i);
	return n;
}

/* A fast machine must not run out of work. Returns how many slots were done. */
static uint32_t
post_again(struct work *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		if (is_done(w, 0, i)) {
			post(w, 0, i);
			n++;
		}
	}
	return n;
}

static void
wait_for(const struct work *w, uint32_t producer, uint32_t slot)
{
	const uint64_t until = monotonic_ns() + WAIT_NS;

	while (!is_done(w, producer, slot)) {
		if (monotonic_ns() > until)
			fail_msg("slot %u of producer %u is not done after 60 s", slot, producer);
		nap();
	}
}

/* Not started. */
static void
make(struct work *w, uint32_t workers)
{
	struct tokg_device_config c = {.ring_epoch = 1, .workers = workers, .first_cpu = -1};
	struct tokg_geometry *const g = &c.geometry;
	struct tokg_error err = {""};

	*w = (struct work){.word = calloc((size_t)N_IDS * DIM, sizeof(float)), .n = SLOTS};
	assert_non_null(w->word);
	for (uint32_t i = 0; i < IDS; i++)
		w->ids[i] = i % N_IDS;
	*g = (struct tokg_geometry){.producers = 2,
		.slots = SLOTS,
		.slot_bytes = 4 * IDS,
		.flags = TOKG_CHECKED,
		.kind = TOKG_KIND_WORD,
		.dtype = TOKG_F32,
		.dim = DIM,
		.n_ids = N_IDS,
		.out_bytes = 1 << 25};
	if (!tokg_geometry_fill(g, &err))
		fail_msg("%s", err.text);
	c.tables = (struct tokg_tables){.kind = TOKG_KIND_WORD,
		.dtype = TOKG_F32,
		.dim = DIM,
		.n_ids = N_IDS,
		.word = w->word};
	w->d = tokg_device_cpu(&c, &err);
	if (w->d == NULL)
		fail_msg("%s", err.text);
}

static void
end(struct work *w)
{
	w->d->ops->close(w->d);
	free(w->word);
}

static void
nothing(void *owner)
{
}

static void
is_not_restarted(uint32_t workers)
{
	const struct tokg_consumer_calls calls = {nothing, nothing, NULL};
	struct tokg_consumer consumer;
	struct tokg_error err = {""};
	struct work w;
	uint64_t since;
	uint32_t done = 0;

	make(&w, workers);
	assert_true(tokg_consumer_start(&consumer, w.d, STUCK_MS, monotonic_ns(), &err));
	post_grant(w.d);
	since = monotonic_ns();
	for (uint32_t i = 0; i < w.n; i++)
		post(&w, 0, i);
	while (monotonic_ns() - since < BUSY_MS * 1000000ull) {
		if (tokg_consumer_watch(&consumer, monotonic_ns(), &calls, &err) != 0)
			fail_msg("restarted, with %u of %u done", n_done(&w), w.n);
		done += post_again(&w);
		nap();
	}
	done += n_done(&w);
	end(&w);
	print_message("# %u are done\n", done);
	assert_true(done > 0);
}

TEST(a_busy_scanner_is_not_restarted)
{
	is_not_restarted(0);
}

TEST(a_scanner_that_waits_for_its_worker_is_not_restarted)
{
	is_not_restarted(1);
}

TEST(stop_now_leaves_claimed_slots_to_the_next_incarnation)
{
	struct tokg_error err = {""};
	uint32_t done;
	struct work w;

	make(&w, 0);
	post_grant(w.d);
	w.n = 64; /* a look takes them all */
	for (uint32_t i = 0; i < w.n; i++)
		post(&w, 0, i);
	assert_int_equal(w.d->ops->start(w.d, 1, &err), 0);
	wait_for(&w, 0, 0);
	assert_int_equal(w.d->ops->stop(w.d, TOKG_STOP_NOW, 10000, &err), 0);
	done = n_done(&w);
	if (done == w.n)
		fail_msg("all %u slots were finished first", done);
	assert_int_equal(w.d->ops->start(w.d, 2, &err), 0);
	for (uint32_t i = 0; i < w.n; i++)
		wait_for(&w, 0, i);
	end(&w);
}

TEST(a_busy_producer_does_not_starve_another)
{
	struct tokg_error err = {""};
	struct work w;
	uint32_t done;

	make(&w, 0);
	post_grant(w.d);
	for (uint32_t i = 0; i < w.n; i++)
		post(&w, 0, i);
	post(&w, 1, 0);
	assert_int_equal(w.d->ops->start(w.d, 1, &err), 0);
	wait_for(&w, 1, 0);
	done = n_done(&w);
	print_message("# producer 1 came after %u of producer 0\n", done);
	assert_true(done < w.n / 2);
	end(&w);
}
