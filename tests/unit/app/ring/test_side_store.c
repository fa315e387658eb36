/* SPDX-License-Identifier: BSD-3-Clause */
/* The side store: what slow clients have not acknowledged when the ring needs its space. */
#include <stdlib.h>

#include "fixture.h"

#define OTHERS 1000000 /* stream ids from here on are of those who fill the ring */
#define TEXT 600

static uint8_t text[TEXT];
static uint32_t want[3 * TEXT], n_want;
static uint64_t other;

/* Write the ring full, twice, with texts that want no ids. */
static void
fill_ring(void)
{
	uint64_t until = fx->w.ring.head + 2 * SMALL_RING_BYTES;

	while (fx->w.ring.head < until) {
		ask_text(OTHERS + other++, "hello world", 11, 100, 0);
		drain();
	}
}

/* Ask for all ids of a stream again, and take those that come. False: EXPIRED. */
static bool
ask_again(uint64_t stream)
{
	uint32_t n = 0;
	struct reply rep;

	ask(poll_request(stream, 0, n_want));
	while (next_reply(&rep)) {
		if (rep.rep.flags & TOKD_F_FAIL) {
			assert_int_equal(rep.rep.reason, TOKD_R_EXPIRED);
			return false;
		}
		assert_memory_equal(rep.ids, &want[rep.rep.first], 4 * rep.rep.count);
		n += rep.rep.count;
	}
	assert_int_equal(n, n_want);
	return true;
}

static void
begin(uint32_t seed, uint32_t n)
{
	make_text(text, n, seed);
	n_want = whole(text, n, want, RTE_DIM(want));
}

TEST_WITH(side_store_keeps_what_the_ring_needs_to_overwrite, setup_small_ring_and_side_store,
	teardown)
{
	begin(1, TEXT);
	send_text(1, text, TEXT, 97, TOKD_F_IDS | TOKD_F_STREAM); /* several records */
	run();
	drain();
	expect_count(C_SIDE_COPIED, 0);
	/* A stream that is finished makes way for new ones: its client must be heard now and then.
	 */
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t until = fx->w.ring.head + SMALL_RING_BYTES;

		while (fx->w.ring.head < until) {
			send_request(poll_request(1, 0, 0));
			ask_text(OTHERS + other++, "hello world", 11, 100, 0);
		}
		drain();
		assert_true(ask_again(1));
	}
	expect_count(C_SIDE_COPIED, 4 * n_want);
	expect_count(C_SIDE_FULL, 0);
	ask(poll_request(1, n_want, 0));
	drain();
	assert_int_equal(fx->w.side.n_free, fx->w.side.n);
}

TEST_WITH(side_store_of_an_open_stream_is_let_go_when_acknowledged, setup_small_ring_and_side_store,
	teardown)
{
	uint32_t packets, part;
	struct request r;
	struct reply rep;

	begin(2, TEXT);
	packets = text_packets(TEXT, 100);
	for (uint32_t p = 0; p + 1 < packets; p++)
		ask(text_packet(1, text, TEXT, 100, TOKD_F_IDS | TOKD_F_STREAM, p));
	drain();
	fill_ring();
	assert_true(fx->w.side.n_free < fx->w.side.n);
	part = fx->w.side.n_free;
	r = poll_request(1, 100, 0); /* some are acknowledged */
	ask(r);
	drain();
	assert_true(fx->w.side.n_free > part);
	r = text_packet(1, text, TEXT, 100, TOKD_F_IDS | TOKD_F_STREAM, packets - 1);
	r.req.ids_ack = 100;
	ask(r);
	while (next_reply(&rep))
		assert_memory_equal(rep.ids, &want[rep.rep.first], 4 * rep.rep.count);
	assert_true(rep.rep.flags & TOKD_F_DONE);
	ask(poll_request(1, n_want, 0));
	drain();
	assert_int_equal(fx->w.side.n_free, fx->w.side.n);
}

TEST_WITH(side_store_that_is_full_loses_ids_and_says_so, setup_small_ring_and_side_store, teardown)
{
	uint32_t kept = 0;

	begin(3, TEXT);
	/* More streams, which stay open, than it has room for. */
	for (uint64_t s = 0; s < STREAMS - 2; s++) {
		struct request r = text_packet(s, text, TEXT, TEXT / 2, TOKD_F_IDS, 0);

		send_request(r);
	}
	run();
	fill_ring();
	assert_true(fx->w.counter[C_SIDE_FULL] > 0);
	for (uint64_t s = 0; s < STREAMS - 2; s++) {
		struct request r = text_packet(s, text, TEXT, TEXT / 2, TOKD_F_IDS, 1);
		struct reply rep;

		ask(r);
		while (next_reply(&rep)) {
			assert_memory_equal(rep.ids, &want[rep.rep.first], 4 * rep.rep.count);
			if (rep.rep.flags & TOKD_F_FAIL)
				assert_int_equal(rep.rep.reason, TOKD_R_EXPIRED);
		}
		kept += !!(rep.rep.flags & TOKD_F_DONE);
	}
	assert_true(kept > 0 && kept < STREAMS - 2);
}

TEST_WITH(side_store_survives_many_slow_clients, setup_small_ring_and_side_store, teardown)
{
	/* Open texts of all sizes, whose clients acknowledge some, all or nothing before the end.
	 */
	for (uint32_t round = 0; round < 60; round++) {
		const uint32_t open = 1 + round % (STREAMS - 2), n = 100 + round * 7;
		struct request r;

		begin(round, n);
		for (uint32_t s = 0; s < open; s++) {
			r = text_packet(round * 100 + s, text, n, 1 + n / 2,
				TOKD_F_IDS | (s % 2 ? TOKD_F_STREAM : 0), 0);
			send_request(r);
		}
		run();
		drain();
		fill_ring();
		for (uint32_t s = 0; s < open; s++) {
			struct reply rep;

			r = text_packet(round * 100 + s, text, n, 1 + n / 2,
				TOKD_F_IDS | (s % 2 ? TOKD_F_STREAM : 0), 1);
			r.req.ids_ack = s % 3 * 20;
			ask(r);
			while (next_reply(&rep))
				assert_memory_equal(
					rep.ids, &want[rep.rep.first], 4 * rep.rep.count);
			if (s % 3 == 0 && (rep.rep.flags & TOKD_F_DONE))
				ask_again(round * 100 +
					  s); /* the ids are right, or it says EXPIRED */
		}
	}
	assert_true(fx->w.counter[C_SIDE_COPIED] > 0);
	assert_true(fx->w.counter[C_SIDE_FULL] > 0);
}
