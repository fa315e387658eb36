/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that have not shown that their address is theirs; frames of who reads the wire. */
#include "fixture.h"
#include "datapath/stream/cookie.h"

#define HALF (STREAMS / 2)
static const struct rte_ether_addr other_mac = {{2, 0, 0, 0, 0, 3}};

/* As setup(), with clients that have no cookie. */
static int
setup_strangers(void **state)
{
	const int rc = setup(state);

	fx->validated = false;
	return rc;
}
#define STRANGERS_TEST(name) TEST_WITH(name, setup_strangers, teardown)

static void
ask_from(struct request r, struct rte_ether_addr mac)
{
	struct frame f = make_frame(r);

	f.eth->src_addr = mac;
	receive(f.m);
}

/* Texts that begin, and never end, until one more than half of the streams is open. */
static void
open_half(void)
{
	for (uint32_t i = 0; i <= HALF; i++)
		ask(data_request(1000 + i, 0, 0, "hello", 5, 0));
	expect_count(C_STREAMS_OPENED, HALF + 1);
	drain();
}

/* The authors' vectors_sip64[8] and [32]: key and message count up from 0. */
TEST(siphash_is_that_of_its_authors)
{
	const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
	uint64_t word[4];

	for (uint32_t i = 0; i < sizeof(word); i++)
		((uint8_t *)word)[i] = (uint8_t)i;
	assert_true(tokd_siphash(key, word, 1) == UINT64_C(0x93f5f5799a932462));
	assert_true(tokd_siphash(key, word, 4) == UINT64_C(0x7127512f72f27cce));
}

STRANGERS_TEST(a_cookie_is_of_one_client_and_for_two_periods)
{
	const uint64_t period = fx->w.tsc_hz * TOKD_COOKIE_SECONDS;
	const struct tokd_peer peer = {.addr = tokd_addr_v4(RTE_BE32(RTE_IPV4(10, 0, 0, 2))),
		.mac = {{2, 0, 0, 0, 0, 2}},
		.port = RTE_BE16(40000)};
	struct tokd_peer other[] = {peer, peer, peer, peer};
	uint64_t cookie;

	fx->w.t_burst = 7 * period;
	cookie = tokd_cookie_make(&fx->w, &peer);
	other[0].addr.byte[15]++;
	other[1].addr.byte[0]++;
	other[2].mac.addr_bytes[5]++;
	other[3].port++;
	for (uint32_t i = 0; i < RTE_DIM(other); i++)
		assert_false(tokd_cookie_check(&fx->w, &other[i], cookie));
	for (uint32_t bit = 0; bit < 64; bit++)
		assert_false(tokd_cookie_check(&fx->w, &peer, cookie ^ UINT64_C(1) << bit));
	expect_count(C_COOKIE_WRONG, RTE_DIM(other) + 64);
	assert_false(tokd_cookie_check(&fx->w, &peer, 0));
	expect_count(C_COOKIE_WRONG, RTE_DIM(other) + 64);

	assert_true(tokd_cookie_check(&fx->w, &peer, cookie));
	fx->w.t_burst = 9 * period - 1;
	assert_true(tokd_cookie_check(&fx->w, &peer, cookie));
	assert_true(tokd_cookie_make(&fx->w, &peer) != cookie);
	fx->w.t_burst = 9 * period;
	assert_false(tokd_cookie_check(&fx->w, &peer, cookie));
	expect_count(C_COOKIE_RIGHT, 2);
	fx->w.t_burst = 7 * period;
	fx->w.streams->cookie_key[1]++; /* another process */
	assert_false(tokd_cookie_check(&fx->w, &peer, cookie));
}

STRANGERS_TEST(half_of_the_streams_are_for_validated_clients)
{
	const struct tokd_addr client = tokd_addr_v4(RTE_BE32(RTE_IPV4(10, 0, 0, 2)));
	struct request r = text_packet(1, "hello", 5, 100, TOKD_F_IDS, 0);
	struct reply refused;

	open_half();
	assert_false(tokd_source_find(&fx->w, &client)->validated);
	ask(r);
	refused = expect_reply();
	assert_int_equal(refused.rep.flags, TOKD_F_FAIL);
	assert_int_equal(refused.rep.reason, TOKD_R_VALIDATE);
	assert_true(refused.rep.cookie == cookie_of(r));
	assert_int_equal(refused.udp_payload, sizeof(struct tokd_rep));
	expect_count(C_DROP_VALIDATE, 1);
	expect_count(C_STREAMS_OPENED, HALF + 1);

	/* A wrong one is none; nor is another's right one. */
	r.req.cookie = refused.rep.cookie + 1;
	expect_refusal(r, TOKD_R_VALIDATE);
	r.req.cookie = refused.rep.cookie;
	r.port = 40001;
	expect_refusal(r, TOKD_R_VALIDATE);
	expect_count(C_COOKIE_WRONG, 2);
	expect_count(C_STREAMS_OPENED, HALF + 1);

	r.port = 0;
	ask(r);
	assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	expect_count(C_COOKIE_RIGHT, 1);
	assert_true(tokd_source_find(&fx->w, &client)->validated);
	expect_text(1, "hello", 5);
	/* All of the table, then. */
	for (uint32_t i = HALF + 1; i < STREAMS; i++) {
		r = data_request(2000 + i, 0, 0, "hello", 5, 0);
		r.req.cookie = refused.rep.cookie;
		ask(r);
	}
	assert_int_equal(tokd_worker_open_streams(&fx->w), STREAMS);
	drain();
}

STRANGERS_TEST(streams_that_are_open_need_no_cookie_nor_do_others_below_half)
{
	struct request r;

	open_half();
	for (uint32_t i = 0; i < 3; i++) { /* they end */
		r = data_request(1000 + i, 1, 5, NULL, 0, TOKD_F_LAST);
		r.req.text_crc = crc32c_of("hello", 5);
		ask(r);
		assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	}
	r = text_packet(2, "hello", 5, 100, 0, 0);
	r.req.cookie = 12345; /* of another appliance */
	ask(r);
	assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	expect_count(C_DROP_VALIDATE, 0);
	expect_count(C_COOKIE_RIGHT, 0);
	expect_count(C_COOKIE_WRONG, 0);
}

/* Replies so far, of which none may exceed three times what came in. */
static struct reply
limited(uint64_t in, uint64_t *out)
{
	struct reply r, last = {0};

	while (next_reply(&r)) {
		*out += r.udp_payload;
		last = r;
	}
	assert_true(*out <= 3 * in);
	return last;
}

STRANGERS_TEST(three_bytes_out_for_each_in_until_validated)
{
	static uint8_t text[1300];
	struct request r;
	struct reply last;
	uint64_t in = 0, out = 0;

	memset(text, 0xff, sizeof(text)); /* three ids a byte */
	r = text_packet(1, text, sizeof(text), sizeof(text), TOKD_F_IDS, 0);
	ask(r);
	in += sizeof(r.req) + sizeof(text);
	last = limited(in, &out);
	assert_int_equal(last.rep.flags, TOKD_F_FAIL);
	assert_int_equal(last.rep.reason, TOKD_R_VALIDATE);
	assert_int_equal(last.rep.ack, 1);
	assert_int_equal(last.rep.total, 3 * sizeof(text));
	expect_text(1, text, sizeof(text)); /* it is in the ring */

	/* A forger goes on asking, in his victim's name. */
	for (uint32_t i = 0; i < 100; i++) {
		r = poll_request(1, 0, 3 * sizeof(text));
		r.req.cookie = i % 2;
		ask(r);
		in += sizeof(r.req);
		limited(in, &out);
	}
	assert_true(fx->w.counter[C_REPLY_LIMITED] > 20);
	assert_true(out > 2 * in);

	/* The victim himself has the cookie, and gets the rest. */
	r.req.cookie = cookie_of(r);
	out = 0;
	for (uint32_t i = 0; i < 4 && out < 3 * sizeof(text) * 4; i++) {
		ask(r);
		while (next_reply(&last)) {
			assert_int_equal(last.rep.reason, TOKD_R_NONE);
			assert_true(last.rep.flags & TOKD_F_DONE);
			out += last.rep.count * sizeof(uint32_t);
		}
	}
	assert_true(out >= 3 * sizeof(text) * 4);
	expect_count(C_COOKIE_RIGHT, 1);
}

STRANGERS_TEST(ordinary_texts_never_meet_the_limit)
{
	static uint8_t text[20000];
	struct reply r;

	make_text(text, sizeof(text), 4);
	for (uint32_t n = 0; n < 20; n++) { /* an id for two bytes */
		ask_text(n, text, n * 1000, 1376, TOKD_F_IDS);
		do
			assert_true(next_reply(&r));
		while (!(r.rep.flags & TOKD_F_DONE) || r.rep.first + r.rep.count < r.rep.total);
	}
	expect_count(C_REPLY_LIMITED, 0);
}

/* Who reads the wire sends on it, with an address of his own. */
STRANGERS_TEST(a_stream_is_of_the_mac_of_its_first_frame)
{
	struct request r = data_request(1, 0, 0, "hello world ", 12, TOKD_F_IDS | TOKD_F_STREAM);
	struct request forged[5];
	struct reply reply;

	ask(r);
	reply = expect_reply();
	assert_true(reply.rep.count > 0);
	forged[0] = data_request(1, 1, 12, "evil", 4, TOKD_F_IDS | TOKD_F_STREAM);
	forged[1] = data_request(1, 1, 12, "hello", 4, 0x8000);
	forged[2] = data_request(1, 1, 11, "hello", 4, TOKD_F_IDS | TOKD_F_LAST);
	forged[3] = poll_request(1, reply.rep.count, 0);
	forged[4] = poll_request(1, 0, reply.rep.count);
	for (uint32_t i = 0; i < RTE_DIM(forged); i++) {
		struct tokd_rep rep;
		struct rte_mbuf *m;

		forged[i].req.cookie = cookie_of(r); /* seen on the wire */
		ask_from(forged[i], other_mac);
		m = expect_frame();
		assert_memory_equal(rte_pktmbuf_mtod(m, void *), &other_mac, sizeof(other_mac));
		assert_int_equal(rte_pktmbuf_data_len(m), 42 + sizeof(struct tokd_rep));
		memcpy(&rep, rte_pktmbuf_mtod_offset(m, const void *, 42), sizeof(rep));
		assert_int_equal(rep.reason, TOKD_R_EXPIRED);
		rte_pktmbuf_free(m);
		expect_nothing();
	}
	expect_count(C_DROP_MAC, RTE_DIM(forged));
	/* It goes on, and nothing was acknowledged. */
	r = data_request(1, 1, 12, "hello", 5, TOKD_F_IDS | TOKD_F_STREAM | TOKD_F_LAST);
	r.req.text_crc = crc32c_of("hello world hello", 17);
	ask(r);
	assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	expect_text(1, "hello world hello", 17);
	ask(poll_request(1, 0, 1000));
	reply = expect_reply();
	assert_int_equal(reply.rep.first, 0);
	assert_int_equal(reply.rep.count, reply.rep.total);
	expect_count(C_STREAMS_FAILED, 0);
}

/* Who guesses the next stream id begins that stream before its client does. */
STRANGERS_TEST(a_stream_of_another_mac_does_not_stand_in_the_way)
{
	struct request r = data_request(1, 1, 5, "evil", 4, TOKD_F_IDS);

	ask_from(r, other_mac);
	r = text_packet(1, "hello", 5, 100, TOKD_F_IDS, 0);
	ask_from(r, other_mac);
	drain();
	send_request(text_packet(1, "hello world hello", 17, 10, TOKD_F_IDS, 0));
	ask(text_packet(1, "hello world hello", 17, 10, TOKD_F_IDS, 1));
	assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	expect_count(C_STREAMS_OPENED, 2);
	expect_count(C_STREAMS_DONE, 1);
}
