/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever the order packets come in, the ids are those of the text. */
#include <stdlib.h>

#include "fixture.h"

#define TEXT_BYTES 60000
static uint8_t text[TEXT_BYTES];

static struct reply
last_reply(void)
{
	struct reply r;

	assert_true(next_reply(&r));
	while (next_reply(&r))
		;
	return r;
}

FIXTURE_TEST(order_one_packet_is_one_record)
{
	struct text_ids *got = calloc(1, sizeof(*got));
	struct reply rep;
	uint32_t ids[64], n = whole("hello world", 11, ids, 64);

	ask(text_packet(9, "hello world", 11, 1400, 0, 0));
	rep = expect_reply();
	assert_int_equal(rep.rep.flags, TOKD_F_DONE);
	assert_int_equal(rep.rep.stream_id, 9);
	assert_int_equal(rep.rep.epoch, EPOCH);
	assert_int_equal(rep.rep.ack, 1);
	assert_int_equal(rep.rep.total, n);
	assert_int_equal(rep.rep.text_end, 11);
	assert_int_equal(rep.rep.ids_crc, crc32c_of(ids, 4 * n));
	gather(9, got);
	assert_int_equal(got->records, 1);
	assert_int_equal(got->n, n);
	assert_memory_equal(got->id, ids, 4 * n);
	free(got);
	expect_count(C_STREAMS_DONE, 1);
	expect_count(C_IDS, n);
	expect_count(C_TEXT_BYTES, 11);
	expect_count(C_RING_UNREAD, 1);
	expect_count(C_RX_PACKETS, 1);
	assert_int_equal(fx->w.counter[C_RX_BYTES], 14 + 20 + 8 + 64 + 11);
	expect_count(C_TX_PACKETS, 1);
	expect_count(C_TX_BYTES, rep.frame_bytes);
}

FIXTURE_TEST(order_packets_of_a_burst_are_fed_at_once)
{
	struct text_ids *got = calloc(1, sizeof(*got));

	make_text(text, 4000, 1);
	ask_text(9, text, 4000, 1000, 0);
	gather(9, got);
	assert_int_equal(got->records, 2); /* the first shows how fast the text is */
	assert_int_equal(got->text_end, 4000);
	free(got);
	expect_count(C_RX_REORDERED, 0);
	assert_int_equal(fx->w.n_held, 0);
}

FIXTURE_TEST(order_empty_text_is_one_record_without_ids)
{
	struct text_ids *got = calloc(1, sizeof(*got));
	struct reply rep;

	ask(text_packet(9, "", 0, 1400, TOKD_F_IDS, 0));
	rep = expect_reply();
	assert_int_equal(rep.rep.flags, TOKD_F_DONE);
	assert_int_equal(rep.rep.total, 0);
	assert_int_equal(rep.rep.ids_crc, crc32c_of("", 0));
	gather(9, got);
	assert_int_equal(got->records, 1);
	assert_int_equal(got->first_flags, 1);
	assert_int_equal(got->last_flags, 1);
	assert_int_equal(got->n, 0);
	free(got);
}

FIXTURE_TEST(order_a_last_packet_without_text_ends_the_stream)
{
	struct request r = data_request(4, 0, 0, "hello", 5, 0);

	ask(r);
	r = data_request(4, 1, 5, NULL, 0, TOKD_F_LAST);
	r.req.text_crc = crc32c_of("hello", 5);
	ask(r);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_text(4, "hello", 5);
}

FIXTURE_TEST(order_one_byte_per_packet)
{
	make_text(text, 300, 3);
	ask_text(1, text, 300, 1, 0);
	assert_int_equal(last_reply().rep.flags, TOKD_F_DONE);
	expect_text(1, text, 300);
	expect_count(C_DROP_RING_FULL, 0);
}

FIXTURE_TEST(order_of_every_cut_does_not_change_the_ids)
{
	make_text(text, 200, 5);
	for (uint32_t cut = 1; cut <= 200; cut++) {
		ask_text(cut, text, 200, cut, 0);
		assert_int_equal(last_reply().rep.flags, TOKD_F_DONE);
		expect_text(cut, text, 200);
	}
}

FIXTURE_TEST(order_duplicates_are_dropped_and_acknowledged)
{
	make_text(text, 100, 9);
	for (uint32_t i = 0; i < 5; i++) {
		struct request r = text_packet(2, text, 100, 20, 0, i);

		ask(r);
		drain();
		ask(r);
		assert_int_equal(expect_reply().rep.ack, i + 1);
	}
	expect_text(2, text, 100);
	expect_count(C_RX_DUPLICATE, 4);
	expect_count(C_DROP_OVER, 1); /* that of the last: the stream was over */
}

FIXTURE_TEST(order_a_hole_is_named)
{
	static const uint32_t sent[] = {0, 2, 3, 5};
	struct reply rep;

	make_text(text, 140, 11);
	for (uint32_t i = 0; i < 4; i++)
		send_request(text_packet(3, text, 140, 20, 0, sent[i]));
	send_request(text_packet(3, text, 140, 20, 0, 3)); /* a duplicate of a held packet */
	run();
	rep = expect_reply();
	assert_int_equal(rep.rep.ack, 1);
	assert_int_equal(rep.rep.sack, 0xb); /* 2, 3 and 5 */
	assert_int_equal(rep.rep.credit, TOKD_WIRE_WINDOW);
	expect_count(C_RX_REORDERED, 3);
	expect_count(C_RX_DUPLICATE, 1);

	ask(text_packet(3, text, 140, 20, 0, 1));
	rep = expect_reply();
	assert_int_equal(rep.rep.ack, 4);
	assert_int_equal(rep.rep.sack, 1);
	send_request(text_packet(3, text, 140, 20, 0, 4));
	ask(text_packet(3, text, 140, 20, 0, 6));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_text(3, text, 140);
}

FIXTURE_TEST(order_loss_is_found_by_poll)
{
	struct reply rep;

	make_text(text, 60, 13);
	ask(text_packet(3, text, 60, 20, 0, 0));
	expect_nothing();
	ask(poll_request(3, 0, 0)); /* 1 and 2 were lost, and no reply told */
	rep = expect_reply();
	assert_int_equal(rep.rep.flags, 0);
	assert_int_equal(rep.rep.ack, 1);
	assert_int_equal(rep.rep.text_end, 20);
	for (uint32_t i = 1; i < 3; i++)
		send_request(text_packet(3, text, 60, 20, 0, i));
	run();
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_text(3, text, 60);
}

FIXTURE_TEST(order_acknowledges_every_sixteen_packets)
{
	make_text(text, 4000, 15);
	for (uint32_t i = 0; i < 40; i++) {
		ask(text_packet(3, text, 4000, 100, 0, i));
		if (i % 16 == 15)
			assert_int_equal(expect_reply().rep.ack, i + 1);
		else if (i < 39)
			expect_nothing();
	}
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
}

FIXTURE_TEST(order_streams_do_not_mix)
{
	static uint8_t t[8][3000];

	for (uint32_t s = 0; s < 8; s++)
		make_text(t[s], 3000, s + 100);
	for (uint32_t i = 0; i < text_packets(3000, 100); i++)
		for (uint32_t s = 0; s < 8; s++) {
			struct request r = text_packet(s, t[s], 3000, 100, 0, i);

			send_request(r);
		}
	run();
	drain();
	for (uint32_t s = 0; s < 8; s++) {
		fx->read_pos = 0;
		expect_text(s, t[s], 3000);
	}
	/* The same id from another port, address or epoch is another stream. */
	for (uint32_t i = 0; i < 3; i++) {
		struct request r = text_packet(0, "a", 1, 100, 0, 0);

		r.port = i == 0 ? 1 : 0;
		r.ip = i == 1 ? RTE_IPV4(10, 0, 0, 9) : 0;
		r.req.epoch += i == 2;
		send_request(r);
	}
	run();
	expect_count(C_STREAMS_DONE, 11);
}

TEST_WITH(order_jumbo_packets_are_fed_in_pieces, setup_small_ring, teardown)
{
	make_text(text, 50000, 17);
	send_text(1, text, 50000, JUMBO_TEXT, 0); /* worst case 107 KB, the ring has 64 */
	run();
	assert_int_equal(last_reply().rep.flags, TOKD_F_DONE);
	expect_count(C_STREAMS_DONE, 1);
	assert_true(fx->w.counter[C_RECORDS] > 6);
}

static uint32_t seed;

static uint32_t
rnd(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * below) >> 32);
}

/* A client by doc/reference/protocol.md, on a network that loses a third each way and reorders. */
static void
lossy_client(uint64_t stream, uint32_t n, uint32_t cut, uint16_t flags)
{
	uint32_t packets = text_packets(n, cut), ack = 0, credit = 64, have = 0, total = 0;
	uint32_t *ids = calloc(3 * n + 16, 4), *want = calloc(3 * n + 16, 4);
	uint32_t n_want = whole(text, n, want, 3 * n + 16), turns = 0;
	bool *got = calloc(3 * n + 16, 1), done = false;

	while (!done || ((flags & TOKD_F_IDS) && have < total)) {
		struct reply rep;
		struct request r;

		assert_true(++turns < 5000);
		for (uint32_t i = 0; i < 8 && !done; i++) {
			if (credit == 0 || rnd(3) == 0)
				continue;
			r = text_packet(stream, text, n, cut, flags,
				RTE_MIN(ack + rnd(credit < 8 ? credit : 8), packets - 1));
			r.req.ids_ack = have;
			send_request(r);
		}
		if (rnd(3) > 0) {
			r = poll_request(stream, have, RTE_MIN(total, have + 2000));
			if (ack > 0)
				send_request(r);
		}
		run();
		while (next_reply(&rep)) {
			if (rnd(3) == 0)
				continue;
			assert_false(rep.rep.flags & TOKD_F_FAIL);
			if (rep.rep.ack >= ack) {
				ack = rep.rep.ack;
				credit = rep.rep.credit;
			}
			total = RTE_MAX(total, rep.rep.total);
			done |= !!(rep.rep.flags & TOKD_F_DONE);
			for (uint32_t i = 0; i < rep.rep.count; i++) {
				ids[rep.rep.first + i] = rep.ids[i];
				got[rep.rep.first + i] = true;
			}
			while (have < total && got[have])
				have++;
			if (rep.rep.flags & TOKD_F_DONE)
				assert_int_equal(rep.rep.ids_crc, crc32c_of(want, 4 * n_want));
		}
	}
	assert_int_equal(total, n_want);
	if (flags & TOKD_F_IDS)
		assert_memory_equal(ids, want, 4 * n_want);
	expect_text(stream, text, n);
	free(ids);
	free(want);
	free(got);
}

FIXTURE_TEST(order_survives_a_lossy_network)
{
	static const uint16_t flags[] = {
		0, TOKD_F_IDS, TOKD_F_IDS | TOKD_F_STREAM, TOKD_F_IDS | TOKD_F_SHORT};

	seed = 42;
	for (uint32_t i = 0; i < 90; i++) {
		uint32_t n = rnd(i % 10 == 0 ? 30000 : 2000);

		fx->w.feed_ticks = i % 2 ? UINT64_MAX : 1; /* 1: one piece a turn */
		make_text(text, n, i);
		lossy_client(i, n, RTE_MAX(1 + rnd(1400), n / 400 + 1), flags[i % 4]);
	}
	expect_count(C_STREAMS_FAILED, 0);
	expect_count(C_STREAMS_DONE, 90);
}

/* In turns of the loop, not in time: each feeds one piece of new text and one that waits. */
FIXTURE_TEST(order_long_texts_do_not_delay_short_ones)
{
	const uint32_t packets = TOKD_BURST - 1;
	uint32_t turns = 0;
	struct reply rep;
	bool short_is_done = false;

	fx->w.feed_ticks = 1;
	make_text(text, packets * 1400, 1);
	assert_int_equal(send_text(1, text, packets * 1400, 1400, 0), packets);
	assert_int_equal(send_text(2, "hello", 5, 1400, 0), 1);
	while (!short_is_done) {
		assert_true(++turns <= 2);
		tokd_worker_turn(&fx->w);
		while (next_reply(&rep))
			short_is_done |= rep.rep.stream_id == 2 && rep.rep.flags & TOKD_F_DONE;
	}
	assert_true(fx->w.counter[C_TEXT_BYTES] <= 5 + 3 * 1400);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 1);
	for (; tokd_worker_open_streams(&fx->w) > 0; turns++)
		tokd_worker_turn(&fx->w);
	assert_int_equal(turns, packets); /* one piece a turn, the first turn two */
	expect_text(1, text, packets * 1400);
	expect_count(C_STREAMS_DONE, 2);
	expect_count(C_DROP_HELD, 0);
	assert_true(fx->w.counter[C_FEED_DEFERRED] >= packets);
}

FIXTURE_TEST(order_a_long_packet_is_fed_in_pieces)
{
	fx->w.feed_ticks = 1;
	make_text(text, JUMBO_TEXT, 1);
	send_request(text_packet(1, text, JUMBO_TEXT, JUMBO_TEXT, 0, 0));
	for (uint32_t turn = 0; turn < 4; turn++) {
		const uint64_t before = fx->w.counter[C_TEXT_BYTES];

		tokd_worker_turn(&fx->w);
		assert_in_range(fx->w.counter[C_TEXT_BYTES] - before, 1, 2 * 2048);
	}
	expect_text(1, text, JUMBO_TEXT);
}
