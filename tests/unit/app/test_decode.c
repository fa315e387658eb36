/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids in, text out: the text is tok_decode's, however ids are cut, and whatever they are. */
#include <stdlib.h>

#include "fixture.h"
#include "small_vocab.h"
#include "telemetry/histogram.h"

#define DECODE (TOKD_F_IDS | TOKD_F_DECODE)
#define IDS 6000
#define ROOM (16 * IDS)

static uint32_t ids[IDS], n_ids, n_want, n_got;
static uint8_t want[ROOM], got[ROOM];

/* Of a text, its whole characters cut by ids; or any, which need be no UTF-8. */
static void
make_ids(uint32_t n, uint32_t seed, bool any)
{
	const struct tok_vocab *v = fx->w.terms->vocab[0].tok;
	static uint8_t text[4 * IDS];
	struct tok_result r;

	make_text(text, sizeof(text), seed);
	r = tok_encode(v, NULL, text, n, 0, ids, IDS);
	assert_int_equal(r.status, TOK_OK);
	n_ids = (uint32_t)r.produced;
	for (uint32_t i = 0; any && i < n_ids; i++) {
		seed = seed * 1664525 + 1013904223;
		ids[i] = (seed >> 8) % tok_vocab_info(v).n_ids;
	}
	r = tok_decode(v, ids, n_ids, want, ROOM);
	assert_int_equal(r.status, TOK_OK);
	n_want = (uint32_t)r.produced;
	n_got = 0;
}

/* Take the replies that are there: text from n_got on, cut at whole characters. */
static struct reply
take_text(bool is_utf8)
{
	struct reply r, last = {0};

	while (next_reply(&r)) {
		assert_int_equal(!(r.rep.flags & TOKD_F_DECODE), r.rep.count == 0);
		if (r.rep.count > 0)
			assert_int_equal(r.rep.first, n_got);
		for (uint32_t i = 0; i < r.rep.count; i++)
			got[n_got++] = (uint8_t)r.ids[i];
		assert_false(is_utf8 && n_got < n_want && (want[n_got] & 0xc0) == 0x80);
		last = r;
	}
	return last;
}

static void
expect_whole(const struct reply *last)
{
	assert_true(last->rep.flags & TOKD_F_DONE);
	assert_int_equal(last->rep.total, n_want);
	assert_int_equal(last->rep.text_end, 4 * n_ids);
	assert_int_equal(last->rep.ids_crc, crc32c_of(want, n_want));
	assert_int_equal(n_got, n_want);
	assert_memory_equal(got, want, n_want);
}

FIXTURE_TEST(decode_of_every_cut_gives_the_same_text)
{
	n_ids = 40;
	for (uint32_t cut = 1; cut <= 4 * n_ids + 4; cut++) {
		struct reply last;

		make_ids(150, 1, cut % 2);
		ask_text(cut, ids, 4 * n_ids, cut, DECODE | (cut % 3 ? TOKD_F_STREAM : 0));
		last = take_text(cut % 2 == 0);
		expect_whole(&last);
	}
	assert_int_equal(fx->w.counter[C_DECODED_IDS], n_ids * fx->w.counter[C_STREAMS_DONE]);
	expect_count(C_TEXT_BYTES, 0);
	expect_count(C_IDS, 0);
	for (uint32_t t = 0; t < T_COUNT; t++) {
		const bool decodes = t == T_IDS_TO_TEXT || t == T_DECODER || t == T_RING_TO_REPLY;

		assert_int_equal(tokd_histogram_count(&fx->w.time[t]),
			decodes ? fx->w.counter[C_STREAMS_DONE] : 0);
	}
}

FIXTURE_TEST(decode_of_packets_out_of_order_and_of_segments)
{
	const uint32_t cut = 334; /* no multiple of 4 */
	struct reply last;

	make_ids(IDS, 2, false);
	for (uint32_t i = text_packets(4 * n_ids, cut); i-- > 0;) {

		put(cut_frame(make_frame(text_packet(1, ids, 4 * n_ids, cut, DECODE, i)).m,
			14 + 20 + 8 + 64 + i % 7, 201));
	}
	run();
	last = take_text(true);
	expect_whole(&last);
}

FIXTURE_TEST(decode_of_nothing_is_an_empty_text)
{
	ask(text_packet(1, ids, 0, 100, DECODE, 0));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
}

FIXTURE_TEST(decode_names_the_id_that_is_none)
{
	const uint32_t bad[] = {
		tok_vocab_info(fx->w.terms->vocab[0].tok).n_ids, UINT32_MAX, 1u << 31};
	uint64_t stream = 0;

	for (uint32_t cut = 1; cut < 50; cut += 8) {
		for (uint32_t at = 0; at < 20; at += 19) {
			struct text_ids *records = calloc(1, sizeof(*records));
			struct reply rep;

			make_ids(30, 3, false);
			n_ids = 20;
			ids[at] = bad[stream % RTE_DIM(bad)];
			ask_text(++stream, ids, 4 * n_ids, cut, DECODE);
			while (next_reply(&rep))
				;
			assert_int_equal(rep.rep.flags & ~TOKD_F_DECODE, TOKD_F_FAIL);
			assert_int_equal(rep.rep.reason, TOKD_R_ID);
			assert_int_equal(rep.rep.text_end, 4 * at);
			gather(stream, records);
			assert_int_equal(records->aborts, 1);
			assert_int_equal(records->reason, TOKD_R_ID);
			free(records);
		}
	}
}

FIXTURE_TEST(decode_must_be_asked_for_in_all_packets_and_for_whole_ids)
{
	static const uint16_t flags[] = {
		TOKD_F_SKIP_SPECIAL, DECODE | TOKD_F_SHORT, DECODE | TOKD_F_LAST};

	make_ids(30, 4, false);
	for (uint32_t i = 0; i < RTE_DIM(flags); i++)
		expect_refusal(data_request(1 + i, 0, 0, ids, 6, flags[i]), TOKD_R_LENGTH);
	for (uint32_t i = 0; i < 2; i++) {
		ask(data_request(10 + i, 0, 0, ids, 8, i == 0 ? DECODE : TOKD_F_IDS));
		drain();
		ask(data_request(10 + i, 1, 8, ids, 8, i == 0 ? TOKD_F_IDS : DECODE));
		assert_true(drain() > 0);
		expect_count(C_STREAMS_FAILED, i + 1);
	}
}

FIXTURE_TEST(decode_gives_no_text_longer_than_max_text)
{
	make_ids(400, 5, false);
	fx->w.terms->max_text = RTE_MAX(4 * n_ids, n_want);
	ask_text(1, ids, 4 * n_ids, 1000, DECODE);
	assert_true(take_text(true).rep.flags & TOKD_F_DONE);
	fx->w.terms->max_text = 4 * 4;
	for (uint32_t i = 0; i < 4; i++)
		ids[i] = tok_vocab_info(fx->w.terms->vocab[0].tok).n_ids - 4; /* " token" */
	ask_text(2, ids, 4 * 4, 1000, DECODE);
	expect_fail(TOKD_R_TEXT_TOO_LONG);
}

/* A client that acknowledges nothing, with ids of long tokens. */
FIXTURE_TEST(decode_stops_until_text_is_acknowledged)
{
	const uint32_t long_id = tok_vocab_info(fx->w.terms->vocab[0].tok).n_ids - 4; /* " token" */
	const uint32_t n = 2048; /* of a packet: several records */
	struct reply rep;
	struct request r;
	uint32_t p = 0, total;

	for (uint32_t i = 0; i < n; i++)
		ids[i] = long_id;
	do {
		r = data_request(1, p, 4 * n * p, ids, 4 * n, DECODE | TOKD_F_STREAM);
		ask(r);
		while (next_reply(&rep))
			;
	} while (rep.rep.ack == ++p);
	total = rep.rep.total;
	assert_in_range(total, TOKD_STREAM_TEXT, TOKD_STREAM_TEXT + 6 * n - 1);
	assert_int_equal(rep.rep.credit, 0);
	expect_count(C_DROP_REPLY_WINDOW, 1);
	r.req.ids_ack = total;
	ask(r);
	while (next_reply(&rep))
		;
	assert_int_equal(rep.rep.ack, p);
	assert_int_equal(rep.rep.total, 6 * n * p);
}

/* A client that is slow: its text is in the side store, then asked for in part and as a whole. */
TEST_WITH(decode_again_also_from_the_side_store, setup_small_ring_and_side_store, teardown)
{
	struct request r;
	struct reply last;

	make_ids(1000, 6, false);
	ask_text(1, ids, 4 * n_ids, 130, DECODE);
	drain();
	for (uint64_t lap = 0; fx->w.ring.head < 3 * SMALL_RING_BYTES; lap++) {
		send_request(poll_request(1, 0, 0));
		ask_text(100 + lap, "hello world", 11, 100, 0);
		drain();
	}
	expect_count(C_SIDE_COPIED, n_want);
	for (uint32_t from = 0; from < n_want; from += 97) {
		while ((want[from] & 0xc0) == 0x80)
			from++;
		r = poll_request(1, from, n_want);
		n_got = from;
		memcpy(got, want, from);
		ask(r);
		last = take_text(true);
		expect_whole(&last);
	}
}

FIXTURE_TEST(decode_leaves_out_special_tokens_if_asked)
{
	struct small_vocab sv;
	struct tokd_vocab vocab = {0};
	uint64_t seed = 7;

	small_vocab_of(&sv, &seed, "ab\xc3\xa9", 20, TOK_PRETOK_GPT2, SMALL_ADDED);
	vocab.tok = sv.v;
	vocab.longest = SMALL_BYTES_MAX;
	for (uint32_t round = 0; round < 300; round++) {
		const uint32_t n = small_random(&seed, 600), all = tok_vocab_info(sv.v).n_ids;
		uint32_t n_special, n_kept = 0, kept[600];
		const uint32_t *special = tok_vocab_specials(sv.v, &n_special);
		const uint8_t *bytes = (const uint8_t *)ids;
		struct tokd_decode d;
		struct tok_result r;

		for (uint32_t i = 0; i < n; i++) {
			bool is_special = false;

			ids[i] = small_random(&seed, 2) ? all - 1 - small_random(&seed, 10)
							: small_random(&seed, all);
			for (uint32_t k = 0; k < n_special; k++)
				is_special |= special[k] == ids[i];
			if (!is_special)
				kept[n_kept++] = ids[i];
		}
		r = tok_decode(sv.v, kept, n_kept, want, ROOM);
		n_want = (uint32_t)r.produced;
		n_got = 0;
		tokd_decode_init(&d, &vocab, true);
		for (uint32_t at = 0, part; at <= 4 * n; at += part) {
			part = 1 + small_random(&seed, 1500);
			part = RTE_MIN(part, 4 * n - at);
			r = tokd_decode_feed(&d, bytes + at, part, at + part == 4 * n, got + n_got,
				tokd_decode_bound(&d, part));
			assert_int_equal(r.status, TOK_OK);
			n_got += (uint32_t)r.produced;
			if (at + part == 4 * n)
				break;
		}
		assert_int_equal(n_got, n_want);
		assert_memory_equal(got, want, n_want);
	}
	small_vocab_free(&sv);
}
