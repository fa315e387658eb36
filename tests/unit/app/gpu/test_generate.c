/* SPDX-License-Identifier: BSD-3-Clause */
/* Prompts and answers, under a worker with a sink: what comes to whom, and when. */
#include "model.h"
#include "small_vocab.h"
#include "telemetry/histogram.h"

GENERATE_TEST(generate_gives_each_id_once_with_its_text)
{
	struct reply last;

	begin(1, TOKD_F_STREAM, 200);
	for (uint32_t n = 0; n_made < 200; n++) {
		make(0, RTE_MIN(n % 5, 200 - n_made));
		turns(10);
		last = take();
		if (n % 5 != 0)
			assert_int_equal(last.rep.total, n_bytes);
		expect_items(n_made, TOKD_MADE_MORE);
	}
	assert_int_equal(may_make(0), 0);
	assert_true(TOKG_LANE_BITS(gpu.lane[0].ask) & TOKG_ASK_FINAL);
	end_lane(0, TOKG_END_LENGTH);
	turns(10);
	last = take();
	expect_done(&last, 200, TOKD_MADE_LENGTH);
	/* Those of a read are in one record. */
	assert_in_range(expect_prompt(1), 2, 102);
	expect_count(C_STREAMS_GENERATED, 1);
	expect_count(C_TOKENS_MADE, 200);
	expect_count(C_STREAMS_DONE, 1);
	expect_count(C_GENERATE_CANCELLED, 0);
	expect_count(C_DECODED_BYTES, 0);
	assert_int_equal(tokd_histogram_count(&fx->w.time[T_TEXT_TO_FIRST_TOKEN]), 1);
	assert_int_equal(tokd_histogram_count(&fx->w.time[T_RING_TO_REPLY]), 1);
}

GENERATE_TEST(generate_sends_what_came_in_the_turn_that_read_it)
{
	begin(1, TOKD_F_STREAM, ANY);
	make(0, 1);
	for (uint32_t i = 0; fx->w.counter[C_TOKENS_MADE] == 0; i++) {
		assert_true(i < 1000);
		assert_int_equal(rte_ring_count(fx_tx), 0);
		turns(1);
	}
	assert_int_equal(rte_ring_count(fx_tx), 1);
	take();
	expect_items(1, TOKD_MADE_MORE);
}

/* Without STREAM replies are full, or asked for. */
GENERATE_TEST(generate_fills_replies_unless_asked)
{
	struct reply last;

	begin(1, 0, ANY);
	make(0, 3);
	turns(10);
	expect_nothing();
	ask(poll_request(1, 0, UINT32_MAX));
	take();
	expect_items(3, TOKD_MADE_MORE);
	make(0, 200);
	turns(20);
	while (next_reply(&last)) {
		assert_int_equal(last.rep.count, TOKD_WIRE_PAYLOAD);
		for (uint32_t i = 0; i < last.rep.count; i++)
			bytes[n_bytes++] = (uint8_t)last.ids[i];
	}
	assert_true(n_bytes >= TOKD_WIRE_PAYLOAD);
	end_lane(0, TOKG_END_STOP);
	turns(10);
	last = take();
	expect_done(&last, 203, TOKD_MADE_STOP);
}

/* An answer without an id, and one whose last id is a part of a character. */
GENERATE_TEST(generate_ends_with_what_was_held_back)
{
	const struct tok_vocab *v = fx->w.terms->vocab[0].tok;
	struct reply last;

	begin(1, TOKD_F_STREAM, ANY);
	end_lane(0, TOKG_END_STOP);
	turns(10);
	last = take();
	expect_done(&last, 0, TOKD_MADE_STOP);
	begin(2, TOKD_F_STREAM, ANY);
	n_bytes = 0;
	assert_int_equal(tok_encode(v, NULL, "\xe4\xb8\xad", 3, 0, made, 100).produced, 3);
	for (n_made = 0; n_made < 2; n_made++)
		make_token(0, made[n_made]);
	turns(10);
	take();
	assert_int_equal(n_bytes, 2 * sizeof(struct tokd_made));
	end_lane(0, TOKG_END_STOP);
	turns(10);
	last = take();
	expect_done(&last, 2, TOKD_MADE_STOP);
}

GENERATE_TEST(generate_waits_for_a_lane)
{
	struct request poll = poll_request(9, 0, 0);
	struct reply last;
	uint64_t ids;

	use_all_lanes(ANY);
	ids = fx->w.counter[C_IDS];
	for (uint32_t i = 0; i < 3; i++)
		ask(prompt_packet(9, 4, 0, ANY, i));
	last = take();
	assert_int_equal(last.rep.flags, 0);
	assert_int_equal(last.rep.ack, 2);
	/* Ids of the prompt are in the ring, and not the client's. */
	assert_true(fx->w.counter[C_IDS] > ids);
	assert_int_equal(last.rep.total, 0);
	assert_int_equal(last.rep.credit, 0);
	assert_int_equal(last.rep.reason, TOKD_R_LANES);
	expect_count(C_DROP_LANES, 1);
	ask(poll);
	last = take();
	assert_int_equal(last.rep.credit, 0);
	assert_int_equal(last.rep.reason, TOKD_R_LANES);
	end_lane(2, TOKG_END_STOP);
	turns(10);
	drain();
	ask(poll);
	last = take();
	assert_int_equal(last.rep.ack, 2);
	assert_true(last.rep.credit > 0);
	assert_int_equal(last.rep.reason, TOKD_R_NONE);
	ask(prompt_packet(9, 4, 0, ANY, 2));
	assert_int_equal(take().rep.ack, 3);
	turns(20);
	embed(TOKG_OK);
	turns(20);
	assert_true(may_make(2) > 0);
}

/* Its end was held when the lanes were used up. */
GENERATE_TEST(generate_takes_a_held_packet_when_a_lane_is_free)
{
	struct reply last;

	use_all_lanes(ANY);
	for (uint32_t i = 3; i-- > 0;)
		ask(prompt_packet(9, 4, 0, ANY, i));
	last = take();
	assert_int_equal(last.rep.ack, 2);
	assert_int_equal(last.rep.reason, TOKD_R_LANES);
	assert_int_equal(fx->w.n_held, 1);
	end_lane(0, TOKG_END_STOP);
	turns(10);
	drain();
	ask(poll_request(9, 0, 0));
	last = take();
	assert_int_equal(last.rep.ack, 3);
	assert_int_equal(fx->w.n_held, 0);
}

/* The client acknowledges nothing: its own lane stops, no other. */
GENERATE_TEST(generate_pauses_for_a_client_that_is_slow)
{
	uint32_t n = 0, slow[IDS_MAX], n_slow;
	struct reply last;

	begin(1, 0, IDS_MAX);
	begin(2, TOKD_F_STREAM, ANY);
	while (may_make(0) > 0) {
		make(0, 1);
		turns(8);
	}
	n_slow = n_made;
	memcpy(slow, made, n_slow * sizeof(*made));
	/* A record each, and what waits for room: more is never granted. */
	assert_int_equal(n_slow, TOKD_STREAM_RECS + TOKD_ANSWER_IDS);
	drain();
	n_made = 0;
	make(1, 10);
	turns(10);
	take();
	expect_items(10, TOKD_MADE_MORE);

	memcpy(made, slow, sizeof(made));
	n_made = n_slow;
	n_bytes = 0;
	/* It asks for all again, part by part, and then acknowledges. */
	while (n_made < 2000) {
		assert_true(n < 10000);
		ask(poll_request(1, n_bytes, UINT32_MAX));
		turns(8);
		last = take();
		while (n++ % 3 == 0 && may_make(0) > 0)
			make(0, 1);
	}
	end_lane(0, TOKG_END_STOP);
	for (uint32_t i = 0; !(last.rep.flags & TOKD_F_DONE) || n_bytes < last.rep.total; i++) {
		assert_true(i < 1000);
		ask(poll_request(1, n_bytes, UINT32_MAX));
		turns(8);
		last = take();
	}
	expect_done(&last, n_made, TOKD_MADE_STOP);
}

/* A reader keeps the ring full: what was granted comes all the same, and is kept. */
TEST_WITH(generate_keeps_what_comes_while_the_ring_is_full, setup_generate_small, teardown_generate)
{
	struct reply last;

	reader_join(0);
	begin(1, TOKD_F_STREAM, IDS_MAX);
	fill_ring(1, 0);
	assert_true(fx->w.ring.head > SMALL_RING_BYTES - 8192);
	assert_true(n_made > n_bytes / 20);
	end_lane(0, TOKG_END_STOP);
	turns(10);
	expect_nothing();
	fx->cursor[0] = fx->w.ring.head;
	turns(20);
	last = take();
	expect_done(&last, n_made, TOKD_MADE_STOP);
}

GENERATE_TEST(generate_drops_packets_of_the_prompt_that_come_again)
{
	struct request r = prompt_packet(1, PROMPT_BYTES, TOKD_F_STREAM, ANY, 0);
	struct reply last;

	begin(1, TOKD_F_STREAM, ANY);
	make(0, 2);
	turns(10);
	take();
	ask(r);
	last = take();
	assert_int_equal(last.rep.flags, 0);
	assert_int_equal(last.rep.ack, 1);
	assert_int_equal(last.rep.total, n_bytes);
	expect_count(C_RX_DUPLICATE, 1);
	make(0, 2);
	end_lane(0, TOKG_END_STOP);
	turns(10);
	last = take();
	expect_done(&last, 4, TOKD_MADE_STOP);
	/* And when it is done: the stored answer. */
	ask(r);
	last = take();
	expect_done(&last, 4, TOKD_MADE_STOP);
	expect_count(C_STREAMS_GENERATED, 1);
}

/* Also of what was copied to the side store meanwhile. */
TEST_WITH(generate_sends_a_part_again, setup_generate_small, teardown_generate)
{
	struct request r;
	uint32_t all;

	begin(1, TOKD_F_STREAM, ANY);
	for (uint32_t i = 0; i < 8; i++) {
		make(0, 10);
		turns(8);
	}
	take();
	all = n_bytes;
	for (uint64_t lap = 0; fx->w.ring.head < 3 * SMALL_RING_BYTES; lap++) {
		send_request(poll_request(1, 0, 0));
		ask_text(100 + lap, "hello world", 11, 100, 0);
		embed(TOKG_OK);
		turns(2);
		drain();
	}
	expect_count(C_SIDE_COPIED, all);
	for (uint32_t from = 0; from < all; from += 97) {
		r = poll_request(1, from, all);
		n_bytes = from;
		memset(bytes + from, 0, all - from);
		ask(r);
		take();
		assert_int_equal(n_bytes, all);
		expect_items(80, TOKD_MADE_MORE);
	}
}

/* Several at once, in any order of their lanes. */
GENERATE_TEST(generate_keeps_answers_apart)
{
	static uint8_t got[GPU_LANES][4096];
	uint32_t n_got[GPU_LANES] = {0}, ids[GPU_LANES][64], n_ids[GPU_LANES] = {0};
	struct reply r;

	use_all_lanes(64);
	for (uint32_t k = 0; k < GPU_LANES * 64; k++) {
		const uint32_t lane = (k * 7 + k / 13) % GPU_LANES;

		if (may_make(lane) == 0)
			continue;
		n_made = 0;
		make(lane, 1);
		ids[lane][n_ids[lane]++] = made[0];
		turns(k % 3);
	}
	for (uint32_t i = 0; i < GPU_LANES; i++)
		end_lane(i, TOKG_END_STOP);
	turns(20);
	while (next_reply(&r)) {
		const uint64_t lane = r.rep.stream_id - 1;

		for (uint32_t i = 0; i < r.rep.count; i++) {
			assert_int_equal(r.rep.first + i, n_got[lane]);
			got[lane][n_got[lane]++] = (uint8_t)r.ids[i];
		}
	}
	for (uint32_t i = 0; i < GPU_LANES; i++) {
		memcpy(made, ids[i], sizeof(ids[i]));
		n_bytes = n_got[i];
		memcpy(bytes, got[i], n_bytes);
		assert_true(n_ids[i] > 40);
		expect_items(n_ids[i], TOKD_MADE_STOP);
	}
}

/* By its flag: two special tokens, of another vocabulary than the prompt's. */
GENERATE_TEST(generate_leaves_out_the_text_of_special_tokens_if_asked)
{
	struct tokd_vocab *vocab = &fx->w.terms->vocab[0];
	const struct tok_vocab *prompts = vocab->tok;
	struct small_vocab sv;
	uint32_t n, n_text[2];
	uint64_t random = 7;

	small_vocab_of(&sv, &random, "ab\xc3\xa9", 20, TOK_PRETOK_GPT2, SMALL_ADDED);
	for (uint32_t i = 0; i < 2; i++) {
		const uint16_t flags = i == 0 ? TOKD_F_STREAM : TOKD_F_STREAM | TOKD_F_SKIP_SPECIAL;

		for (uint32_t packet = 0; packet < 2; packet++) {

			vocab->tok = packet == 0 ? prompts : sv.v; /* the tokenizer has begun */
			ask(prompt_packet(1 + i, 6, flags, ANY, packet));
		}
		turns(20);
		embed(TOKG_OK);
		turns(20);
		drain();
		make_token(i, tok_vocab_specials(sv.v, &n)[0]);
		make_token(i, tok_vocab_specials(sv.v, &n)[0]);
		turns(10);
		n_bytes = 0;
		take();
		n_text[i] = n_bytes - 2 * (uint32_t)sizeof(struct tokd_made);
	}
	assert_true(n_text[0] > 0);
	assert_int_equal(n_text[1], 0);
	vocab->tok = prompts;
	small_vocab_free(&sv);
}

/* --wipe: ids stay neither where they were read from, nor in the stream. */
GENERATE_TEST(generate_wipes_ids)
{
	const struct tokd_stream *s;
	struct reply last;

	tokd_sink_close(&fx->w);
	fx->w.wipe = true;
	give_lanes(GPU_LANES);
	begin(1, TOKD_F_STREAM, ANY);
	for (uint32_t i = 0; i < 3; i++) {
		make(0, 20);
		turns(10);
		take();
		expect_items(n_made, TOKD_MADE_MORE);
	}
	end_lane(0, TOKG_END_STOP);
	turns(10);
	last = take();
	expect_done(&last, n_made, TOKD_MADE_STOP);
	for (uint32_t k = 0; k < GPU_LOG; k++)
		assert_int_equal(gpu.copy[GPU_SLOTS + GPU_LANES + k], 0);
	s = TAILQ_FIRST(&fx->w.streams->finished);
	for (uint32_t k = 0; k < TOKD_ANSWER_IDS; k++)
		assert_int_equal(s->answer.id[k], 0);
}
