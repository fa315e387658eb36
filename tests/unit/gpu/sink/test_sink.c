/* SPDX-License-Identifier: BSD-3-Clause */
/* The sink, one promise after the other. test_sink_faults.c has all of them at once, at random. */
#include <string.h>

#include "fixture.h"

#define SLOTS 4
#define IDS (SLOT_BYTES / 4) /* of a slot */

static struct world *
small_world(uint64_t tickets)
{
	return world_make(SLOTS, 1u << 16, 1u << 17, tickets);
}

/* A test in a small world `w`, with tickets from 0. */
#define SINK_TEST(name)                                                                            \
	static void name##_in(struct world *w);                                                    \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct world *w = small_world(0);                                                  \
		name##_in(w);                                                                      \
		world_free(w);                                                                     \
	}                                                                                          \
	static void name##_in(struct world *w)

/* A text of one record. */
static uint32_t
one(struct world *w, uint32_t count)
{
	const uint32_t serial = new_text(w, vocabs[0], count);

	assert_true(publish(w, serial, count, TOKD_REC_LAST));
	return serial;
}

static uint64_t
count_of(const struct world *w, enum tokg_sink_counter c)
{
	return tokg_sink_counters(w->sink)[c];
}

static uint64_t
cursor_of(struct world *w)
{
	return atomic_load(tokg_sink_cursor(w->sink));
}

SINK_TEST(long_texts_take_several_slots_in_order)
{
	const uint32_t serial = one(w, 2 * IDS + 10);

	turns(w, 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(w->hdr[i].request, serial);
		assert_int_equal(w->hdr[i].first, i * IDS);
		assert_int_equal(w->hdr[i].tokens, i < 2 ? IDS : 10);
		assert_int_equal(w->hdr[i].flags, i == 0 ? TOKG_FIRST : i == 2 ? TOKG_LAST : 0);
		assert_int_equal(w->hdr[i].ticket, 1);
	}
	assert_int_equal(cursor_of(w), 0);
	consume(w, 1, TOKG_OK);
	consume(w, 2, TOKG_OK);
	turns(w, 2);
	assert_int_equal(cursor_of(w), 0); /* its beginning is not done */
	settle_all(w);
	assert_int_equal(count_of(w, TOKG_C_RECORDS), 1);
	assert_int_equal(count_of(w, TOKG_C_TOKENS), 2 * IDS + 10);
}

SINK_TEST(small_records_are_batched_until_due_full_or_idle)
{
	one(w, 3);
	one(w, 5);
	assert_true(turn(w, false));
	w->now += 99;
	assert_true(turn(w, false));
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 0);
	w->now += 1; /* batch_ticks */
	assert_true(turn(w, false));
	deliver(w, 1);
	assert_int_equal(w->hdr[0].flags, TOKG_BATCH);
	assert_int_equal(w->hdr[0].tokens, 8);
	one(w, 3);
	one(w, 0);
	assert_true(turn(w, true)); /* idle */
	assert_int_equal(count_of(w, TOKG_C_BATCHES), 2);
	for (uint32_t i = 0; i < SLOT_BYTES / 128 + 1; i++)
		one(w, 16);
	assert_true(turn(w, false)); /* full */
	assert_int_equal(count_of(w, TOKG_C_BATCHES), 3);
	assert_int_equal(count_of(w, TOKG_C_RECORDS), 4 + SLOT_BYTES / 128);
	settle_all(w);
}

SINK_TEST(one_record_alone_is_no_batch)
{
	one(w, 0);
	turns(w, 1);
	assert_int_equal(w->hdr[0].flags, TOKG_FIRST | TOKG_LAST);
	assert_int_equal(w->hdr[0].bytes, 0);
	settle_all(w);
}

SINK_TEST(batches_have_one_vocabulary)
{
	one(w, 3);
	publish(w, new_text(w, vocabs[1], 4), 4, TOKD_REC_LAST);
	publish(w, new_text(w, vocabs[1], 4), 4, TOKD_REC_LAST);
	turns(w, 1);
	assert_int_equal(w->hdr[0].vocab, 0);
	assert_int_equal(w->hdr[1].vocab, 1);
	assert_int_equal(w->hdr[1].flags, TOKG_BATCH);
	settle_all(w);
}

/* Serial 0 is the first that the consumer does not encode, 1 one that it does. */
SINK_TEST(bytes_of_a_text_are_a_slot_of_their_own)
{
	one(w, 3);
	assert_true(publish_bytes(w, 5));
	one(w, 3);
	turns(w, 1);
	assert_int_equal(w->hdr[0].flags, TOKG_FIRST | TOKG_LAST);
	assert_int_equal(w->hdr[1].flags, TOKG_FIRST | TOKG_LAST | TOKG_TEXT);
	assert_int_equal(w->hdr[1].bytes, 5);
	assert_int_equal(w->hdr[2].out_off - w->hdr[1].out_off, tokg_out_bytes(5, w->g.row_bytes));
	settle_all(w);
	assert_true(w->text[1].finished && !w->text[1].came_back);
	assert_int_equal(count_of(w, TOKG_C_TEXTS), 1);
}

SINK_TEST(bytes_left_to_the_cpu_come_back_and_free_their_ring_space)
{
	assert_true(publish_bytes(w, 5));
	turns(w, 1);
	consume(w, 0, TOKG_CPU);
	turns(w, 2);
	assert_true(w->text[0].came_back);
	assert_int_equal(cursor_of(w), w->head); /* before its ids are there */
	assert_int_equal(w->n_failed, 0);
	settle_all(w);
	assert_int_equal(w->n_published, 2);
	assert_int_equal(w->text[0].last_seen, w->t.epoch);
	assert_int_equal(count_of(w, TOKG_C_TEXTS_CPU), 1);
}

SINK_TEST(bytes_too_long_for_a_slot_come_back_at_once)
{
	assert_true(publish_bytes(w, 5));
	assert_true(publish_bytes(w, SLOT_BYTES));
	assert_true(publish_bytes(w, SLOT_BYTES + 1));
	turns(w, 1);
	assert_int_equal(w->n_published, 2);
	assert_true(w->text[2].came_back && !w->text[1].came_back);
	settle_all(w);
	assert_int_equal(count_of(w, TOKG_C_TEXTS), 2);
	assert_int_equal(count_of(w, TOKG_C_TEXTS_CPU), 2); /* and the first */
}

SINK_TEST(bytes_with_a_bad_sum_are_posted_again_and_others_fail)
{
	one(w, 3);
	assert_true(publish_bytes(w, 5));
	assert_true(publish_bytes(w, 5));
	turns(w, 1);
	consume(w, 0, TOKG_OK);
	consume(w, 1, TOKG_BADSUM);
	consume(w, 2, TOKG_BADPOS);
	turns(w, 2);
	assert_true(w->text[2].has_failed && w->text[2].finished && !w->text[2].came_back);
	assert_false(w->text[1].finished);
	assert_int_equal(w->hdr[3].request, 1);
	assert_int_equal(w->hdr[3].flags, TOKG_FIRST | TOKG_LAST | TOKG_TEXT | TOKG_STRICT);
	settle_all(w);
	assert_int_equal(w->n_failed, 1);
}

/* The padding of ids is zero; keys of blocks, behind it, stay as they are. */
SINK_TEST(keys_of_blocks_are_passed_on_in_a_batch_and_left_out_of_others)
{
	for (uint32_t i = 0; i < 3; i++)
		publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST | TOKD_REC_KEYS);
	turns(w, 1);
	assert_int_equal(w->hdr[0].flags, TOKG_BATCH);
	settle_all(w);
	publish(w, new_text(w, vocabs[0], IDS), IDS, TOKD_REC_LAST | TOKD_REC_KEYS);
	turns(w, 1);
	assert_int_equal(w->hdr[1].bytes, 4 * IDS);
	settle_all(w);
}

SINK_TEST(decoded_text_between_records_closes_no_batch)
{
	publish_decoded(w, 10);
	one(w, 3);
	publish_decoded(w, 100);
	publish_decoded(w, 100);
	one(w, 5);
	publish_decoded(w, 100);
	assert_true(turn(w, false));
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 0); /* it waits for more */
	turns(w, 1);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 1);
	assert_int_equal(count_of(w, TOKG_C_RECORDS), 2);
	assert_int_equal(w->hdr[0].flags, TOKG_BATCH);
	assert_int_equal(w->hdr[0].tokens, 8);
	consume(w, 0, TOKG_BADID); /* one by one, then */
	turns(w, 3);
	assert_int_equal(w->hdr[2].tokens, 5);
	settle_all(w);
	assert_int_equal(cursor_of(w), w->head);
	assert_int_equal(w->n_failed, 0);

	one(w, 3);
	publish_decoded(w, SLOT_BYTES); /* nothing fits behind it */
	one(w, 5);
	turns(w, 1);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 5);
	settle_all(w);
}

SINK_TEST(skipping_decoded_text_is_bounded_in_each_turn)
{
	for (uint32_t i = 0; i < 300; i++)
		publish_decoded(w, 10);
	one(w, 3);
	assert_true(turn(w, true));
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 0);
	assert_in_range(cursor_of(w), 200 * record_bytes(3), w->head - 1);
	assert_true(turn(w, true));
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 1);
	settle_all(w);
}

/* A new agent gets what the old one had not done; what was passed over meanwhile is once. */
SINK_TEST(decoded_text_does_not_count_as_shed)
{

	one(w, IDS);
	publish_decoded(w, 10);
	turns(w, 1);
	new_agent(w);
	settle_all(w);
	tokg_sink_give_up(w->sink);
	shed(w);
	assert_int_equal(count_of(w, TOKG_C_SHED), 0);
}

SINK_TEST(a_vocabulary_without_a_table_fails_at_once)
{
	const uint32_t serial = new_text(w, NO_VOCAB, 8);

	publish(w, serial, 4, 0);
	publish(w, serial, 4, TOKD_REC_LAST);
	one(w, 3);
	turns(w, 1);
	assert_int_equal(w->n_failed, 1); /* of two records */
	assert_int_equal(count_of(w, TOKG_C_FAILED), 1);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 1);
	settle_all(w);
}

SINK_TEST(aborts_are_posted)
{
	const uint32_t serial = new_text(w, vocabs[0], 8);

	publish(w, serial, 4, 0);
	turns(w, 1);
	publish(w, serial, 0, TOKD_REC_ABORT);
	turns(w, 1);
	assert_int_equal(w->hdr[1].flags, TOKG_ABORT);
	assert_int_equal(w->hdr[1].first, 4);
	settle_all(w);
}

/* Records that end where the ring does, and PAD where they do not: no batch goes round. */
TEST(batches_end_with_the_ring)
{
	struct world *w = world_make(SLOTS, 4096, 1u << 17, 0);

	for (uint32_t i = 0; i < 7; i++) {
		one(w, 112); /* 512 bytes: the ring holds eight */
		settle_all(w);
	}
	one(w, 112);
	one(w, 16);
	turns(w, 1);
	assert_int_equal(count_of(w, TOKG_C_BATCHES), 0);
	settle_all(w);
	for (uint32_t i = 0; i < 7; i++) {
		one(w, 100);
		settle_all(w);
	}
	one(w, 112); /* behind a PAD */
	settle_all(w);
	assert_int_equal(w->head % 4096, 512);
	world_free(w);
}

TEST(slots_are_used_in_turn_and_waited_for)
{
	struct world *w = small_world(7);

	for (uint32_t i = 0; i < SLOTS + 2; i++)
		one(w, IDS);
	turns(w, 1);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), SLOTS);
	assert_int_equal(w->hdr[3].ticket, 8);
	assert_true(count_of(w, TOKG_C_NO_SLOT) > 0);
	consume(w, 1, TOKG_OK); /* not the one whose turn it is */
	turns(w, 3);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), SLOTS);
	assert_int_equal(cursor_of(w), 0);
	consume(w, 0, TOKG_OK);
	turns(w, 3);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), SLOTS + 2);
	assert_int_equal(w->hdr[0].ticket, 9);
	assert_int_equal(cursor_of(w), 2 * record_bytes(IDS));
	settle_all(w);
	world_free(w);
}

TEST(outputs_that_are_held_are_waited_for)
{
	/* A full slot takes 8 KiB of 32. */
	struct world *w = world_make(2 * SLOTS, 1u << 16, 1u << 15, 0);

	for (uint32_t i = 0; i < 5; i++)
		one(w, IDS);
	turns(w, 3);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 4);
	consume_all(w, TOKG_OK);
	turns(w, 3);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 4);
	assert_true(count_of(w, TOKG_C_NO_OUTPUT) > 0);
	assert_int_equal(count_of(w, TOKG_C_DONE), 4);
	release(w, 1);
	turns(w, 3);
	assert_int_equal(count_of(w, TOKG_C_SLOTS), 5);
	settle_all(w);
	world_free(w);
}

static void
posted_once_more_and_strictly(enum tokg_status status)
{
	struct world *w = small_world(0);
	const uint32_t serial = one(w, IDS);

	one(w, IDS);
	turns(w, 1);
	assert_int_equal(w->last_order, TOKG_ORDER_FAST);
	consume(w, 0, status);
	consume(w, 1, TOKG_OK);
	turns(w, 3);
	assert_int_equal(w->hdr[2].request, serial);
	assert_true(w->hdr[2].flags & TOKG_STRICT);
	assert_int_equal(w->last_order, TOKG_ORDER_STRICT);
	assert_int_equal(count_of(w, TOKG_C_AGAIN), 1);
	assert_int_equal(cursor_of(w), 0); /* both slots are done, its record is not */
	consume(w, 2, TOKG_OK);
	turns(w, 2);
	assert_int_equal(cursor_of(w), w->head);
	assert_int_equal(w->n_failed, 0);
	world_free(w);
}

TEST(badsum_is_posted_once_more_and_strictly)
{
	posted_once_more_and_strictly(TOKG_BADSUM);
}

/* Its ticket stood under the header that a predecessor had left half-written. */
TEST(stale_is_posted_once_more_and_strictly)
{
	posted_once_more_and_strictly(TOKG_STALE);
}

SINK_TEST(badsum_twice_fails_that_text_alone)
{
	const uint32_t serial = one(w, IDS);

	one(w, IDS);
	turns(w, 1);
	consume_all(w, TOKG_BADSUM);
	turns(w, 3);
	consume(w, 2, TOKG_BADSUM);
	consume(w, 3, TOKG_OK);
	turns(w, 3);
	assert_int_equal(w->n_failed, 1);
	assert_int_equal(w->last_failed, serial);
	assert_int_equal(count_of(w, TOKG_C_BADSUM), 3);
	assert_int_equal(cursor_of(w), w->head);
}

SINK_TEST(a_batch_that_fails_is_posted_as_single_records)
{
	uint32_t bad;

	one(w, 3);
	bad = one(w, 4);
	one(w, 5);
	turns(w, 1);
	consume(w, 0, TOKG_BADID);
	turns(w, 3);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(w->hdr[i].flags, TOKG_FIRST | TOKG_LAST);
		assert_int_equal(w->hdr[i].tokens, 2 + i);
		consume(w, i, w->hdr[i].request == bad ? TOKG_BADID : TOKG_OK);
	}
	turns(w, 3);
	assert_int_equal(w->n_failed, 1);
	assert_int_equal(w->last_failed, bad);
	assert_int_equal(cursor_of(w), w->head);
}

TEST(published_slots_are_not_posted_again)
{
	static const enum fault faults[] = {POST_NOTHING, POST_PAYLOAD, POST_ALL};
	struct tokg_error err;

	for (uint32_t i = 0; i < 3; i++) {
		struct world *w = small_world(0);

		one(w, IDS);
		w->fault = faults[i];
		assert_false(turn(w, true));
		assert_false(turn(w, true));
		assert_int_equal(tokg_sink_recover(w->sink, &err), 1);
		turns(w, 1);
		assert_int_equal(count_of(w, TOKG_C_AGAIN), faults[i] != POST_ALL);
		assert_int_equal(count_of(w, TOKG_C_RECONNECTS), 1);
		assert_int_equal(w->hdr[0].ticket, 1);
		assert_int_equal(w->hdr[1].ticket, 0);
		settle_all(w);
		world_free(w);
	}
}

SINK_TEST(a_foreign_ticket_at_a_reconnect_is_an_error)
{

	one(w, IDS);
	w->fault = POST_ALL;
	assert_false(turn(w, true));
	w->hdr[0].ticket = 9;
	give_up(w, "slot 0 has ticket 9, 1 was posted");
}

/* Tickets are 48 bits: beyond 2^32 all goes on, at the end it stops, with a reason. */
TEST(tickets_pass_2_to_the_32)
{
	struct world *w = small_world((1ull << 32) - 2);

	for (uint32_t i = 0; i < 5 * SLOTS; i++) {
		one(w, IDS);
		settle_all(w);
	}
	assert_int_equal(w->hdr[0].ticket, (1ull << 32) + 3);
	world_free(w);
}

TEST(tickets_never_wrap)
{
	struct world *w = small_world(TOKG_TICKET_MAX - 2);
	struct tokg_error err = {""};

	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		one(w, IDS);
		settle_all(w);
	}
	assert_int_equal(w->hdr[SLOTS - 1].ticket, TOKG_TICKET_MAX);
	one(w, IDS);
	assert_false(turn(w, true));
	give_up(w, "slot 0 has no tickets left of 2^48: restart tokd-gpu");
	assert_int_equal(w->hdr[0].ticket, TOKG_TICKET_MAX);
	assert_true(cursor_of(w) < w->head);
	/* The same memory does not do; a new one does. */
	world_renew(w, TOKG_TICKET_MAX);
	assert_false(tokg_sink_attach(w->sink, &w->t, &err));
	assert_non_null(strstr(err.text, "restart tokd-gpu"));
	assert_false(turn(w, true));
	new_agent(w);
	settle_all(w);
	world_free(w);
}

SINK_TEST(an_agent_without_heartbeat_is_dead)
{
	uint32_t i = 0;

	one(w, IDS);
	while (turn(w, true) && i++ < 10000)
		w->now += 50;
	assert_in_range(i, w->config.dead_ticks / 50, w->config.dead_ticks / 50 + 10);
	give_up(w, "tokd-gpu gives no sign of life");
	new_agent(w);
	settle_all(w);
}

/* Also one whose answers to reads never come. */
SINK_TEST(reads_that_never_end_are_a_dead_agent)
{
	uint32_t i = 0;

	one(w, IDS);
	turns(w, 2);
	w->read_asked = false; /* lost */
	while (turn(w, true) && i++ < 10000)
		w->now += 50;
	assert_in_range(i, w->config.dead_ticks / 50 - 2, w->config.dead_ticks / 50 + 10);
}

SINK_TEST(a_worker_that_slept_does_not_take_the_agent_for_dead)
{
	one(w, IDS);
	turns(w, 3);
	w->read_is_old = true;
	for (uint32_t i = 0; i < 5; i++) {
		w->now += 10 * w->config.dead_ticks;
		w->back.heartbeat++;
		assert_true(turn(w, true));
		w->now += 20;
		assert_true(turn(w, true));
	}
	w->read_is_old = false;
	settle_all(w);
	w->now += 10 * w->config.dead_ticks; /* nothing was read meanwhile */
	one(w, IDS);
	settle_all(w);
}

static void
fail_to_recover(struct world *w, const char *text)
{
	uint32_t i = 0;

	while (turn(w, true) && i++ < 10)
		w->now += 50;
	assert_true(i < 10);
	give_up(w, text);
	world_free(w);
}

TEST(a_producer_slot_that_was_taken_back_is_not_used)
{
	struct world *w = small_world(0);

	one(w, IDS);
	turns(w, 1);
	w->back.epoch = 0;
	fail_to_recover(w, "tokd-gpu has ended its epoch");
}

TEST(impossible_words_are_refused)
{
	struct world *w = small_world(0);

	one(w, IDS);
	turns(w, 1);
	w->back.released = 2;
	fail_to_recover(w, "1 slots posted, 2 released");

	w = small_world(0);
	one(w, IDS);
	turns(w, 1);
	w->done[0] = TOKG_DONE(2, TOKG_OK);
	fail_to_recover(w, "a done word ahead of its ticket");
}

SINK_TEST(no_check_word_where_none_is_asked_for)
{
	w->g.flags = w->t.geometry.flags = 0;
	one(w, IDS);
	turns(w, 1);
	assert_int_equal(w->hdr[0].check, 0);
	settle_all(w);
}

SINK_TEST(producer_slots_that_are_not_new_are_refused)
{
	struct tokg_error err = {""};

	world_renew(w, 0);
	w->back.released = 1;
	assert_false(tokg_sink_attach(w->sink, &w->t, &err));
	assert_non_null(strstr(err.text, "must be the granted epoch"));
	world_renew(w, 0);
	w->is_broken = true;
	assert_false(tokg_sink_attach(w->sink, &w->t, &err));
	assert_non_null(strstr(err.text, "connection lost during set-up"));
}

/* Texts that have begun are shed whole: what was embedded of one before stays its beginning. */
SINK_TEST(texts_are_shed_whole_and_counted)
{
	uint32_t half, whole;

	one(w, IDS);
	settle_all(w);
	half = new_text(w, vocabs[0], 30);
	assert_true(publish(w, half, 10, 0));
	settle_all(w);
	for (uint32_t i = 0; i < SLOTS + 2; i++)
		one(w, IDS);
	assert_true(publish(w, half, 10, 0));
	turns(w, 2); /* all slots are posted, and no more fits */
	tokg_sink_give_up(w->sink);
	assert_false(turn(w, true));
	give_up(w, "keeps the token ring full");
	assert_int_equal(count_of(w, TOKG_C_SHED), 0);
	shed(w);
	assert_int_equal(cursor_of(w), w->head);
	assert_int_equal(count_of(w, TOKG_C_SHED), SLOTS + 3);
	/* The rest of a text that is shed, between others, before there is an agent and after. */
	assert_true(publish(w, half, 5, 0));
	whole = one(w, 10);
	new_agent(w);
	assert_true(publish(w, half, 5, TOKD_REC_LAST));
	one(w, 10);
	settle_all(w);
	assert_int_equal(count_of(w, TOKG_C_SHED), SLOTS + 5);
	assert_null(w->text[whole].seen); /* all of it was embedded */
	assert_int_equal(w->n_failed, 0);
}

/* While it connects, more is shed than the agent was told. */
SINK_TEST(an_agent_learns_of_shed_texts_before_it_gets_slots)
{
	struct tokg_error err = {""};

	one(w, IDS);
	turns(w, 1);
	tokg_sink_give_up(w->sink);
	give_up(w, "keeps the token ring full");
	world_renew(w, 0);
	shed(w);
	one(w, IDS);
	assert_true(tokg_sink_attach(w->sink, &w->t, &err));
	assert_false(turn(w, true));
	give_up(w, "keeps the token ring full");
	assert_int_equal(w->n_queued, 0);
	world_renew(w, 0);
	shed(w); /* again, and of nothing told twice */
	new_agent(w);
	one(w, IDS);
	settle_all(w);
	assert_int_equal(count_of(w, TOKG_C_SHED), 2);
}

TEST(reads_are_soon_and_frequent_after_a_pause)
{
	struct world *w = small_world(0);
	uint64_t reads;

	w->config.read_ticks_most = 1000;
	new_sink(w);
	w->now += 10000;
	one(w, IDS);
	for (uint32_t i = 0; i < 2; i++, w->now += w->config.read_ticks / 2)
		assert_true(turn(w, true));
	assert_int_equal(count_of(w, TOKG_C_READS), 0); /* it would be too early */
	for (uint32_t i = 0; i < 160; i++, w->now += w->config.read_ticks / 2)
		assert_true(turn(w, true));
	reads = count_of(w, TOKG_C_READS);
	assert_in_range(reads, 75, 80); /* one each read_ticks, though none shows something */
	w->now += w->config.read_ticks_most;
	settle_all(w);
	world_free(w);
}
