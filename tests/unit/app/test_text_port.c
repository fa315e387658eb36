/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain-text port. */
#include <stdlib.h>

#include "fixture.h"
#include "vocabulary.h"

static struct rte_mbuf *
text_frame(const void *text, uint32_t n)
{
	struct request r = {.req = {0}, .text = text, .n = n};
	struct frame f = make_frame(r);

	/* The text takes the place of the request. */
	memmove(f.payload, f.payload + sizeof(r.req), n);
	rte_pktmbuf_trim(f.m, sizeof(r.req));
	f.udp->dst_port = RTE_BE16(TEXT_PORT);
	f.udp->dgram_len = rte_cpu_to_be_16((uint16_t)(8 + n));
	f.ip->total_length = rte_cpu_to_be_16((uint16_t)(28 + n));
	seal_frame(&f);
	return f.m;
}

static uint32_t most_answer = RTE_ETHER_MTU; /* bytes of an IP packet */

/* All answers so far, one after the other, as nc shows them; returns how many there were. */
static uint32_t
answers(char *text, uint32_t room)
{
	struct rte_mbuf *m;
	uint32_t n = 0, used = 0;

	while ((m = next_frame()) != NULL) {
		const struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, 14);
		const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
		uint32_t len = rte_be_to_cpu_16(udp->dgram_len) - 8u;

		assert_int_equal(udp->src_port, RTE_BE16(TEXT_PORT));
		assert_int_equal(rte_ipv4_udptcp_cksum(ip, udp), 0xffff);
		assert_true(len + 28 <= most_answer && used + len < room);
		memcpy(text + used, udp + 1, len);
		used += len;
		rte_pktmbuf_free(m);
		n++;
	}
	text[used] = '\0';
	return n;
}

static void
expect_ids_of(const char *line, const void *text, uint32_t n)
{
	static uint32_t ids[20000];
	uint32_t count = whole(text, n, ids, RTE_DIM(ids));
	char *end = (char *)line;

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(strtoul(end, &end, 10), ids[i]);
		assert_int_equal(*end, i + 1 < count ? ' ' : '\n');
		end++;
	}
	assert_int_equal(*end, '\0');
}

FIXTURE_TEST(text_port_answers_in_decimal)
{
	static const char *const texts[] = {"hello world", "a", "hello\n", "\xff\xfe"};
	char line[1000];

	for (uint32_t i = 0; i < RTE_DIM(texts); i++) {
		uint32_t n = (uint32_t)strlen(texts[i]);

		receive(text_frame(texts[i], n));
		assert_int_equal(answers(line, sizeof(line)), 1);
		expect_ids_of(line, texts[i], n);
		expect_text(i, texts[i], n);
	}
	receive(text_frame("", 0));
	assert_int_equal(answers(line, sizeof(line)), 1);
	assert_string_equal(line, "\n");
	expect_text(RTE_DIM(texts), "", 0);
	expect_count(C_TEXT_PORT, RTE_DIM(texts) + 1);
}

FIXTURE_TEST(text_port_answers_long_texts_in_several_datagrams)
{
	static uint8_t text[8000];
	static char line[80000];

	make_text(text, sizeof(text), 3);
	receive(text_frame(text, sizeof(text)));
	assert_true(answers(line, sizeof(line)) > 1);
	expect_ids_of(line, text, sizeof(text));
	expect_text(0, text, sizeof(text));
}

FIXTURE_TEST(text_port_answers_fit_the_mtu)
{
	static uint8_t text[2000];
	static char line[20000];
	uint32_t before;

	make_text(text, sizeof(text), 3);
	receive(text_frame(text, sizeof(text)));
	before = answers(line, sizeof(line));
	fx->w.mtu = most_answer = 576;
	receive(text_frame(text, sizeof(text)));
	assert_true(answers(line, sizeof(line)) > before);
	most_answer = RTE_ETHER_MTU;
	expect_ids_of(line, text, sizeof(text));
}

FIXTURE_TEST(text_port_takes_several_segments)
{
	static uint8_t text[3000];
	static char line[40000];

	make_text(text, sizeof(text), 5);
	put(cut_frame(text_frame(text, sizeof(text)), 14 + 20 + 8, 77));
	run();
	answers(line, sizeof(line));
	expect_ids_of(line, text, sizeof(text));
}

TEST_WITH(text_port_refuses_what_is_too_long_or_no_text, setup_small_ring, teardown)
{
	char line[1000];

	fx->w.terms->max_text = 15;
	receive(text_frame("sixteen, sixteen", 16));
	answers(line, sizeof(line));
	assert_string_equal(line,
		"error: text too long: 16 bytes, at most 15 by --max-text: shorten it, or raise the "
		"option\n");
	expect_count(C_DROP_TOO_LONG, 1);
	expect_count(C_RECORDS, 0);
	fx->w.terms->tok_flags |= TOK_STRICT_UTF8;
	receive(text_frame("\xff", 1));
	answers(line, sizeof(line));
	assert_memory_equal(line, "error: not UTF-8", 16);
	expect_count(C_DROP_TEXT, 1);
	expect_count(C_RECORDS, 1); /* ABORT */
	atomic_store(&fx->stop, TOKD_DRAIN);
	receive(text_frame("late", 4));
	answers(line, sizeof(line));
	assert_string_equal(line, "error: dpdk-tokd is shutting down\n");
	expect_count(C_DROP_SHUTDOWN, 1);
	expect_count(C_RECORDS, 1);
	expect_count(C_TEXT_PORT, 0);
}

/* Its worst case, three ids a byte, exceeds the ring: it is fed in pieces. */
TEST_WITH(text_port_takes_more_than_the_ring_at_once, setup_small_ring, teardown)
{
	static uint8_t text[JUMBO_TEXT];
	static char line[100000];

	make_text(text, sizeof(text), 6);
	receive(text_frame(text, sizeof(text)));
	answers(line, sizeof(line));
	expect_ids_of(line, text, sizeof(text));
	expect_count(C_TEXT_PORT, 1);
}

/* Nobody can show here that he receives at his address. */
FIXTURE_TEST(text_port_answers_three_bytes_for_each_received)
{
	uint8_t text[300];
	char line[1000];

	memset(text, 0xff, sizeof(text)); /* three ids a byte, of three digits */
	for (uint32_t n = 0; n <= sizeof(text); n++) {
		receive(text_frame(text, n));
		answers(line, sizeof(line));
		assert_true(strlen(line) + 28 <= 3 * (n + 28));
		if (line[0] >= '0' && line[0] <= '9')
			expect_ids_of(line, text, n);
		else if (n > 8)
			assert_string_equal(line,
				"error: answer above 3 bytes a byte received: use tokd-client\n");
		expect_text(n, text, n); /* it is in the ring */
	}
	assert_true(fx->w.counter[C_REPLY_LIMITED] >= sizeof(text) - 8);
}

/* In turns of the loop, not in time, as for other texts: one piece of new text, and one that waits.
 */
FIXTURE_TEST(text_port_gives_way_when_a_turn_is_used_up)
{
	static uint8_t text[JUMBO_TEXT];
	static char line[100000];
	uint64_t before = 0;

	fx->w.feed_ticks = 1;
	make_text(text, sizeof(text), 7);
	put(text_frame(text, sizeof(text)));
	for (uint32_t i = 0; i < 3; i++)
		put(text_frame("hello", 5));
	for (uint32_t turn = 0; turn < 4; turn++) {
		tokd_worker_turn(&fx->w);
		assert_in_range(fx->w.counter[C_TEXT_BYTES] - before, 1, 2 * 2048);
		before = fx->w.counter[C_TEXT_BYTES];
	}
	assert_true(before < sizeof(text));
	assert_true(answers(line, sizeof(line)) > 0); /* of short ones */
	*(strchr(line, '\n') + 1) = '\0';
	expect_ids_of(line, "hello", 5);
	run();
	answers(line, sizeof(line));
	for (uint32_t i = 0; i <= 3; i++) {
		fx->read_pos = 0;
		expect_text(i, i == 0 ? (const void *)text : "hello", i == 0 ? sizeof(text) : 5);
	}
	expect_count(C_TEXT_PORT, 4);
	assert_true(fx->w.counter[C_FEED_DEFERRED] >= 4);
}

/* A text whose packet cannot be held until its turn is refused, not forgotten. */
FIXTURE_TEST(text_port_refuses_what_cannot_wait)
{
	char line[1000];

	fx->w.feed_ticks = 0;
	fx->w.held_max = 0;
	receive(text_frame("hello", 5));
	answers(line, sizeof(line));
	assert_memory_equal(line, "error: too many texts at once", 29);
	expect_count(C_DROP_HELD, 1);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 0);
}

/* In text: a packet of the protocol would say nothing to its sender. */
FIXTURE_TEST(text_port_says_that_it_stops_to_a_text_that_waits)
{
	char line[1000];

	fx->w.feed_ticks = 0;
	put(text_frame("hello", 5));
	tokd_worker_turn(&fx->w);
	expect_nothing();
	tokd_shutdown(&fx->w);
	answers(line, sizeof(line));
	assert_string_equal(line, "error: dpdk-tokd is shutting down\n");
}

FIXTURE_TEST(text_port_says_why_a_text_is_refused)
{
	const struct tokd_vocab was = fx->w.terms->vocab[0];
	struct tok_vocab *nfc = vocabulary_make_nfc(VOCABULARY_MERGES);
	uint8_t text[2 * (TOK_NFC_MARKS_MAX + 2)];
	char line[1000];

	assert_non_null(nfc);
	for (size_t i = 0; i < sizeof(text); i += 2)
		memcpy(text + i, "\xcc\x81", 2);
	fx->w.terms->vocab[0].tok = nfc;
	fx->w.terms->vocab[0].cache = NULL;
	receive(text_frame(text, sizeof(text)));
	fx->w.terms->vocab[0] = was;
	tok_vocab_free(nfc);
	answers(line, sizeof(line));
	assert_string_equal(
		line, "error: more than 256 combining marks in a row: a limit of streams\n");
	expect_count(C_DROP_TEXT, 1);
}

TEST_WITH(text_port_waits_for_nobody, setup_small_ring, teardown)
{
	char line[1000];

	reader_join(0); /* and never reads */
	for (uint32_t i = 0; i < 2000; i++) {
		receive(text_frame("hello", 5));
		answers(line, sizeof(line));
	}
	assert_string_equal(line, "error: the token ring is full: send the text again\n");
	assert_true(fx->w.counter[C_DROP_RING_FULL] > 0);
	fx->cursor[0] = fx->w.ring.head;
	receive(text_frame("hello", 5));
	assert_int_equal(answers(line, sizeof(line)), 1);
	expect_ids_of(line, "hello", 5);
}

FIXTURE_TEST(text_port_answers_no_server)
{
	static const uint16_t ports[] = {1, 7, TEXT_PORT, 9000, TOKD_CLIENT_PORTS - 1};
	char answer[200];

	for (uint32_t i = 0; i < RTE_DIM(ports); i++) {
		struct rte_mbuf *m = text_frame("hello", 5);
		struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, 14 + 20);

		udp->src_port = rte_cpu_to_be_16(ports[i]);
		udp->dgram_cksum = 0;
		receive(m);
		expect_nothing();
		expect_count(C_DROP_TEXT_SOURCE, i + 1);
	}
	expect_count(C_TEXT_PORT, 0);
	receive(text_frame("hello", 5));
	assert_int_equal(answers(answer, sizeof(answer)), 1);
	assert_int_equal(fx->w.time[T_WIRE_TO_RING].max > 0, 1);
	assert_int_equal(fx->w.time[T_TEXT_TO_LAST_ID].max > 0, 1);
}
