/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes and time that sources share, and how long answers stay. */
#include "model.h"
#include "datapath/stream/generate.h"

/* A whole prompt of another client. Returns the reason why it waits. */
static uint32_t
try_from(uint32_t ip, uint64_t stream)
{
	struct request r = prompt_packet(stream, PROMPT_BYTES, TOKD_F_STREAM, ANY, 0);
	struct reply got;

	r.ip = ip;
	ask(r);
	got = expect_reply();
	assert_int_equal(got.rep.flags, 0);
	assert_int_equal(got.rep.ack, got.rep.reason == 0);
	return got.rep.reason;
}

static struct tokd_stream *
stream_of(uint64_t stream)
{
	for (uint32_t i = 0; i <= fx->w.streams->n; i++) {
		struct tokd_stream *s = &fx->w.streams->stream[i];

		if (s->state != TOKD_STREAM_FREE && s->key.stream_id == stream)
			return s;
	}
	fail();
	return NULL;
}

GENERATE_TEST(generate_leaves_a_quarter_of_the_lanes_to_other_sources)
{
	struct request poll = poll_request(4, 0, 0);

	for (uint64_t i = 1; i < GPU_LANES; i++)
		begin(i, TOKD_F_STREAM, ANY);
	assert_int_equal(try_from(0, 4), TOKD_R_LANES);
	ask(poll);
	assert_int_equal(expect_reply().rep.reason, TOKD_R_LANES);
	assert_int_equal(try_from(client_of(5), 5), 0);
	assert_int_equal(try_from(client_of(6), 6), TOKD_R_LANES);
	/* What one gives back goes to the other first. */
	end_lane(0, TOKG_END_STOP);
	turns(10);
	drain();
	assert_int_equal(try_from(0, 4), TOKD_R_LANES);
	assert_int_equal(try_from(client_of(6), 6), 0);
}

GENERATE_TEST(generate_gives_a_quarter_of_the_lanes_while_others_are_at_work)
{
	assert_int_equal(try_from(0, 1), 0);
	fx->w.drr.shared = true;
	assert_int_equal(try_from(0, 2), TOKD_R_LANES);
	assert_int_equal(try_from(client_of(3), 3), 0);
	/* And again when its own has ended. */
	turns(10);
	embed(TOKG_OK);
	turns(10);
	end_lane(0, TOKG_END_STOP);
	turns(10);
	drain();
	assert_int_equal(try_from(0, 2), 0);
}

/* Its client takes a little of what there is, again and again. */
GENERATE_TEST(generate_slow_client_keeps_no_lane_that_others_need)
{
	struct request poll = poll_request(1, 20, 0);
	struct tokd_stream *s;
	uint64_t begun;

	use_all_lanes(ANY);
	make(0, 200);
	turns(10);
	drain();
	s = stream_of(1);
	s->t_open -= 1000 * fx->w.tsc_hz;
	poll.ip = client_of(1);
	begun = s->t_active;
	ask(poll);
	assert_int_equal(s->t_active, begun);
	expect_count(C_PROGRESS_SLOW, 1);
	/* A lane is free: nobody needs that one. */
	end_lane(1, TOKG_END_STOP);
	turns(10);
	poll.req.ids_ack = 40;
	ask(poll);
	assert_true(s->t_active > begun);
	expect_count(C_PROGRESS_SLOW, 1);
	/* It is used again, and who has all waits for the GPU. */
	drain();
	begin_from(client_of(9), 9, TOKD_F_STREAM, ANY);
	begun = s->t_active;
	poll.req.ids_ack = s->total;
	ask(poll);
	assert_true(s->t_active > begun);
	expect_count(C_PROGRESS_SLOW, 1);
	make(0, 100);
	turns(10);
	drain();
	begun = s->t_active;
	poll.req.ids_ack++;
	ask(poll);
	expect_count(C_PROGRESS_SLOW, 2);
	drain();
	tokd_housekeeping(&fx->w, begun + fx->w.streams->open_ticks + 1);
	assert_int_equal(s->state, TOKD_STREAM_FAILED);
	assert_int_equal(s->reason, TOKD_R_TIMEOUT);
	turns(10);
	assert_true(is_cancelled(0));
}

/* All that its table of streams has is open: the one that makes no progress gives way. */
GENERATE_TEST(generate_gives_way_to_texts_of_another_source)
{
	struct request r;

	begin(1, TOKD_F_STREAM, ANY);
	for (uint64_t i = 2; i <= STREAMS; i++)
		ask(text_packet(i, PROMPT, PROMPT_BYTES, 5, 0, 0));
	drain();
	r = text_packet(50, PROMPT, PROMPT_BYTES, 5, 0, 0);
	r.ip = client_of(50);
	expect_refusal(r, TOKD_R_SHARE);
	expect_prompt(1);
	expect_count(C_STREAMS_EVICTED, 1);
	expect_count(C_GENERATE_CANCELLED, 1);
	turns(10);
	assert_true(is_cancelled(0));
}

/* A slice for one is a slice for all, and who gets it pays. */
GENERATE_TEST(generate_takes_slices_of_a_turn)
{
	uint64_t took;

	use_all_lanes(ANY);
	for (uint32_t i = 0; i < GPU_LANES; i++)
		make(i, 3);
	fx->w.drr.slice = 1;
	took = fx->w.drr.took;
	for (uint32_t i = 0; fx->w.counter[C_TOKENS_MADE] == 0; i++) {
		assert_true(i < 1000);
		turns(1);
	}
	assert_int_equal(drain(), 1);
	assert_true(fx->w.drr.took > took);
	for (uint32_t i = 1; i < GPU_LANES; i++) {
		assert_true(tokd_generate_turn(&fx->w));
		assert_int_equal(drain(), 1);
	}
	assert_false(tokd_generate_turn(&fx->w));
}

/* From its end, however long before the last id was made. */
GENERATE_TEST(generate_keeps_an_answer_for_the_whole_time)
{
	const uint64_t limit = fx->w.streams->finished_ticks;
	struct reply last;
	uint64_t made_at;

	begin(1, TOKD_F_STREAM, ANY);
	make(0, 3);
	turns(10);
	take();
	made_at = fx->w.t_burst;
	end_lane(0, TOKG_END_STOP);
	turns(10);
	last = take();
	expect_done(&last, 3, TOKD_MADE_STOP);
	tokd_housekeeping(&fx->w, made_at + limit + 1);
	assert_int_equal(stream_of(1)->state, TOKD_STREAM_DONE);
	tokd_housekeeping(&fx->w, fx->w.t_burst + limit + 1);
	assert_int_equal(atomic_load(&fx->w.streams->n_used), 0);
}

/* An agent without lanes takes the place of one that had some. */
GENERATE_TEST(generate_waits_for_no_lane_where_there_are_none)
{
	struct request r, poll = poll_request(9, 0, 0);
	struct tokg_error err;
	struct reply last;

	use_all_lanes(ANY);
	for (uint32_t i = 0; i < 3; i++) {
		r = prompt_packet(9, 4, 0, ANY, i);
		ask(r);
	}
	assert_int_equal(take().rep.reason, TOKD_R_LANES);
	gpu.back.epoch = 2;
	turns(20);
	assert_int_equal(atomic_load(&fx->w.sink->state), TOKD_SINK_BROKEN);
	assert_true(tokg_sink_recover(fx->w.sink->sink, &err) < 0);
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	turns(2);
	drain();
	attach_agent(0);
	turns(2);
	ask(poll);
	last = expect_reply();
	assert_int_equal(last.rep.reason, TOKD_R_NONE);
	assert_true(last.rep.credit > 0);
	expect_refusal(r, TOKD_R_SINK);
}
