/* SPDX-License-Identifier: BSD-3-Clause */
/* Producer slots: who gets one and when it ends. And a stalled consumer, which is restarted. */

#include <string.h>

#include "test.h"
#include "tokd-gpu/consumer.h"
#include "producers_fixture.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

FIXTURE_TEST(a_producer_slot_is_granted_with_an_epoch_in_the_ring)
{
	assert_int_equal(granted(f, 0, 1), 0);
	assert_int_equal(granted(f, 1, 2), 1);
	assert_int_equal(epoch_word(f, 0), 1 | 1ull << 32);
	assert_int_equal(epoch_word(f, 1), 2 | 1ull << 32);
}

FIXTURE_TEST(refusals_say_why)
{
	struct tokg_hello h = hello(7);
	struct tokg_error err;
	uint32_t producer;

	h.n_ids[0] = 101;
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 1, f->now, &producer, &err), -1);
	assert_non_null(strstr(err.text, "has 101 ids, the table 100 rows"));
	granted(f, 0, 1);
	granted(f, 1, 2);
	h = hello(2);
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 3, f->now, &producer, &err), -1);
	assert_non_null(strstr(err.text, "all 2 producer slots are taken: raise --producers"));
	tokg_producers_left(&f->producers, 2, f->now);
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 3, f->now, &producer, &err), 0);
	h.resume = 0;
	h.epoch = 1;
	h.ring_epoch = 78;
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 3, f->now, &producer, &err), -1);
	assert_non_null(strstr(err.text, "restarted"));
	h.ring_epoch = 77; /* of another worker */
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 3, f->now, &producer, &err), -1);
	h.resume = 63;
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 3, f->now, &producer, &err), -1);
	assert_non_null(strstr(err.text, "cannot be resumed"));
}

FIXTURE_TEST(a_producer_slot_is_kept_a_second_for_resume)
{
	struct tokg_hello h = hello(0);
	struct tokg_error err;
	uint32_t producer = granted(f, 0, 1);

	h.resume = producer;
	h.epoch = 1;
	h.ring_epoch = 77;
	tokg_producers_left(&f->producers, 1, f->now + 1); /* later than the turn began */
	turn(f);
	f->now += S;
	turn(f);
	assert_int_equal(epoch_word(f, 0), 1 | 1ull << 32);
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 2, f->now, &producer, &err), 1);
	/* A second connection takes it from the first, whose end means nothing then. */
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 3, f->now, &producer, &err), 1);
	assert_int_equal(f->disconnected, 2);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_TAKEN);
	tokg_producers_left(&f->producers, 3, f->now);
	f->now += S;
	turn(f);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal(f->n_fences, 1);
	assert_int_equal(f->fenced_at_epoch, 1); /* before the epoch is taken away */
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 4, f->now, &producer, &err), -1);
}

FIXTURE_TEST(an_ended_producer_slot_is_free_when_its_lanes_have_ended)
{
	const struct tokg_geometry *g = &f->producers.geometry;
	const uint32_t producer = granted(f, 0, 1);

	fake_set_word(&f->fake, tokg_opened_at(g, producer, 1), TOKG_LANE_WORD(0, 7, 0));
	fake_set_word(&f->fake, tokg_ask_at(g, producer, 1), TOKG_LANE_WORD(5, 8, 0));
	tokg_producers_end(&f->producers, producer);
	f->now += S;
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_ENDING);
	fake_set_word(
		&f->fake, tokg_ended_at(g, producer, 1), TOKG_LANE_WORD(3, 7, TOKG_END_STALE));
	f->now += S;
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_FREE);
	/* What it had asked for is not its successor's. */
	assert_int_equal(granted(f, 3, 4), producer);
	assert_int_equal(fake_word(&f->fake, tokg_ask_at(g, producer, 1)), 0);
}

FIXTURE_TEST(an_ended_producer_slot_is_free_when_all_is_done_read_and_released)
{
	const uint32_t producer = granted(f, 0, 1);

	fake_post(&f->fake, producer, 0, 1);
	fake_post(&f->fake, producer, 1, 1);
	tokg_producers_end(&f->producers, producer);
	assert_int_equal(f->disconnected, 1);
	f->now += S;
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_ENDING);
	tell(f, 0, 1);
	fake_done(&f->fake, producer, 0, 1, TOKG_OK);
	f->now += S;
	turn(f); /* slot 1 is not done */
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_ENDING);
	tell(f, 1, 1);
	fake_done(&f->fake, producer, 1, 1, TOKG_STALE);
	f->now += S;
	tokg_delivery_poll(&f->delivery);
	tokg_producers_poll(
		&f->producers, f->now, f->delivery.n_read); /* a subscriber has it still */
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_ENDING);
	f->now += S;
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_FREE);
	/* Tickets go on; postings begin anew. */
	assert_int_equal(granted(f, 3, 4), 0);
	tell(f, 0, 2);
	fake_done(&f->fake, producer, 0, 2, TOKG_OK);
	turn(f);
	assert_int_equal(released(f, 0), 1);
}

FIXTURE_TEST(an_ended_producer_slot_waits_for_its_last_entry)
{
	const uint32_t producer = granted(f, 0, 1);
	const uint64_t index = fake_reserve(&f->fake);
	const struct tokg_out_entry e = entry(0, 1);

	tokg_producers_end(&f->producers, producer);
	fake_done(&f->fake, producer, 0, 1, TOKG_OK);
	f->now += S;
	turn(f); /* done, but its entry is not there yet */
	f->now += S;
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_ENDING);
	fake_tell_at(&f->fake, index, &e);
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_FREE);
	assert_int_equal(f->delivery.head, 1);
}

FIXTURE_TEST(a_worker_that_connects_again_ends_its_old_producer_slot)
{
	assert_int_equal(granted(f, 0, 1), 0);
	assert_int_equal(granted(f, 0, 2), 1);
	assert_int_equal(f->disconnected, 1);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal((uint32_t)epoch_word(f, 1), 2);
}

/* As when its queue pair cannot be made: the refusal still has to reach it. */
FIXTURE_TEST(a_revoked_grant_keeps_the_connection)
{
	const uint32_t producer = granted(f, 0, 5);

	tokg_producers_left(&f->producers, 5, f->now);
	tokg_producers_end(&f->producers, producer);
	assert_int_equal(f->disconnected, 0);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal(f->n_fences, 1);
	tokg_producers_left(&f->producers, 5, f->now); /* after the answer it ends: nobody's */
	f->now += S;
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_FREE);
}

static void
ended(void *owner)
{
	tokg_delivery_consumer_ended(&((struct fixture *)owner)->delivery);
}

static void
meanwhile(void *owner)
{
	struct fixture *f = owner;

	f->now += TOKG_STOP_SLICE_MS * 1000000ull;
	tokg_producers_poll(&f->producers, f->now, f->delivery.n_read);
}

/* So many looks, a tenth of a second apart: what the last one said; all before it: 0. */
static int
watched(struct fixture *f, struct tokg_consumer *c, const struct tokg_consumer_calls *calls,
	uint32_t looks, struct tokg_error *err)
{
	for (uint32_t i = 1; i < looks; i++) {
		f->now += S / 10;
		assert_int_equal(tokg_consumer_watch(c, f->now, calls, err), 0);
	}
	f->now += S / 10;
	return tokg_consumer_watch(c, f->now, calls, err);
}

FIXTURE_TEST(producers_see_a_heartbeat_while_a_consumer_is_stopped)
{
	const struct tokg_consumer_calls calls = {ended, meanwhile, f};
	struct tokg_consumer c;
	struct tokg_error err = {""};

	granted(f, 0, 1);
	assert_true(tokg_consumer_start(&c, &f->fake.device, 500, f->now, &err));
	f->fake.slow = 90;
	assert_int_equal(watched(f, &c, &calls, 6, &err), 1);
	assert_int_equal(fake_word(&f->fake, tokg_back_at(&f->producers.geometry, 0) +
						     offsetof(struct tokg_back, heartbeat)),
		90);
	f->fake.slow = 1000; /* never */
	assert_int_equal(watched(f, &c, &calls, 5, &err), -1);
	assert_int_equal(f->fake.slow, 1000 - TOKG_STOP_MS / TOKG_STOP_SLICE_MS);
}

FIXTURE_TEST(a_consumer_that_stands_still_is_restarted_three_times)
{
	const struct tokg_consumer_calls calls = {ended, meanwhile, f};
	struct tokg_device *d = &f->fake.device;
	struct tokg_consumer c;
	struct tokg_error err = {""};

	assert_true(tokg_consumer_start(&c, d, 500, f->now, &err));
	for (uint32_t i = 1; i <= 3; i++) {
		for (int k = 0; k < 100; k++) { /* it lives */
			fake_set_word(&f->fake, offsetof(struct tokg_ctl, heartbeat), k + 100 * i);
			f->now += S / 10;
			assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &err), 0);
		}
		assert_int_equal(watched(f, &c, &calls, 6, &err), 1);
		assert_int_equal(d->incarnation, 1 + i);
		assert_int_equal(f->fake.n_stops, i);
	}
	assert_int_equal(watched(f, &c, &calls, 6, &err), -1);
	assert_non_null(strstr(err.text, "3 times"));
}

FIXTURE_TEST(a_consumer_busy_within_a_scan_is_not_restarted)
{
	const struct tokg_consumer_calls calls = {ended, meanwhile, f};
	struct tokg_consumer c;
	struct tokg_error err = {""};

	assert_true(tokg_consumer_start(&c, &f->fake.device, 500, f->now, &err));
	for (uint64_t k = 1; k < 100; k++) {
		fake_set_word(&f->fake, offsetof(struct tokg_ctl, busy), k);
		f->now += S / 10;
		assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &err), 0);
	}
	assert_int_equal(watched(f, &c, &calls, 6, &err), 1);
}

/* tokd-gpu was stopped for an hour, by SIGSTOP: its first look sees the heartbeat of then. */
FIXTURE_TEST(time_without_a_look_is_no_standstill)
{
	const struct tokg_consumer_calls calls = {ended, meanwhile, f};
	struct tokg_consumer c;
	struct tokg_error err = {""};

	assert_true(tokg_consumer_start(&c, &f->fake.device, 500, f->now, &err));
	for (uint64_t k = 1; k < 100; k++) {
		f->now += 3600 * S;
		assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &err), 0);
		fake_set_word(&f->fake, offsetof(struct tokg_ctl, heartbeat), k);
		f->now += S / 10;
		assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &err), 0);
	}
	f->now += 3600 * S;
	assert_int_equal(watched(f, &c, &calls, 5, &err), 1);
}

FIXTURE_TEST(the_heartbeat_rises_in_every_producer_slot_that_is_taken)
{
	const uint64_t at = offsetof(struct tokg_back, heartbeat);

	granted(f, 0, 1);
	for (uint64_t i = 1; i < 4; i++) {
		f->now += TOKG_HEARTBEAT_NS;
		turn(f);
		assert_int_equal(
			fake_word(&f->fake, tokg_back_at(&f->producers.geometry, 0) + at), i);
		assert_int_equal(
			fake_word(&f->fake, tokg_back_at(&f->producers.geometry, 1) + at), 0);
	}
}
