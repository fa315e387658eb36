/* SPDX-License-Identifier: BSD-3-Clause */
/* What is refused, by which reason, and what that does to the stream. */
#include <stdlib.h>

#include "fixture.h"

/* Its ring records end with an ABORT for that reason. */
static void
expect_abort(uint64_t stream, enum tokd_reason reason)
{
	struct text_ids *got = calloc(1, sizeof(*got));

	gather(stream, got);
	assert_int_equal(got->first_flags, 1);
	assert_int_equal(got->aborts, 1);
	assert_int_equal(got->last_flags, 0);
	assert_int_equal(got->reason, reason);
	free(got);
}

FIXTURE_TEST(refuse_silently_what_is_not_our_protocol)
{
	struct request r = data_request(1, 0, 0, "hello", 5, 0);
	struct frame f;

	r.req.magic ^= 1;
	ask(r);
	r = data_request(1, 0, 0, "hello", 5, 0);
	r.req.type = TOKD_REPLY; /* two servers must not talk to each other */
	ask(r);
	r.req.type = 0;
	ask(r);
	r = data_request(1, 0, 0, NULL, 0, 0);
	f = make_frame(r);
	rte_pktmbuf_trim(f.m, 1);
	f.ip->total_length = RTE_BE16(20 + 8 + 63);
	f.udp->dgram_len = RTE_BE16(8 + 63);
	seal_frame(&f);
	receive(f.m);
	expect_nothing();
	expect_count(C_DROP_MAGIC, 4);
}

FIXTURE_TEST(refuse_other_versions_and_vocabularies)
{
	struct request r = data_request(1, 0, 0, "hello", 5, 0);

	for (uint32_t version = 0; version < 256; version += 17) {
		struct reply answer;

		r.req.version = (uint8_t)version;
		r.req.type = (uint8_t)(version == 0 ? TOKD_DATA : 4 * version); /* one of theirs */
		ask(r);
		answer = expect_reply();
		assert_int_equal(answer.rep.flags, TOKD_F_FAIL);
		assert_int_equal(answer.rep.reason, TOKD_R_VERSION);
		assert_int_equal(answer.rep.version, version);
		assert_int_equal(answer.rep.speaks, TOKD_WIRE_VERSION);
		assert_int_equal(answer.rep.epoch, r.req.epoch);
		assert_int_equal(answer.rep.stream_id, 1);
		assert_int_equal(answer.udp_payload, sizeof(answer.rep));
		expect_count(C_DROP_VERSION, version / 17 + 1);
	}
	r.req.type = TOKD_REPLY;
	ask(r);
	expect_nothing();
	expect_count(C_DROP_MAGIC, 1);
	r = data_request(1, 0, 0, "hello", 5, 0);
	r.req.vocab = fx->w.terms->vocab[0].checksum + 1;
	expect_refusal(r, TOKD_R_VOCAB);
	expect_count(C_DROP_VOCAB, 1);
	expect_count(C_STREAMS_OPENED, 0);
	r.req.vocab = fx->w.terms->vocab[0].checksum;
	ask(r);
	expect_count(C_STREAMS_OPENED, 1);
}

FIXTURE_TEST(vocabularies_are_chosen_by_checksum)
{
	static const char text[] = "hello world the token";
	struct request r = data_request(1, 0, 0, text, sizeof(text), TOKD_F_LAST | TOKD_F_IDS);
	struct reply reply[2];

	r.req.text_crc = crc32c_of(text, sizeof(text));
	/* The same stream id: another vocabulary makes it another stream. */
	for (fx->vocab = 0; fx->vocab < 2; fx->vocab++) {
		r.req.vocab = fx->w.terms->vocab[fx->vocab].checksum;
		ask(r);
		reply[fx->vocab] = expect_reply();
		assert_true(reply[fx->vocab].rep.flags & TOKD_F_DONE);
		expect_text(1, text, sizeof(text));
	}
	assert_true(reply[0].rep.total < reply[1].rep.total);
	fx->vocab = 0;
	r.req.vocab = 0; /* the first, by another name: a stream of its own */
	ask(r);
	assert_int_equal(expect_reply().rep.total, reply[0].rep.total);
	expect_count(C_STREAMS_OPENED, 3);
}

FIXTURE_TEST(refuse_lengths_that_disagree)
{
	struct request r = data_request(1, 0, 0, "hello", 5, 0);

	for (int by = -1; by <= 1; by += 2) {
		r.req.length = (uint32_t)(5 + by);
		expect_refusal(r, TOKD_R_LENGTH);
	}
	r.req.length = 0xffffffff;
	expect_refusal(r, TOKD_R_LENGTH);
	r = poll_request(1, 0, 0);
	r.req.length = 1;
	expect_refusal(r, TOKD_R_LENGTH);
	r = poll_request(1, 0, 0);
	r.text = "x";
	r.n = 1;
	expect_refusal(r, TOKD_R_LENGTH);
	expect_count(C_DROP_LENGTH, 5);
	expect_count(C_STREAMS_OPENED, 0);
}

FIXTURE_TEST(refuse_what_has_no_meaning_yet)
{
	for (uint32_t bit = 4; bit < 16; bit++) {
		struct request r = data_request(1, 0, 0, "hello", 5, (uint16_t)(1 << bit));

		if (1u << bit & (TOKD_F_SHORT | TOKD_F_DECODE)) /* GENERATE: not without IDS */
			continue;
		expect_refusal(r, TOKD_R_LENGTH);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct request r = data_request(1, 0, 0, "hello", 5, i * TOKD_F_LAST);

		if (i == 0)
			r.req.reserved = 1u << 8;
		else
			r.req.limit = 1;
		expect_refusal(r, TOKD_R_LENGTH);
	}
	expect_count(C_STREAMS_OPENED, 0);
}

FIXTURE_TEST(refuse_misplaced_first_and_last)
{
	struct request r = data_request(1, 0, 0, "hello", 5, 0);

	r.req.flags = 0; /* packet 0 without FIRST */
	expect_refusal(r, TOKD_R_LENGTH);
	expect_refusal(data_request(1, 1, 5, "hello", 5, TOKD_F_FIRST), TOKD_R_LENGTH);
	r = data_request(1, 1, 5, NULL, 0, 0); /* no text, and neither FIRST nor LAST */
	expect_refusal(r, TOKD_R_LENGTH);
	expect_count(C_STREAMS_OPENED, 0);

	/* Held packet 3, then LAST on 2. */
	ask(data_request(1, 3, 9, "abc", 3, 0));
	drain();
	expect_refusal(data_request(1, 2, 6, "abc", 3, TOKD_F_LAST), TOKD_R_LENGTH);
	expect_abort(1, TOKD_R_LENGTH);
	/* LAST on 2, then 3. */
	ask(data_request(2, 2, 6, "abc", 3, TOKD_F_LAST));
	drain();
	expect_refusal(data_request(2, 3, 9, "abc", 3, 0), TOKD_R_LENGTH);
	/* LAST on 2, then LAST on 1. */
	ask(data_request(3, 2, 6, "abc", 3, TOKD_F_LAST));
	drain();
	expect_refusal(data_request(3, 1, 3, "abc", 3, TOKD_F_LAST), TOKD_R_LENGTH);
	expect_count(C_STREAMS_FAILED, 3);
	expect_count(C_DROP_LENGTH, 6);
}

FIXTURE_TEST(refuse_a_gap_in_the_offsets)
{
	ask(data_request(1, 0, 0, "hello", 5, 0));
	expect_refusal(data_request(1, 1, 6, "world", 5, 0), TOKD_R_OFFSET);
	expect_abort(1, TOKD_R_OFFSET);
	expect_count(C_DROP_OFFSET, 1);
	/* The same for packets that were held. */
	ask(data_request(2, 1, 4, "world", 5, 0));
	ask(data_request(2, 2, 9, "world", 5, 0));
	drain();
	expect_refusal(data_request(2, 0, 0, "hello", 5, 0), TOKD_R_OFFSET);
	expect_abort(2, TOKD_R_OFFSET);
}

FIXTURE_TEST(refuse_texts_that_are_too_long)
{
	fx->w.terms->max_text = 8;
	ask(data_request(1, 0, 0, "hello", 5, 0));
	expect_refusal(data_request(1, 1, 5, "worl", 4, 0), TOKD_R_TEXT_TOO_LONG);
	expect_abort(1, TOKD_R_TEXT_TOO_LONG);
	expect_refusal(data_request(2, 1, 0xffffffff, "worl", 4, 0), TOKD_R_TEXT_TOO_LONG);
	expect_count(C_DROP_TOO_LONG, 2);
	ask(text_packet(3, "hellooo!", 8, 8, 0, 0));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
}

FIXTURE_TEST(refuse_a_text_whose_crc_differs)
{
	struct request r = data_request(1, 0, 0, "hello", 5, TOKD_F_LAST);

	r.req.text_crc = crc32c_of("hello", 5) ^ 1;
	expect_refusal(r, TOKD_R_TEXT_CRC);
	expect_abort(1, TOKD_R_TEXT_CRC);
	expect_count(C_STREAMS_FAILED, 1);
	expect_count(C_STREAMS_DONE, 0);
	/* And it stays failed, for its reason. */
	r.req.text_crc ^= 1;
	expect_refusal(r, TOKD_R_TEXT_CRC);
	expect_refusal(poll_request(1, 0, 0), TOKD_R_TEXT_CRC);
	expect_count(C_DROP_OVER, 1);
}

FIXTURE_TEST(refuse_what_the_tokenizer_refuses)
{
	ask(data_request(1, 0, 0, "\xff\xff", 2, 0));
	expect_nothing();
	fx->w.terms->tok_flags |= TOK_STRICT_UTF8;
	expect_refusal(data_request(2, 0, 0, "\xff\xff", 2, 0), TOKD_R_UTF8);
	expect_abort(2, TOKD_R_UTF8);
}

FIXTURE_TEST(refuse_streams_that_are_unknown)
{
	expect_refusal(poll_request(77, 0, 0), TOKD_R_UNKNOWN);
	expect_refusal(data_request(77, TOKD_WIRE_WINDOW, 100, "hello", 5, 0), TOKD_R_UNKNOWN);
	expect_count(C_DROP_UNKNOWN, 2);
	ask(data_request(77, TOKD_WIRE_WINDOW - 1, 100, "hello", 5, 0));
	expect_count(C_STREAMS_OPENED, 1);
}

/* As if the hash's secret were known. A bucket takes as many texts as may be open here. */
FIXTURE_TEST(refuse_more_texts_in_one_bucket_than_chance_puts_there)
{
	struct request r;

	fx->w.streams->key_mask = 0;
	for (uint32_t i = 0; i < STREAMS; i++) {
		r = data_request(i, 0, 0, "hello", 5, TOKD_F_LAST);
		r.req.text_crc = crc32c_of("hello", 5);
		ask(r);
		expect_count(C_STREAMS_DONE, i + 1);
	}
	drain();
	expect_refusal(data_request(99, 0, 0, "hello", 5, 0), TOKD_R_BUSY);
	expect_count(C_DROP_TABLE_FULL, 1);
	ask(poll_request(3, 0, 0));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
}

FIXTURE_TEST(refuse_when_all_streams_are_open)
{
	struct request r;

	for (uint32_t i = 0; i < STREAMS; i++)
		ask(data_request(i, 0, 0, "hello", 5, 0));
	expect_refusal(data_request(99, 0, 0, "hello", 5, 0), TOKD_R_BUSY);
	expect_count(C_DROP_TABLE_FULL, 1);
	assert_int_equal(tokd_worker_open_streams(&fx->w), STREAMS);

	/* One ends: it makes room, and its answer is forgotten. */
	r = data_request(3, 1, 5, NULL, 0, TOKD_F_LAST);
	r.req.text_crc = crc32c_of("hello", 5);
	ask(r);
	drain();
	ask(data_request(99, 0, 0, "hello", 5, 0));
	expect_nothing();
	expect_count(C_STREAMS_OPENED, STREAMS + 1);
	expect_refusal(poll_request(3, 0, 0), TOKD_R_UNKNOWN);
	ask(poll_request(0, 0, 0));
	assert_int_equal(expect_reply().rep.flags, 0);
}

FIXTURE_TEST(refuse_evicts_the_oldest_finished_first)
{

	/* All in one burst: the answers of the evicted still go out. */
	for (uint32_t i = 0; i < 2 * STREAMS; i++)
		send_request(text_packet(i, "hello", 5, 100, 0, 0));
	run();
	assert_int_equal(drain(), 2 * STREAMS);
	expect_refusal(poll_request(STREAMS - 1, 0, 0), TOKD_R_UNKNOWN);
	ask(poll_request(STREAMS, 0, 0)); /* asked for: the youngest now */
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	ask(text_packet(100, "hello", 5, 100, 0, 0));
	drain();
	ask(poll_request(STREAMS, 0, 0));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_refusal(poll_request(STREAMS + 1, 0, 0), TOKD_R_UNKNOWN);
}

/* A text of one packet; if it is to be acknowledged, its client has all ids then. */
static uint32_t
finish_text(uint64_t stream, bool acknowledged)
{
	uint32_t total;

	ask(text_packet(stream, "hello", 5, 100, TOKD_F_IDS, 0));
	total = expect_reply().rep.total;
	assert_true(total > 0);
	if (acknowledged) {
		ask(poll_request(stream, total, 0));
		expect_reply();
	}
	return total;
}

FIXTURE_TEST(a_finished_text_that_is_awaited_outlives_those_that_are_not)
{
	const uint32_t total = finish_text(1000, false);

	/* Its answer was lost. The table goes round ten times before it is asked for again. */
	for (uint32_t i = 0; i < 10 * STREAMS; i++)
		finish_text(i, true);
	ask(poll_request(1000, 0, total));
	assert_int_equal(expect_reply().rep.count, total);
	/* Now that it has come, the stream has its place among the others. */
	ask(poll_request(1000, total, 0));
	expect_reply();
	for (uint32_t i = 0; i < STREAMS; i++)
		finish_text(2000 + i, true);
	expect_refusal(poll_request(1000, 0, total), TOKD_R_UNKNOWN);
}

FIXTURE_TEST(texts_never_acknowledged_take_half_of_the_table)
{
	for (uint32_t i = 0; i < 10 * STREAMS; i++)
		finish_text(i, i % 2 == 0);
	/* The youngest that nobody acknowledged are there, and so are about as many others. */
	for (uint32_t i = 0; i < STREAMS - 4; i++) {
		ask(poll_request(10 * STREAMS - 1 - i, 0, 0));
		assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	}
	expect_refusal(poll_request(10 * STREAMS - 1 - 2 * STREAMS, 0, 0), TOKD_R_UNKNOWN);
}

FIXTURE_TEST(texts_never_acknowledged_have_the_table_where_there_are_no_others)
{
	for (uint32_t i = 0; i < 10 * STREAMS; i++)
		finish_text(i, false);
	ask(poll_request(9 * STREAMS, 0, 0));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_refusal(poll_request(9 * STREAMS - 1, 0, 0), TOKD_R_UNKNOWN);
}

FIXTURE_TEST(refuse_packets_beyond_the_window)
{
	ask(data_request(1, 0, 0, "hello", 5, 0));
	ask(data_request(1, 1 + TOKD_WIRE_WINDOW, 500, "hello", 5, 0));
	assert_int_equal(expect_reply().rep.ack, 1);
	expect_count(C_DROP_WINDOW, 1);
	ask(data_request(1, TOKD_WIRE_WINDOW, 500, "hello", 5, 0));
	assert_int_equal(expect_reply().rep.sack, UINT64_C(1) << 62);
	expect_count(C_RX_REORDERED, 1);
}

FIXTURE_TEST(refuse_to_hold_more_than_the_bound)
{
	assert_true(fx->w.held_max + fx->opt.rx_desc + fx->opt.tx_desc < POOL_MBUFS);
	fx->w.held_max = 10;
	for (uint32_t s = 0; s < 3; s++)
		for (uint32_t i = 1; i < 6; i++)
			ask(data_request(s, i, i, "x", 1, 0));
	expect_count(C_RX_REORDERED, 10);
	expect_count(C_DROP_HELD, 5);
	assert_int_equal(fx->w.n_held, 10);
	/* What is in order goes on, and frees what was held. */
	ask(data_request(0, 0, 0, "x", 1, 0));
	assert_int_equal(fx->w.n_held, 5);
	drain();
}

FIXTURE_TEST(done_text_sent_again_gets_its_stored_answer)
{
	struct request r = text_packet(1, "hello", 5, 100, 0, 0);
	struct reply first, again;

	ask(r);
	first = expect_reply();
	ask(r);
	again = expect_reply();
	assert_memory_equal(&first.rep, &again.rep, sizeof(first.rep));
	expect_text(1, "hello", 5);
	expect_count(C_STREAMS_OPENED, 1);
	expect_count(C_RECORDS, 1);
	expect_count(C_DROP_OVER, 1);
}

FIXTURE_TEST(done_id_used_for_another_text_is_refused)
{
	struct request r = text_packet(1, "hello", 5, 100, 0, 0);

	ask(r);
	drain();
	r = text_packet(1, "hallo", 5, 100, 0, 0); /* other bytes */
	expect_refusal(r, TOKD_R_ID_REUSED);
	r = text_packet(1, "hello!", 6, 100, 0, 0); /* other length */
	expect_refusal(r, TOKD_R_ID_REUSED);
	r = data_request(1, 1, 5, "more", 4, 0); /* beyond the end */
	expect_refusal(r, TOKD_R_ID_REUSED);
	r = text_packet(1, "hello", 5, 100, 0, 0); /* and the stored answer stands */
	ask(r);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_count(C_STREAMS_OPENED, 1);
}

FIXTURE_TEST(refuse_a_text_of_more_ids_than_have_positions)
{
	static const char text[] = "of several ids";
	ask(data_request(1, 0, 0, "hello ", 6, 0));
	expect_nothing();
	fx->w.streams->stream[0].total = UINT32_MAX - 1;
	expect_refusal(data_request(1, 1, 6, text, sizeof(text) - 1, 0), TOKD_R_TEXT_TOO_LONG);
	expect_count(C_DROP_TOO_LONG, 1);
	expect_count(C_STREAMS_FAILED, 1);
}
