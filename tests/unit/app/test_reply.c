/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that carry ids: when, how many, again, and never more than is owed. */
#include <stdlib.h>

#include "fixture.h"

#define TEXT_BYTES 40000
static uint8_t text[TEXT_BYTES];
static uint32_t want[3 * TEXT_BYTES], got[3 * TEXT_BYTES], n_want, n_got;

static void
texts(uint32_t n, uint32_t seed)
{
	make_text(text, n, seed);
	n_want = whole(text, n, want, RTE_DIM(want));
	n_got = 0;
}

/* Take the replies that are there: ids in order from n_got on. Returns the last one. */
static struct reply
take_ids(void)
{
	struct reply r, last = {0};

	while (next_reply(&r)) {
		if (r.rep.count > 0) {
			assert_int_equal(r.rep.first, n_got);
			assert_int_equal(!(r.rep.flags & TOKD_F_FIRST), r.rep.first != 0);
			memcpy(&got[n_got], r.ids, 4 * r.rep.count);
			n_got += r.rep.count;
		}
		last = r;
	}
	return last;
}

static void
expect_all_ids(const struct reply *last)
{
	assert_true(last->rep.flags & TOKD_F_DONE);
	assert_int_equal(last->rep.total, n_want);
	assert_int_equal(last->rep.ids_crc, crc32c_of(want, 4 * n_want));
	assert_int_equal(n_got, n_want);
	assert_memory_equal(got, want, 4 * n_want);
}

FIXTURE_TEST(reply_carries_the_ids_of_a_small_text)
{
	struct reply r;

	texts(50, 1);
	ask_text(1, text, 50, 100, TOKD_F_IDS);
	r = expect_reply();
	assert_int_equal(r.rep.flags, TOKD_F_DONE | TOKD_F_FIRST);
	assert_int_equal(r.rep.count, n_want);
	assert_memory_equal(r.ids, want, 4 * n_want);
	expect_count(fx_zero_copy ? C_REPLY_IN_PLACE : C_REPLY_COPIED, 4 * n_want);
	expect_count(C_TX_PACKETS, 1);
}

FIXTURE_TEST(reply_has_ids_of_two_bytes_if_asked)
{
	struct reply r;

	texts(1000, 1);
	assert_in_range(n_want, TOKD_REPLY_IDS + 1, 2 * TOKD_REPLY_IDS);
	ask_text(1, text, 1000, 400, TOKD_F_IDS | TOKD_F_SHORT);
	if (fx_zero_copy) { /* of 4 bytes: they need no copy */
		r = take_ids();
		expect_all_ids(&r);
		assert_false(r.rep.flags & TOKD_F_SHORT);
		return;
	}
	r = expect_reply();
	assert_int_equal(r.rep.flags, TOKD_F_DONE | TOKD_F_FIRST | TOKD_F_SHORT);
	assert_int_equal(r.rep.count, n_want);
	assert_memory_equal(r.ids, want, 4 * n_want);
	assert_int_equal(r.rep.ids_crc, crc32c_of(want, 4 * n_want));
	expect_count(C_REPLY_COPIED, 2 * n_want);
}

/* The text `t` under stream `id` from a client that takes replies of `most` bytes. */
static uint32_t
longest_reply(uint64_t id, uint32_t n, uint16_t flags, uint32_t most)
{
	uint32_t longest = 0;
	struct reply r;

	for (uint32_t i = 0; i < text_packets(n, 1000); i++) {
		struct request one = text_packet(id, text, n, 1000, flags, i);

		one.req.reply_max = most;
		send_request(one);
	}
	run();
	while (next_reply(&r))
		longest = RTE_MAX(longest, r.udp_payload);
	return longest;
}

FIXTURE_TEST(reply_is_as_long_as_its_path_takes)
{
	static const struct {
		uint32_t mtu, said, want;
	} cases[] = {{1500, 0, 1440}, {1500, UINT32_MAX, 1440}, {1500, 1439, 1436},
		{1500, 1000, 1000}, {1500, 512, 512}, {1500, 511, 512}, {1500, 1, 512},
		{1468, 0, 1440}, {1467, 0, 1436}, {1420, 0, 1392}, {1420, 1400, 1392},
		{1420, 1300, 1300}, {576, 0, 548}, {576, 1, 512}, {9000, 9000, 1440}};
	static const uint16_t flags[] = {TOKD_F_IDS, TOKD_F_IDS | TOKD_F_SHORT,
		TOKD_F_IDS | TOKD_F_STREAM, TOKD_F_IDS | TOKD_F_DECODE};

	for (uint32_t i = 0; i < RTE_DIM(cases); i++) {
		for (uint32_t k = 0; k < RTE_DIM(flags); k++) {
			const bool decode = flags[k] & TOKD_F_DECODE;

			texts(8000, 3 + k);
			if (decode) /* ids are the text, each of a byte at least */
				memcpy(text, want, 4 * n_want);
			fx->w.mtu = (uint16_t)cases[i].mtu;
			assert_in_range(
				longest_reply(i * RTE_DIM(flags) + k, decode ? 4 * n_want : 8000,
					flags[k], cases[i].said),
				/* text is cut before a character */
				cases[i].want - (decode ? 3 : 0), cases[i].want);
			expect_count(C_STREAMS_DONE, i * RTE_DIM(flags) + k + 1);
		}
	}
}

FIXTURE_TEST(reply_by_ipv6_leaves_room_for_its_header)
{
	const struct tokd_addr v6 = {.byte = {0x20, 0x01, [15] = 1}};
	const struct tokd_req said = {.reply_max = 1232}, nothing = {0};

	assert_int_equal(tokd_reply_room(&fx->w, &nothing, &v6), TOKD_WIRE_PAYLOAD);
	fx->w.mtu = 1280;
	assert_int_equal(tokd_reply_room(&fx->w, &nothing, &v6), 1280 - 48 - 64);
	assert_int_equal(tokd_reply_room(&fx->w, &said, &v6), 1232 - 64);
}

FIXTURE_TEST(reply_waits_until_it_is_full)
{
	uint32_t packets = text_packets(3000, 30);
	struct reply last;

	texts(3000, 2);
	for (uint32_t i = 0; i < packets; i++) {
		struct request r = text_packet(1, text, 3000, 30, TOKD_F_IDS, i);
		struct reply rep;

		r.req.ids_ack = n_got;
		ask(r);
		if (i + 1 == packets)
			break;
		while (next_reply(&rep)) {
			assert_true(rep.rep.count == 0 || rep.rep.count == TOKD_REPLY_IDS);
			memcpy(&got[n_got], rep.ids, 4 * rep.rep.count);
			n_got += rep.rep.count;
		}
	}
	last = take_ids();
	expect_all_ids(&last);
	/* Every 16 packets at least, and not one for each. */
	assert_true(fx->w.counter[C_TX_PACKETS] < packets / 8);
}

FIXTURE_TEST(reply_streams_ids_at_every_burst)
{
	uint32_t packets = text_packets(3000, 30);
	struct reply last = {0};

	texts(3000, 3);
	for (uint32_t i = 0; i < packets; i++) {
		struct request r = text_packet(1, text, 3000, 30, TOKD_F_IDS | TOKD_F_STREAM, i);

		r.req.ids_ack = n_got;
		ask(r);
		last = take_ids();
		assert_int_equal(n_got, last.rep.total);
	}
	expect_all_ids(&last);
	assert_true(fx->w.counter[C_TX_PACKETS] > packets / 2);
	assert_true(fx->w.counter[C_TX_PACKETS] <= packets);
}

FIXTURE_TEST(reply_again_on_poll)
{
	struct reply last, rep;

	texts(4000, 4);
	ask_text(1, text, 4000, 1000, TOKD_F_IDS);
	last = take_ids();
	expect_all_ids(&last);
	expect_count(C_REPLY_AGAIN, 0);

	/* Say that [100, 500) are missing. */
	ask(poll_request(1, 100, 500));
	assert_true(next_reply(&rep));
	assert_int_equal(rep.rep.first, 100);
	assert_int_equal(rep.rep.count, TOKD_REPLY_IDS);
	assert_memory_equal(rep.ids, &want[100], 4 * rep.rep.count);
	assert_true(next_reply(&rep));
	assert_int_equal(rep.rep.first, 100 + TOKD_REPLY_IDS);
	assert_int_equal(rep.rep.count, 400 - TOKD_REPLY_IDS);
	assert_memory_equal(rep.ids, &want[rep.rep.first], 4 * rep.rep.count);
	expect_nothing();
	expect_count(C_REPLY_AGAIN, 2);

	/* An old POLL, overtaken: nothing below 100 is owed any more. */
	ask(poll_request(1, 50, 120));
	rep = expect_reply();
	assert_int_equal(rep.rep.first, 100);
	assert_int_equal(rep.rep.count, 20);
	/* Beyond the end there is nothing. */
	ask(poll_request(1, n_want + 5, n_want + 50));
	assert_int_equal(expect_reply().rep.count, 0);
	/* All acknowledged and let go of. */
	ask(poll_request(1, n_want, 0));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_refusal(poll_request(1, 0, n_want), TOKD_R_EXPIRED);
}

FIXTURE_TEST(reply_again_is_bounded_per_poll_and_by_what_was_received)
{
	struct request r;
	uint64_t in, out;

	texts(TEXT_BYTES, 5);
	for (uint32_t i = 0; i < 40; i++) {
		ask(text_packet(1, text, TEXT_BYTES, 1000, TOKD_F_IDS, i));
		take_ids();
	}
	assert_int_equal(n_got, n_want);
	in = 40 * sizeof(struct tokd_req) + TEXT_BYTES;
	out = 0;
	for (uint32_t i = 0; i < 100; i++) {
		const uint32_t polls = 6; /* in a burst: more packets than one TX batch takes */
		struct reply rep;

		r = poll_request(1, 0, n_want);
		for (uint32_t k = 0; k < polls; k++)
			send_request(r);
		run();
		in += polls * sizeof(struct tokd_req);
		for (uint32_t k = 0; next_reply(&rep); k++) {
			assert_true(k < polls * TOKD_AGAIN_PACKETS);
			if (rep.rep.count > 0)
				out += rep.udp_payload;
		}
	}
	assert_true(out > 0);
	assert_true(out <= TOKD_AGAIN_FACTOR * in);
	assert_true(fx->w.counter[C_REPLY_AGAIN] > TOKD_TX_MAX);
}

FIXTURE_TEST(reply_never_exceeds_a_request_to_which_nothing_is_owed)
{
	struct request r[3] = {poll_request(9, 0, 100), data_request(9, 70, 0, "x", 1, 0),
		data_request(9, 1, 5, "x", 1, TOKD_F_IDS)};

	for (uint32_t i = 0; i < 3; i++) {
		ask(r[i]);
		assert_true(expect_reply().udp_payload <= sizeof(struct tokd_req));
	}
}

FIXTURE_TEST(reply_window_that_is_full_closes_the_credit)
{
	const uint16_t flags = TOKD_F_IDS | TOKD_F_STREAM;
	uint32_t n = 4000, cut = 20, packets = 200, i;
	struct request r;
	struct reply rep = {0};

	texts(n, 6);
	for (i = 0; i < packets && fx->w.counter[C_DROP_REPLY_WINDOW] == 0; i++) {
		ask(text_packet(1, text, n, cut, flags, i));
		rep = take_ids();
	}
	assert_in_range(i, TOKD_STREAM_RECS, packets - 1);
	assert_int_equal(rep.rep.credit, 0);
	assert_int_equal(rep.rep.ack, i - 1);
	ask(poll_request(1, n_got, 0));
	rep = take_ids();
	assert_int_equal(rep.rep.credit, TOKD_WIRE_WINDOW);
	for (i--; i < packets; i++) {
		r = text_packet(1, text, n, cut, flags, i);
		r.req.ids_ack = n_got; /* DATA acknowledges as well */
		ask(r);
		rep = take_ids();
	}
	expect_all_ids(&rep);
	expect_count(C_DROP_REPLY_WINDOW, 1);
}

FIXTURE_TEST(reply_goes_before_small_records_fill_the_window)
{
	uint32_t n = 400;
	struct reply last = {0};

	/* One byte a packet, replies only when full: 128 records come before 352 ids do. */
	texts(n, 7);
	for (uint32_t i = 0; i < n; i++) {
		struct request r = text_packet(1, text, n, 1, TOKD_F_IDS, i);

		r.req.ids_ack = n_got;
		ask(r);
		last = take_ids();
	}
	expect_all_ids(&last);
	expect_count(C_DROP_REPLY_WINDOW, 0);
}

FIXTURE_TEST(reply_to_poll_flushes_ids_that_wait)
{
	struct reply rep;

	texts(100, 8);
	ask(text_packet(1, text, 100, 60, TOKD_F_IDS, 0));
	expect_nothing();
	ask(poll_request(1, 0, 1000));
	rep = expect_reply();
	assert_true(rep.rep.count > 0);
	assert_int_equal(rep.rep.count, rep.rep.total);
	assert_memory_equal(rep.ids, want, 4 * rep.rep.count);
}

TEST_WITH(reply_of_a_burst_larger_than_the_ring_is_not_overwritten, setup_small_ring, teardown)
{
	uint32_t carried[STREAMS] = {0}, turns = 0, left;
	struct reply rep;

	/* Three ids a byte: 8.4 KB for each of 16 texts, in 64 KiB. */
	memset(text, 0xff, 700);
	n_want = whole(text, 700, want, RTE_DIM(want));
	do {
		for (uint32_t s = 0; s < STREAMS; s++) {

			if (carried[s] < n_want)
				send_request(text_packet(s, text, 700, 700, TOKD_F_IDS, 0));
		}
		tokd_worker_turn(&fx->w);
		while (next_reply(&rep)) {
			assert_int_equal(rep.rep.flags & TOKD_F_FAIL, 0);
			assert_memory_equal(rep.ids, &want[rep.rep.first], 4 * rep.rep.count);
			carried[rep.rep.stream_id] += rep.rep.count;
		}
		left = 0;
		for (uint32_t s = 0; s < STREAMS; s++) {
			assert_true(carried[s] == 0 || carried[s] == n_want);
			left += carried[s] == 0;
		}
		turns++;
	} while (left > 0 && turns < 10);
	assert_int_equal(left, 0);
	/* A driver that keeps packets which point into the ring makes some of the texts wait. */
	assert_true(turns == 1 || fx_zero_copy);
}

TEST_WITH(reply_goes_before_the_ring_overwrites_its_ids, setup_small_ring, teardown)
{
	texts(100, 11);
	ask(text_packet(1, text, 100, 40, TOKD_F_IDS, 0));
	ask(text_packet(1, text, 100, 40, TOKD_F_IDS, 1));
	expect_nothing(); /* too few to fill a packet */
	memset(text, 0xff, 700);
	for (uint64_t s = 10; fx->w.ring.head < SMALL_RING_BYTES / 2 + 1000; s++) {
		ask_text(s, text, 700, 700, 0);
		drain();
	}
	make_text(text, 100, 11);
	ask(data_request(1, 2, 80, text + 80, 10, TOKD_F_IDS));
	n_got = expect_reply().rep.count;
	assert_true(n_got > 10);
}

/* Fill the small ring with other texts, until what stood there is overwritten. */
static void
overwrite(void)
{
	static uint8_t other[1000];
	uint64_t until = fx->w.ring.head + 2 * SMALL_RING_BYTES;

	make_text(other, sizeof(other), 99);
	for (uint64_t s = 1000; fx->w.ring.head < until; s++) {
		ask_text(s, other, sizeof(other), 1000, 0);
		drain();
		/* Finished streams of other texts make room for one another. */
		while (TAILQ_FIRST(&fx->w.streams->finished) != NULL &&
			TAILQ_FIRST(&fx->w.streams->finished)->key.stream_id >= 1000)
			tokd_stream_release(&fx->w, TAILQ_FIRST(&fx->w.streams->finished));
		if (!TAILQ_EMPTY(&fx->w.streams->finished)) {
			struct tokd_stream *kept = TAILQ_FIRST(&fx->w.streams->finished), *next;

			while ((next = TAILQ_NEXT(kept, link)) != NULL)
				tokd_stream_release(&fx->w, next);
		}
	}
}

TEST_WITH(reply_of_ids_that_were_overwritten_is_expired, setup_small_ring, teardown)
{

	/* A finished stream. */
	texts(100, 9);
	ask_text(1, text, 100, 100, TOKD_F_IDS);
	drain();
	overwrite();
	expect_refusal(poll_request(1, 0, n_want), TOKD_R_EXPIRED);
	ask(poll_request(1, 0, 0)); /* its totals are known all the same */
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_count(C_STREAMS_FAILED, 0);
}

TEST_WITH(reply_of_ids_of_an_open_stream_overwritten_fails_it, setup_small_ring, teardown)
{
	struct text_ids *ids = calloc(1, sizeof(*ids));

	texts(100, 9);
	/* Sent once, asked for again too late. */
	ask(text_packet(1, text, 100, 60, TOKD_F_IDS | TOKD_F_STREAM, 0));
	assert_true(expect_reply().rep.count > 0);
	/* Never sent: too few to fill a packet. */
	ask(text_packet(2, text, 100, 60, TOKD_F_IDS, 0));
	expect_nothing();
	overwrite();
	fx->read_pos = fx->w.ring.head;
	expect_refusal(poll_request(1, 0, 5), TOKD_R_EXPIRED);
	expect_refusal(text_packet(2, text, 100, 60, TOKD_F_IDS, 1), TOKD_R_EXPIRED);
	expect_count(C_STREAMS_FAILED, 1);
	expect_count(C_STREAMS_DONE, fx->w.counter[C_STREAMS_OPENED] - 1);
	free(ids);
}

FIXTURE_TEST(reply_without_an_mbuf_is_counted_and_asked_for_again)
{
	struct rte_mbuf *all[POOL_MBUFS];
	struct frame f;
	uint32_t n = 0;

	texts(50, 10);
	f = make_frame(text_packet(1, text, 50, 100, TOKD_F_IDS, 0));
	put(f.m);
	while ((all[n] = rte_pktmbuf_alloc(fx_pool)) != NULL)
		n++;
	/* The request's own mbuf is still in use while the burst is answered? No: it was freed. */
	rte_mbuf_refcnt_update(f.m, 1);
	run();
	expect_nothing();
	assert_true(fx->w.counter[C_TX_NO_MBUF] > 0);
	rte_pktmbuf_free(f.m);
	for (uint32_t i = 0; i < n; i++)
		rte_pktmbuf_free(all[i]);
	ask(poll_request(1, 0, 0));
	assert_int_equal(expect_reply().rep.count, n_want);
}

FIXTURE_TEST(reply_goes_to_where_the_latest_packet_came_from)
{
	struct request r = data_request(1, 0, 0, "hello", 5, 0);
	struct rte_mbuf *m;
	struct frame f;

	ask(r);
	r = poll_request(1, 0, 0);
	f = make_frame(r);
	f.eth->src_addr.addr_bytes[5] = 77; /* the client's router changed */
	receive(f.m);
	m = expect_frame();
	assert_int_equal(rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->dst_addr.addr_bytes[5], 77);
	rte_pktmbuf_free(m);
}

/* The next packet of a text comes while the one before is fed. */
struct arriving {
	uint8_t text[600];
	uint16_t flags;
	uint32_t next, packets;
};

static uint16_t
arrive(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint16_t max, void *given)
{
	struct arriving *a = given;

	(void)port, (void)queue, (void)m, (void)max;
	if (n > 0 && a->next < a->packets) {
		struct request r =
			text_packet(1, a->text, sizeof(a->text), 50, a->flags, a->next++);

		send_request(r);
	}
	return n;
}

static void
one_turn_while_packets_arrive(struct arriving *a)
{
	const struct rte_eth_rxtx_callback *callback;

	a->next = 1;
	send_request(text_packet(1, a->text, sizeof(a->text), 50, a->flags, 0));
	callback = rte_eth_add_rx_callback(fx->w.port, fx->w.queue, arrive, a);
	assert_non_null(callback);
	tokd_worker_turn(&fx->w);
	assert_int_equal(rte_eth_remove_rx_callback(fx->w.port, fx->w.queue, callback), 0);
}

FIXTURE_TEST(reply_waits_for_the_packets_that_come_meanwhile)
{
	struct arriving a = {.flags = TOKD_F_IDS};

	make_text(a.text, sizeof(a.text), 1);
	a.packets = text_packets(sizeof(a.text), 50);
	one_turn_while_packets_arrive(&a);
	assert_int_equal(a.next, a.packets);
	expect_text(1, a.text, sizeof(a.text));
	assert_true(expect_reply().rep.flags & TOKD_F_DONE);
}

FIXTURE_TEST(reply_of_a_stream_that_wants_ids_early_does_not_wait)
{
	struct arriving a = {.flags = TOKD_F_IDS | TOKD_F_STREAM};

	make_text(a.text, sizeof(a.text), 1);
	a.packets = text_packets(sizeof(a.text), 50);
	one_turn_while_packets_arrive(&a);
	assert_int_equal(a.next, 2); /* the second one is left to the next turn */
	assert_false(expect_reply().rep.flags & TOKD_F_DONE);
	run();
}
