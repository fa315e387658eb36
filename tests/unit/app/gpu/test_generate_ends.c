/* SPDX-License-Identifier: BSD-3-Clause */
/* Prompts that are refused, and answers that end early, or fail. */
#include <stdlib.h>

#include "model.h"
#include "datapath/stream/generate.h"

GENERATE_TEST(generate_is_refused_in_another_form)
{
	struct request r = prompt_packet(1, PROMPT_BYTES, 0, 1, 0);

	for (uint32_t i = 0; i < 6; i++) {
		r = i == 4 ? text_packet(1, "hello world!", 12, 12, GENERATE, 0)
			   : prompt_packet(1, i == 1 ? 5 : PROMPT_BYTES, 0, 1, 0);
		if (i == 0 || i == 4)
			r.req.limit = i == 4; /* only that it is to be decoded, too, is wrong */
		if (i == 1)
			r.req.limit = 1; /* not LAST */
		if (i == 2)
			r.req.flags &= (uint16_t)~TOKD_F_IDS;
		if (i == 3)
			r.req.flags |= TOKD_F_SHORT;
		if (i == 4)
			r.req.flags |= TOKD_F_DECODE;
		if (i == 5)
			r.req.limit = TOKD_GENERATE_MOST + 1;
		expect_refusal(r, TOKD_R_LENGTH);
	}
	expect_count(C_STREAMS_OPENED, 0);
	ask(prompt_packet(1, 5, 0, 1, 0));
	expect_nothing();
	r = prompt_packet(1, 5, 0, 1, 1);
	r.req.flags &= (uint16_t)~TOKD_F_GENERATE;
	ask(r);
	assert_int_equal(take().rep.reason, TOKD_R_LENGTH);
	expect_count(C_STREAMS_OPENED, 1);
	expect_count(C_STREAMS_FAILED, 1);
	begin(2, 0, TOKD_GENERATE_MOST);
}

GENERATE_TEST(generate_needs_a_cookie)
{

	fx->validated = false;
	expect_refusal(prompt_packet(1, PROMPT_BYTES, 0, 1, 0), TOKD_R_VALIDATE);
	expect_count(C_STREAMS_OPENED, 0);
	fx->validated = true;
	begin(1, 0, 1);
}

FIXTURE_TEST(generate_needs_a_gpu_with_lanes)
{
	struct request r = prompt_packet(1, PROMPT_BYTES, 0, 1, 0);

	expect_refusal(r, TOKD_R_SINK);
	give_lanes(0);
	expect_refusal(r, TOKD_R_SINK);
	tokd_sink_close(&fx->w);
	give_lanes(1);
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	turns(1);
	expect_refusal(r, TOKD_R_SINK);
	expect_count(C_DROP_SINK, 3);
	expect_count(C_STREAMS_OPENED, 0);
	/* It goes while a prompt is under way. */
	atomic_store(&fx->w.sink->state, TOKD_SINK_RUNNING);
	turns(1);
	ask(prompt_packet(1, 5, 0, 1, 0));
	expect_nothing();
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	turns(1);
	send_request(prompt_packet(1, 5, 0, 1, 1));
	expect_refusal(prompt_packet(1, 5, 0, 1, 2), TOKD_R_SINK);
	tokd_sink_close(&fx->w);
}

GENERATE_TEST(generate_ends_when_its_client_asks)
{
	struct request r = poll_request(1, 0, 0);
	struct reply last;

	r.req.flags = TOKD_F_CANCEL;
	begin(1, TOKD_F_STREAM, ANY);
	make(0, 5);
	turns(10);
	take();
	make(0, 3); /* not read yet */
	ask(r);
	last = take();
	expect_done(&last, 5, TOKD_MADE_CANCELLED);
	expect_prompt(1);
	expect_count(C_GENERATE_CANCELLED, 1);
	turns(10);
	assert_true(TOKG_LANE_BITS(gpu.lane[0].ask) & TOKG_ASK_CANCEL);
	assert_int_equal(tokg_sink_lanes_used(fx->w.sink->sink), 1);
	/* The model does as it is told. */
	end_lane(0, TOKG_END_CANCELLED);
	turns(10);
	assert_int_equal(tokg_sink_lanes_used(fx->w.sink->sink), 0);
	/* Again: it is over. */
	ask(r);
	last = take();
	assert_int_equal(last.rep.flags, TOKD_F_DONE);
	expect_count(C_GENERATE_CANCELLED, 1);
}

GENERATE_TEST(generate_ends_also_a_prompt_that_is_not_complete)
{
	struct request r = prompt_packet(1, 5, 0, ANY, 0), poll = poll_request(1, 0, 0);
	struct text_ids *got = calloc(1, sizeof(*got));

	poll.req.flags = TOKD_F_CANCEL;
	ask(r);
	drain();
	expect_refusal(poll, TOKD_R_TIMEOUT);
	gather(1, got);
	assert_int_equal(got->aborts, 1);
	free(got);
	/* Of another text it has no meaning. */
	ask(data_request(2, 0, 0, "hello", 5, TOKD_F_IDS));
	drain();
	poll.req.stream_id = 2;
	ask(poll);
	assert_int_equal(expect_reply().rep.flags, 0);
}

/* From the last id that was made. */
GENERATE_TEST(generate_has_a_time_limit)
{
	const uint64_t limit = fx->w.streams->open_ticks;
	struct request poll = poll_request(1, 0, 0);
	uint64_t t, head;

	begin(1, TOKD_F_STREAM, ANY);
	t = fx->w.t_burst;
	make(0, 1);
	turns(10);
	take();
	expect_prompt(1);
	tokd_housekeeping(&fx->w, t + limit);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 1);
	head = fx->w.ring.head;
	tokd_housekeeping(&fx->w, fx->w.t_burst + limit + 1);
	expect_refusal(poll, TOKD_R_TIMEOUT);
	assert_int_equal(fx->w.ring.head, head); /* no ABORT */
	expect_count(C_GENERATE_CANCELLED, 1);
}

GENERATE_TEST(generate_fails_when_the_gpu_does)
{
	static const enum tokg_end ends[] = {TOKG_END_CUT, TOKG_END_STALE, TOKG_END_CANCELLED};

	for (uint64_t i = 0; i < RTE_DIM(ends); i++) {
		begin(1 + i, TOKD_F_STREAM, ANY);
		make(0, 1);
		turns(10);
		end_lane(0, ends[i]);
		turns(10);
		expect_failed(1 + i, TOKD_R_SINK);
		n_made = n_bytes = 0;
	}
	expect_count(C_GENERATE_CANCELLED, 0);
	expect_count(C_STREAMS_FAILED, RTE_DIM(ends));
}

GENERATE_TEST(generate_fails_when_its_prompt_does)
{
	ask(prompt_packet(1, PROMPT_BYTES, 0, ANY, 0));
	turns(10);
	drain();
	embed(TOKG_BADPOS);
	turns(10);
	expect_failed(1, TOKD_R_SINK);
	expect_count(C_GENERATE_CANCELLED, 0);
	assert_int_equal(tokg_sink_lanes_used(fx->w.sink->sink), 0);
}

GENERATE_TEST(generate_fails_when_the_agent_is_lost)
{
	struct tokg_error err;

	begin(1, TOKD_F_STREAM, ANY);
	make(0, 4);
	turns(10);
	take();
	gpu.back.epoch = 2;
	turns(20);
	assert_int_equal(atomic_load(&fx->w.sink->state), TOKD_SINK_BROKEN);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 1);
	assert_true(tokg_sink_recover(fx->w.sink->sink, &err) < 0);
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	turns(2);
	expect_failed(1, TOKD_R_SINK);
	expect_items(4, TOKD_MADE_MORE);
	expect_count(C_GENERATE_CANCELLED, 0);
	/* Another one serves the next. */
	attach_agent(GPU_LANES);
	turns(1);
	n_made = n_bytes = 0;
	begin(2, TOKD_F_STREAM, ANY);
	make(0, 4);
	turns(10);
	take();
	expect_items(4, TOKD_MADE_MORE);
}

/* A connection that comes back: nothing is lost. */
GENERATE_TEST(generate_goes_on_with_another_connection)
{
	struct tokg_error err;
	struct reply last;

	begin(1, TOKD_F_STREAM, ANY);
	make(0, 4);
	gpu.is_broken = true;
	turns(4);
	make(0, 4);
	assert_int_equal(atomic_load(&fx->w.sink->state), TOKD_SINK_BROKEN);
	assert_int_equal(tokg_sink_recover(fx->w.sink->sink, &err), 1);
	atomic_store(&fx->w.sink->state, TOKD_SINK_RUNNING);
	turns(20);
	end_lane(0, TOKG_END_STOP);
	turns(20);
	last = take();
	expect_done(&last, 8, TOKD_MADE_STOP);
}

/* --sink-full=shed: the ring is full, and nobody waits for an agent that is gone. */
TEST_WITH(generate_fails_when_it_is_shed, setup_generate_small, teardown_generate)
{
	const uint64_t *made_ids = &fx->w.counter[C_TOKENS_MADE];
	uint64_t before;

	tokd_sink_close(&fx->w);
	fx->opt.sink_full = TOKD_SINK_SHED;
	give_lanes(GPU_LANES);
	fx->w.ring.hold_ms = TOKD_HOLD_WINDOW_MS; /* the sink may keep it full */
	begin(1, TOKD_F_STREAM, IDS_MAX);
	expect_prompt(1);
	send_text(2, "hello world", 11, 100, 0); /* which is not embedded */
	run();
	drain();
	fill_ring(1, 0);
	/* Not polled meanwhile: the reservation itself finds that it may shed. */
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	before = *made_ids;
	assert_true(tokd_generate_turn(&fx->w));
	assert_true(*made_ids > before);
	assert_false(fx->w.ring.full);
	assert_int_equal(take().rep.reason, TOKD_R_SINK);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 0);
}

/* What is lost needs no room in the ring, for which others wait. */
TEST_WITH(generate_fails_at_once_while_others_wait_for_the_ring, setup_generate_small,
	teardown_generate)
{
	struct reply last;

	reader_join(0);
	begin(1, TOKD_F_STREAM, IDS_MAX);
	begin_from(client_of(2), 2, TOKD_F_STREAM, IDS_MAX);
	fill_ring(1, 0);
	make(1, 1);
	turns(10); /* it waits behind the other */
	expect_nothing();
	end_lane(1, TOKG_END_CUT);
	turns(10);
	last = expect_reply();
	assert_int_equal(last.rep.stream_id, 2);
	assert_int_equal(last.rep.reason, TOKD_R_SINK);
	assert_true(fx->w.ring.full);
	fx->cursor[0] = fx->w.ring.head;
}

GENERATE_TEST(generate_fails_by_an_id_that_is_none)
{
	begin(1, TOKD_F_STREAM, ANY);
	make_token(0, tok_vocab_info(fx->w.terms->vocab[0].tok).n_ids);
	turns(10);
	expect_failed(1, TOKD_R_SINK);
	expect_count(C_GENERATE_CANCELLED, 1);
}
