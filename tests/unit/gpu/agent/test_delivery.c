/* SPDX-License-Identifier: BSD-3-Clause */
/* What subscribers get: order, duplicates, released outputs. The test is the consumer. */

#include <string.h>

#include "test.h"
#include "producers_fixture.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

FIXTURE_TEST(subscribers_get_the_order_of_posting)
{
	granted(f, 0, 1);
	tell(f, 2, 1);
	tell(f, 1, 1);
	tell(f, 3, 1);
	turn(f);
	assert_int_equal(f->delivery.head, 0);
	tell(f, 0, 1);
	tell(f, 0, 2);
	turn(f);
	assert_int_equal(f->delivery.head, 5);
	assert_int_equal(f->delivery.entry[0].request, 1);
	assert_int_equal(f->delivery.entry[1].request, 101);
	assert_int_equal(f->delivery.entry[2].request, 201);
	assert_int_equal(f->delivery.entry[3].request, 301);
	assert_int_equal(f->delivery.entry[4].request, 2);
	assert_int_equal(f->delivery.entry[4].instance, 9);
}

FIXTURE_TEST(a_batch_is_delivered_whole_and_in_order)
{
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.parts = 3;
	for (int i = 0; i < 3; i++) {
		e.part = (uint16_t[]){2, 0, 1}[i];
		e.request = e.part;
		turn(f);
		assert_int_equal(f->delivery.head, 0);
		fake_tell(&f->fake, &e);
	}
	turn(f);
	assert_int_equal(f->delivery.head, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(f->delivery.entry[i].request, i);
	fake_done(&f->fake, 0, 0, 1, TOKG_OK);
	turn(f);
	assert_int_equal(released(f, 0), 1);
}

/* The producer posts all of its records again, each alone. */
FIXTURE_TEST(a_failed_batch_is_not_delivered)
{
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.parts = 3;
	e.flags = TOKG_BATCH;
	for (e.part = 0; e.part < 3; e.part++) {
		e.status = e.part == 2 ? TOKG_BADID : TOKG_OK;
		fake_tell(&f->fake, &e);
	}
	e = entry(1, 1); /* alone: that it failed is final */
	e.status = TOKG_BADID;
	fake_tell(&f->fake, &e);
	fake_done(&f->fake, 0, 0, 1, TOKG_BADID);
	fake_done(&f->fake, 0, 1, 1, TOKG_BADID);
	turn(f);
	assert_int_equal(f->delivery.head, 1);
	assert_int_equal(f->delivery.entry[0].slot, 1);
	assert_int_equal(f->delivery.entry[0].status, TOKG_BADID);
	turn(f);
	assert_int_equal(released(f, 0), 2);
}

/* Killed after two of three parts were reported, then after all: each is handed out once. */
FIXTURE_TEST(duplicates_of_a_killed_consumer_are_dropped)
{
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.parts = 3;
	for (e.part = 0; e.part < 2; e.part++)
		fake_tell(&f->fake, &e);
	fake_reserve(&f->fake); /* taken, and never written */
	turn(f);
	tokg_delivery_consumer_ended(&f->delivery);
	e.redo = 1;
	for (e.incarnation = 2; e.incarnation < 4; e.incarnation++) {
		for (e.part = 0; e.part < 3; e.part++)
			fake_tell(&f->fake, &e);
	}
	turn(f);
	assert_int_equal(f->delivery.head, 3);
	assert_int_equal(f->delivery.counts.holes, 1);
	assert_int_equal(f->producers.producer[0].postings.twins, 5);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(f->delivery.entry[i].part, i);
}

FIXTURE_TEST(outputs_are_not_released_before_done)
{
	granted(f, 0, 1);
	tell(f, 0, 1);
	tell(f, 1, 1);
	fake_done(&f->fake, 0, 1, 1, TOKG_OK);
	turn(f); /* handed out and passed, but slot 0 is not done: a successor may redo it */
	assert_int_equal(f->delivery.head, 2);
	assert_int_equal(released(f, 0), 0);
	fake_done(&f->fake, 0, 0, 1, TOKG_OK);
	turn(f);
	assert_int_equal(released(f, 0), 2);
}

/* It failed, its consumer was killed before `done`, and the next one succeeds: only that counts. */
FIXTURE_TEST(the_status_of_a_later_incarnation_counts)
{
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.status = TOKG_BADSUM;
	e.flags = TOKG_BATCH;
	fake_tell(&f->fake, &e);
	tell(f, 1, 1); /* waits behind it */
	turn(f);
	assert_int_equal(f->delivery.head, 0);
	tokg_delivery_consumer_ended(&f->delivery);
	/* Done is read before what was told of it is: still not. */
	fake_done(&f->fake, 0, 0, 1, TOKG_OK);
	turn(f);
	assert_int_equal(f->delivery.head, 0);
	e.status = TOKG_OK;
	e.redo = 1;
	e.incarnation = 2;
	e.parts = 2;
	fake_tell(&f->fake, &e);
	e.part = 1;
	fake_tell(&f->fake, &e);
	turn(f);
	assert_int_equal(f->delivery.head, 3);
	assert_int_equal(f->delivery.entry[1].part, 1);
	assert_int_equal(f->producers.producer[0].postings.twins, 1);
	turn(f);
	assert_int_equal(released(f, 0), 1);
}

/* Its slot was used again before `done` was read: no more entries of it come. */
FIXTURE_TEST(a_failed_slot_is_settled_by_its_next_use)
{
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.status = TOKG_STALE;
	fake_tell(&f->fake, &e);
	for (uint32_t s = 1; s < FAKE_SLOTS; s++)
		tell(f, s, 1);
	tell(f, 0, 2);
	fake_done(&f->fake, 0, 0, 2, TOKG_OK);
	turn(f);
	assert_int_equal(f->delivery.counts.impossible, 0);
	assert_int_equal(f->delivery.head, FAKE_SLOTS);
}

/* An ended producer slot hands out what is behind it all the same. */
FIXTURE_TEST(an_ending_producer_slot_settles_failed_slots)
{
	const uint32_t producer = granted(f, 0, 1);
	struct tokg_out_entry e = entry(0, 1);

	e.status = TOKG_BADSUM;
	fake_tell(&f->fake, &e);
	tell(f, 1, 1);
	tokg_producers_end(&f->producers, producer);
	tokg_delivery_poll(&f->delivery);
	fake_done(&f->fake, producer, 0, 1, TOKG_BADSUM);
	fake_done(&f->fake, producer, 1, 1, TOKG_OK);
	f->now += S;
	tokg_producers_poll(&f->producers, f->now, f->delivery.n_read);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_ENDING);
	turn(f);
	assert_int_equal(f->delivery.head, 1);
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_FREE);
}

FIXTURE_TEST(failed_slots_are_counted_and_not_delivered)
{
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.status = TOKG_BADSUM;
	fake_tell(&f->fake, &e);
	fake_done(&f->fake, 0, 0, 1, TOKG_BADSUM);
	tell(f, 1, 1);
	fake_done(&f->fake, 0, 1, 1, TOKG_OK);
	turn(f);
	assert_int_equal(f->delivery.head, 1);
	assert_int_equal(f->delivery.entry[0].slot, 1);
	assert_int_equal(released(f, 0), 2);
	assert_int_equal(f->delivery.counts.status[TOKG_BADSUM], 1);
}

FIXTURE_TEST(rows_outside_the_outputs_are_not_delivered)
{
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.tokens = 65536 / 16 + 1;
	fake_tell(&f->fake, &e);
	e = entry(1, 1);
	e.out_off = 65536 - 4096;
	e.tokens = 4096 / 16 + 1; /* would wrap */
	fake_tell(&f->fake, &e);
	e = entry(2, 1);
	e.out_off = 64;
	fake_tell(&f->fake, &e);
	turn(f);
	assert_int_equal(f->delivery.head, 0);
	e = entry(3, 1);
	e.out_off = 3 * 65536 - 4096;
	e.tokens = 4096 / 16;
	fake_tell(&f->fake, &e);
	turn(f);
	assert_int_equal(f->delivery.head, 1);
	assert_int_equal(f->delivery.entry[0].offset, 65536 - 4096);
}

/* What the producer skips before the wrap, and what failed, is not free for it either. */
FIXTURE_TEST(outputs_are_counted_as_the_producer_does)
{
	const struct tokg_postings *p = &f->producers.producer[0].postings;
	struct tokg_out_entry e = entry(0, 1);

	granted(f, 0, 1);
	e.out_off = 65536 - 4096; /* 0 to here: given back before */
	fake_tell(&f->fake, &e);
	fake_done(&f->fake, 0, 0, 1, TOKG_OK);
	turn(f);
	assert_false(tokg_postings_full(p));
	e = entry(1, 1);
	e.out_off = 2 * 65536 - 3 * 4096; /* and 14 pages before it were skipped */
	fake_tell(&f->fake, &e);
	tokg_delivery_poll(&f->delivery); /* a subscriber has it */
	assert_true(tokg_postings_full(p));
	fake_done(&f->fake, 0, 1, 1, TOKG_OK);
	turn(f);
	assert_false(tokg_postings_full(p));
	e = entry(2, 1);
	e.out_off = 2 * 65536 - 2 * 4096;
	fake_tell(&f->fake, &e);
	e = entry(3, 1);
	e.status = TOKG_BADHDR;
	e.out_off = 1ull << 60;
	fake_tell(&f->fake, &e);
	fake_done(&f->fake, 0, 3, 1, TOKG_BADHDR);
	tokg_delivery_poll(&f->delivery);
	assert_true(tokg_postings_full(p)); /* it may be */
	e = entry(0, 2);
	e.out_off = 2 * 65536;
	fake_tell(&f->fake, &e);
	tokg_delivery_poll(&f->delivery);
	assert_false(tokg_postings_full(p)); /* it was not */
	fake_done(&f->fake, 0, 2, 1, TOKG_OK);
	fake_done(&f->fake, 0, 0, 2, TOKG_OK);
	turn(f);
	assert_int_equal(released(f, 0), 5);
	assert_int_equal(p->out_tail, 2 * 65536 + 4096);
	assert_int_equal(p->out_head, p->out_tail);
}

/* It has fewer rows than its bytes were given room for; its entry does not say how much that is. */
FIXTURE_TEST(a_text_counts_as_a_quarter_of_the_outputs_until_the_next_slot)
{
	const struct tokg_postings *p = &f->producers.producer[0].postings;
	static const uint64_t at[] = {3 * 4096, 5 * 4096, 6 * 4096};

	granted(f, 0, 1);
	for (uint32_t i = 0; i < 3; i++) {
		struct tokg_out_entry e = entry(i, 1);

		e.out_off = at[i];
		e.flags |= i == 1 ? TOKG_TEXT : 0;
		fake_tell(&f->fake, &e);
		tokg_delivery_poll(&f->delivery);
		assert_int_equal(tokg_postings_full(p), i == 1);
	}
	assert_int_equal(p->out_head, 7 * 4096);
}

FIXTURE_TEST(impossible_entries_end_the_producer_slot)
{
	struct tokg_out_entry e = entry(0, 7);

	granted(f, 0, 1);
	granted(f, 1, 2);
	fake_tell(&f->fake, &e);
	e = entry(0, 1);
	e.producer = 64;
	fake_tell(&f->fake, &e);
	e.producer = 1;
	e.slot = 4;
	fake_tell(&f->fake, &e);
	turn(f);
	assert_int_equal(f->delivery.counts.impossible, 3);
	assert_int_equal(f->producers.ended, 2);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal((uint32_t)epoch_word(f, 1), 0);
	assert_int_equal(f->producers.producer[0].state,
		TOKG_PRODUCER_FREE); /* for others: nothing is out */
}

FIXTURE_TEST(an_outbox_overrun_ends_all_producer_slots)
{
	granted(f, 0, 1);
	for (uint32_t i = 0; i < 257; i++)
		tell(f, i % 4, i / 4 + 1);
	turn(f);
	assert_int_equal(f->delivery.counts.overruns, 1);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	for (uint32_t s = 0; s < 4; s++)
		fake_done(&f->fake, 0, s, 65, TOKG_OK);
	f->now += S;
	turn(f);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_FREE);
}

/* --drain: an entry that is taken may still be written, as long as its consumer lives. */
FIXTURE_TEST(delivery_is_idle_when_all_entries_are_read_and_released)
{
	const struct tokg_out_entry e = entry(0, 1);
	uint64_t index;

	granted(f, 0, 1);
	assert_true(tokg_delivery_idle(&f->delivery));
	index = fake_reserve(&f->fake);
	turn(f);
	assert_false(tokg_delivery_idle(&f->delivery));
	fake_tell_at(&f->fake, index, &e);
	assert_int_equal(tokg_delivery_poll(&f->delivery), 2);
	assert_false(tokg_delivery_idle(&f->delivery));
	fake_done(&f->fake, 0, 0, 1, TOKG_OK);
	turn(f);
	assert_true(tokg_delivery_idle(&f->delivery));
}

FIXTURE_TEST(a_device_that_cannot_count_its_outbox_is_broken)
{
	granted(f, 0, 1);
	for (uint32_t i = 0; i < 257; i++)
		tell(f, i % 4, i / 4 + 1);
	f->fake.mute = true;
	turn(f); /* an overrun, and it ends */
	assert_true(f->producers.broken);
	assert_int_equal(f->delivery.n_read, 0);
	f->producers.broken = false;
	assert_false(tokg_delivery_idle(&f->delivery));
	assert_true(f->producers.broken);
	f->producers.broken = false;
	tokg_producers_end(&f->producers, 0);
	f->now += S;
	turn(f); /* not free: what it left in the outbox would end its successor */
	assert_true(f->producers.broken);
	assert_int_equal(f->producers.producer[0].state, TOKG_PRODUCER_ENDING);
}

/* A worker that connects again has shed texts: of what its last connection left only others come.
 */
FIXTURE_TEST(shed_texts_are_announced_and_not_delivered)
{
	struct tokg_hello h = hello(0);
	const struct tokg_embedding *e = f->delivery.entry;
	struct tokg_error err;
	uint32_t producer;

	granted(f, 0, 1);
	tell(f, 0, 1);
	turn(f);
	assert_int_equal(f->delivery.head, 1);
	h.shed_below = 150;
	assert_int_equal(tokg_producers_grant(&f->producers, &h, 2, f->now, &producer, &err), 1);
	assert_int_not_equal(producer, 0);
	turn(f);
	assert_int_equal(f->delivery.head, 2);
	assert_int_equal(e[1].status, TOKG_SHED);
	assert_int_equal(e[1].request, 149);
	assert_int_equal(e[1].instance, e[0].instance);
	assert_int_equal(e[1].worker, 0);
	assert_int_equal(e[1].flags, TOKG_ABORT);
	assert_int_equal(e[1].tokens, 0);
	tell(f, 1, 1); /* text 101 */
	tell(f, 2, 1); /* text 201 */
	turn(f);
	assert_int_equal(f->delivery.head, 3);
	assert_int_equal(e[2].request, 201);
	assert_int_equal(f->producers.producer[0].postings.filled, 3);
	/* And again to who attaches. */
	tokg_delivery_tell_shed(&f->delivery);
	turn(f);
	assert_int_equal(f->delivery.head, 4);
	assert_int_equal(e[3].status, TOKG_SHED);
	assert_int_equal(f->delivery.counts.status[TOKG_SHED], 2);
}
