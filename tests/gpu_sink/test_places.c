/* SPDX-License-Identifier: BSD-3-Clause */
/* Places, and what is handed out of them: order, twins, credits, ends; against a consumer that is
 * the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/consumer.h"
#include "agent/delivery.h"
#include "agent/places.h"
#include "fake_device.h"

#define S 1000000000ull

struct fixture {
	struct fake fake;
	struct tokg_places places;
	struct tokg_delivery delivery;
	uint64_t now, disconnected, fenced_at_epoch;
	uint32_t n_fences;
};

static void
disconnect(void *owner, uint64_t link)
{
	struct fixture *f = owner;

	f->disconnected = link;
	tokg_places_left(&f->places, link, f->now);
}

static uint64_t
epoch_word(const struct fixture *f, uint32_t place)
{
	return fake_word(&f->fake,
		tokg_back_at(&f->places.geometry, place) + offsetof(struct tokg_back, epoch));
}

static void
fence(void *owner, uint32_t place)
{
	struct fixture *f = owner;

	f->n_fences++;
	f->fenced_at_epoch = (uint32_t)epoch_word(f, place);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct tokg_places_calls calls = {disconnect, fence, f};
	struct tokg_error why;

	fake_open(&f->fake);
	f->fake.device.incarnation = 1;
	f->now = 10 * S;
	assert_true(tokg_places_create(&f->places, &f->fake.device, 77, &calls));
	assert_true(tokg_delivery_create(&f->delivery, &f->places, 5, &why));
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	tokg_delivery_free(&f->delivery);
	tokg_places_free(&f->places);
	fake_close(&f->fake);
	free(f);
	return 0;
}

static struct tokg_hello
hello(uint32_t worker)
{
	return (struct tokg_hello){.transport = TOKG_SHM,
		.worker = worker,
		.instance = 9,
		.resume = TOKG_NO_PRODUCER,
		.n_vocabs = 1,
		.n_ids = {100}};
}

static uint32_t
granted(struct fixture *f, uint32_t worker, uint64_t link)
{
	const struct tokg_hello h = hello(worker);
	struct tokg_error why = {""};
	uint32_t place = 99;

	assert_int_equal(tokg_places_grant(&f->places, &h, link, f->now, &place, &why), 1);
	return place;
}

static void
turn(struct fixture *f)
{
	tokg_delivery_turn(&f->delivery);
	tokg_delivery_passed(&f->delivery, f->delivery.head);
	tokg_places_turn(&f->places, f->now, f->delivery.told);
}

static struct tokg_out_entry
entry(uint32_t slot, uint64_t ticket)
{
	return (struct tokg_out_entry){.slot = slot,
		.ticket = ticket,
		.request = 100 * slot + ticket,
		.tokens = 2,
		.status = TOKG_OK,
		.parts = 1,
		.incarnation = 1,
		.epoch = 1};
}

static void
tell(struct fixture *f, uint32_t slot, uint64_t ticket)
{
	const struct tokg_out_entry e = entry(slot, ticket);

	fake_tell(&f->fake, &e);
}

static uint64_t
released(const struct fixture *f, uint32_t place)
{
	return fake_word(&f->fake,
		tokg_back_at(&f->places.geometry, place) + offsetof(struct tokg_back, released));
}

static void
a_place_is_granted_with_an_epoch_in_the_ring(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(granted(f, 0, 1), 0);
	assert_int_equal(granted(f, 1, 2), 1);
	assert_int_equal(epoch_word(f, 0), 1 | 1ull << 32);
	assert_int_equal(epoch_word(f, 1), 2 | 1ull << 32);
}

static void
refusals_say_why(void **state)
{
	struct fixture *f = *state;
	struct tokg_hello h = hello(7);
	struct tokg_error why;
	uint32_t place;

	h.n_ids[0] = 101;
	assert_int_equal(tokg_places_grant(&f->places, &h, 1, f->now, &place, &why), -1);
	assert_non_null(strstr(why.text, "has 101 ids, the table 100 rows"));
	granted(f, 0, 1);
	granted(f, 1, 2);
	h = hello(2);
	assert_int_equal(tokg_places_grant(&f->places, &h, 3, f->now, &place, &why), -1);
	assert_non_null(strstr(why.text, "all 2 places are taken: raise --producers"));
	tokg_places_left(&f->places, 2, f->now);
	assert_int_equal(tokg_places_grant(&f->places, &h, 3, f->now, &place, &why), 0);
	h.resume = 0;
	h.epoch = 1;
	h.ring_epoch = 78;
	assert_int_equal(tokg_places_grant(&f->places, &h, 3, f->now, &place, &why), -1);
	assert_non_null(strstr(why.text, "restarted"));
	h.ring_epoch = 77; /* of another worker */
	assert_int_equal(tokg_places_grant(&f->places, &h, 3, f->now, &place, &why), -1);
	h.resume = 63;
	assert_int_equal(tokg_places_grant(&f->places, &h, 3, f->now, &place, &why), -1);
	assert_non_null(strstr(why.text, "not there to be resumed"));
}

static void
a_place_is_kept_a_second_for_resume(void **state)
{
	struct fixture *f = *state;
	struct tokg_hello h = hello(0);
	struct tokg_error why;
	uint32_t place = granted(f, 0, 1);

	h.resume = place;
	h.epoch = 1;
	h.ring_epoch = 77;
	tokg_places_left(&f->places, 1, f->now + 1); /* later than the turn began */
	turn(f);
	f->now += S;
	turn(f);
	assert_int_equal(epoch_word(f, 0), 1 | 1ull << 32);
	assert_int_equal(tokg_places_grant(&f->places, &h, 2, f->now, &place, &why), 1);
	/* A second connection takes it from the first, whose end means nothing then. */
	assert_int_equal(tokg_places_grant(&f->places, &h, 3, f->now, &place, &why), 1);
	assert_int_equal(f->disconnected, 2);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_TAKEN);
	tokg_places_left(&f->places, 3, f->now);
	f->now += S;
	turn(f);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal(f->n_fences, 1);
	assert_int_equal(f->fenced_at_epoch, 1); /* before the epoch is taken away */
	assert_int_equal(tokg_places_grant(&f->places, &h, 4, f->now, &place, &why), -1);
}

static void
an_ended_place_is_free_when_all_is_done_told_and_given_back(void **state)
{
	struct fixture *f = *state;
	const uint32_t place = granted(f, 0, 1);

	fake_post(&f->fake, place, 0, 1);
	fake_post(&f->fake, place, 1, 1);
	tokg_places_end(&f->places, place);
	assert_int_equal(f->disconnected, 1);
	f->now += S;
	turn(f);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_ENDING);
	tell(f, 0, 1);
	fake_done(&f->fake, place, 0, 1, TOKG_OK);
	f->now += S;
	turn(f); /* slot 1 is not done */
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_ENDING);
	tell(f, 1, 1);
	fake_done(&f->fake, place, 1, 1, TOKG_STALE);
	f->now += S;
	tokg_delivery_turn(&f->delivery);
	tokg_places_turn(&f->places, f->now, f->delivery.told); /* a holder has it still */
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_ENDING);
	f->now += S;
	turn(f);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_FREE);
	/* Tickets go on; postings begin anew. */
	assert_int_equal(granted(f, 3, 4), 0);
	tell(f, 0, 2);
	fake_done(&f->fake, place, 0, 2, TOKG_OK);
	turn(f);
	assert_int_equal(released(f, 0), 1);
}

static void
is_not_free_before_what_was_done_is_told(void **state)
{
	struct fixture *f = *state;
	const uint32_t place = granted(f, 0, 1);
	const uint64_t index = fake_reserve(&f->fake);
	const struct tokg_out_entry e = entry(0, 1);

	tokg_places_end(&f->places, place);
	fake_done(&f->fake, place, 0, 1, TOKG_OK);
	f->now += S;
	turn(f); /* done, but its entry is not there yet */
	f->now += S;
	turn(f);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_ENDING);
	fake_tell_at(&f->fake, index, &e);
	turn(f);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_FREE);
	assert_int_equal(f->delivery.head, 1);
}

static void
holders_get_the_order_of_posting(void **state)
{
	struct fixture *f = *state;

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

static void
a_batch_is_handed_out_whole_and_in_order(void **state)
{
	struct fixture *f = *state;
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
static void
of_a_batch_that_failed_nothing_is_handed_out(void **state)
{
	struct fixture *f = *state;
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

/* Killed with two parts of three told, then after all of them: each is handed out once. */
static void
twins_of_a_killed_consumer_are_dropped(void **state)
{
	struct fixture *f = *state;
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
	assert_int_equal(f->places.place[0].postings.twins, 5);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(f->delivery.entry[i].part, i);
}

static void
nothing_is_given_back_that_may_be_written_again(void **state)
{
	struct fixture *f = *state;

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

/* Told as failed, killed before `done`, redone well: the producer sees that alone. */
static void
the_word_of_a_later_consumer_counts_when_the_first_one_failed(void **state)
{
	struct fixture *f = *state;
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
	assert_int_equal(f->places.place[0].postings.twins, 1);
	turn(f);
	assert_int_equal(released(f, 0), 1);
}

/* Before `done` was looked at its slot was used again: nothing more is said of it. */
static void
what_failed_does_not_wait_beyond_its_slots_next_use(void **state)
{
	struct fixture *f = *state;
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

/* An ended place hands out what is behind it all the same. */
static void
an_ending_place_settles_what_failed(void **state)
{
	struct fixture *f = *state;
	const uint32_t place = granted(f, 0, 1);
	struct tokg_out_entry e = entry(0, 1);

	e.status = TOKG_BADSUM;
	fake_tell(&f->fake, &e);
	tell(f, 1, 1);
	tokg_places_end(&f->places, place);
	tokg_delivery_turn(&f->delivery);
	fake_done(&f->fake, place, 0, 1, TOKG_BADSUM);
	fake_done(&f->fake, place, 1, 1, TOKG_OK);
	f->now += S;
	tokg_places_turn(&f->places, f->now, f->delivery.told);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_ENDING);
	turn(f);
	assert_int_equal(f->delivery.head, 1);
	turn(f);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_FREE);
}

static void
slots_that_failed_count_and_are_not_handed_out(void **state)
{
	struct fixture *f = *state;
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

static void
rows_outside_of_the_outputs_are_never_handed_out(void **state)
{
	struct fixture *f = *state;
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
static void
outputs_are_counted_as_the_producer_does(void **state)
{
	struct fixture *f = *state;
	const struct tokg_postings *p = &f->places.place[0].postings;
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
	tokg_delivery_turn(&f->delivery); /* a holder has it */
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
	tokg_delivery_turn(&f->delivery);
	assert_true(tokg_postings_full(p)); /* it may be */
	e = entry(0, 2);
	e.out_off = 2 * 65536;
	fake_tell(&f->fake, &e);
	tokg_delivery_turn(&f->delivery);
	assert_false(tokg_postings_full(p)); /* it was not */
	fake_done(&f->fake, 0, 2, 1, TOKG_OK);
	fake_done(&f->fake, 0, 0, 2, TOKG_OK);
	turn(f);
	assert_int_equal(released(f, 0), 5);
	assert_int_equal(p->out_tail, 2 * 65536 + 4096);
	assert_int_equal(p->out_head, p->out_tail);
}

static void
what_cannot_have_been_posted_ends_the_place(void **state)
{
	struct fixture *f = *state;
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
	assert_int_equal(f->places.ended, 2);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal((uint32_t)epoch_word(f, 1), 0);
	assert_int_equal(
		f->places.place[0].state, TOKG_PLACE_FREE); /* for others: nothing is out */
}

static void
an_outbox_that_went_round_ends_all_places(void **state)
{
	struct fixture *f = *state;

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
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_FREE);
}

/* --drain: an entry that is taken may still be written, as long as its consumer lives. */
static void
it_is_idle_when_all_that_was_taken_is_told_and_given_back(void **state)
{
	struct fixture *f = *state;
	const struct tokg_out_entry e = entry(0, 1);
	uint64_t index;

	granted(f, 0, 1);
	assert_true(tokg_delivery_idle(&f->delivery));
	index = fake_reserve(&f->fake);
	turn(f);
	assert_false(tokg_delivery_idle(&f->delivery));
	fake_tell_at(&f->fake, index, &e);
	assert_int_equal(tokg_delivery_turn(&f->delivery), 2);
	assert_false(tokg_delivery_idle(&f->delivery));
	fake_done(&f->fake, 0, 0, 1, TOKG_OK);
	turn(f);
	assert_true(tokg_delivery_idle(&f->delivery));
}

static void
a_device_that_does_not_say_what_was_taken_is_broken(void **state)
{
	struct fixture *f = *state;

	granted(f, 0, 1);
	for (uint32_t i = 0; i < 257; i++)
		tell(f, i % 4, i / 4 + 1);
	f->fake.mute = true;
	turn(f); /* an overrun, and it ends */
	assert_true(f->places.broken);
	assert_int_equal(f->delivery.told, 0);
	f->places.broken = false;
	assert_false(tokg_delivery_idle(&f->delivery));
	assert_true(f->places.broken);
	f->places.broken = false;
	tokg_places_end(&f->places, 0);
	f->now += S;
	turn(f); /* not free: what it left in the outbox would end its successor */
	assert_true(f->places.broken);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_ENDING);
}

static void
a_worker_that_comes_anew_ends_what_it_had(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(granted(f, 0, 1), 0);
	assert_int_equal(granted(f, 0, 2), 1);
	assert_int_equal(f->disconnected, 1);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal((uint32_t)epoch_word(f, 1), 2);
}

/* As when its queue pair cannot be made: the refusal still has to reach it. */
static void
a_grant_that_is_taken_back_leaves_the_connection(void **state)
{
	struct fixture *f = *state;
	const uint32_t place = granted(f, 0, 5);

	tokg_places_left(&f->places, 5, f->now);
	tokg_places_end(&f->places, place);
	assert_int_equal(f->disconnected, 0);
	assert_int_equal((uint32_t)epoch_word(f, 0), 0);
	assert_int_equal(f->n_fences, 1);
	tokg_places_left(&f->places, 5, f->now); /* after the answer it ends: nobody's */
	f->now += S;
	turn(f);
	assert_int_equal(f->places.place[0].state, TOKG_PLACE_FREE);
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
	tokg_places_turn(&f->places, f->now, f->delivery.told);
}

static void
producers_see_a_heartbeat_while_a_consumer_is_stopped(void **state)
{
	struct fixture *f = *state;
	const struct tokg_consumer_calls calls = {ended, meanwhile, f};
	struct tokg_consumer c;
	struct tokg_error why = {""};

	granted(f, 0, 1);
	assert_true(tokg_consumer_start(&c, &f->fake.device, 500, f->now, &why));
	f->fake.slow = 90;
	f->now += S;
	assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &why), 1);
	assert_int_equal(fake_word(&f->fake, tokg_back_at(&f->places.geometry, 0) +
						     offsetof(struct tokg_back, heartbeat)),
		90);
	f->fake.slow = 1000; /* never */
	f->now += S;
	assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &why), -1);
	assert_int_equal(f->fake.slow, 1000 - TOKG_STOP_MS / TOKG_STOP_SLICE_MS);
}

static void
a_consumer_that_stands_still_is_restarted_three_times(void **state)
{
	struct fixture *f = *state;
	const struct tokg_consumer_calls calls = {ended, meanwhile, f};
	struct tokg_device *d = &f->fake.device;
	struct tokg_consumer c;
	struct tokg_error why = {""};

	assert_true(tokg_consumer_start(&c, d, 500, f->now, &why));
	for (uint32_t i = 1; i <= 3; i++) {
		for (int k = 0; k < 100; k++) { /* it lives */
			fake_set_word(&f->fake, offsetof(struct tokg_ctl, heartbeat), k + 100 * i);
			f->now += S / 10;
			assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &why), 0);
		}
		f->now += S / 2;
		assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &why), 0);
		f->now += S / 10;
		assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &why), 1);
		assert_int_equal(d->incarnation, 1 + i);
		assert_int_equal(f->fake.n_stops, i);
	}
	f->now += S;
	assert_int_equal(tokg_consumer_watch(&c, f->now, &calls, &why), -1);
	assert_non_null(strstr(why.text, "3 times"));
}

static void
the_heartbeat_rises_in_every_place_that_is_taken(void **state)
{
	struct fixture *f = *state;
	const uint64_t at = offsetof(struct tokg_back, heartbeat);

	granted(f, 0, 1);
	for (uint64_t i = 1; i < 4; i++) {
		f->now += TOKG_HEARTBEAT_NS;
		turn(f);
		assert_int_equal(fake_word(&f->fake, tokg_back_at(&f->places.geometry, 0) + at), i);
		assert_int_equal(fake_word(&f->fake, tokg_back_at(&f->places.geometry, 1) + at), 0);
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_place_is_granted_with_an_epoch_in_the_ring),
		T(refusals_say_why),
		T(a_place_is_kept_a_second_for_resume),
		T(an_ended_place_is_free_when_all_is_done_told_and_given_back),
		T(is_not_free_before_what_was_done_is_told),
		T(holders_get_the_order_of_posting),
		T(a_batch_is_handed_out_whole_and_in_order),
		T(of_a_batch_that_failed_nothing_is_handed_out),
		T(twins_of_a_killed_consumer_are_dropped),
		T(nothing_is_given_back_that_may_be_written_again),
		T(the_word_of_a_later_consumer_counts_when_the_first_one_failed),
		T(what_failed_does_not_wait_beyond_its_slots_next_use),
		T(an_ending_place_settles_what_failed),
		T(slots_that_failed_count_and_are_not_handed_out),
		T(rows_outside_of_the_outputs_are_never_handed_out),
		T(outputs_are_counted_as_the_producer_does),
		T(what_cannot_have_been_posted_ends_the_place),
		T(an_outbox_that_went_round_ends_all_places),
		T(it_is_idle_when_all_that_was_taken_is_told_and_given_back),
		T(a_device_that_does_not_say_what_was_taken_is_broken),
		T(a_worker_that_comes_anew_ends_what_it_had),
		T(a_grant_that_is_taken_back_leaves_the_connection),
		T(producers_see_a_heartbeat_while_a_consumer_is_stopped),
		T(a_consumer_that_stands_still_is_restarted_three_times),
		T(the_heartbeat_rises_in_every_place_that_is_taken),
	};
#undef T

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("gpu places", tests, NULL, NULL);
}
