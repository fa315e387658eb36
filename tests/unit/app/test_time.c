/* SPDX-License-Identifier: BSD-3-Clause */
/* Time limits, draining, the end. */
#include <stdlib.h>

#include "fixture.h"

static void
expect_last_record(uint64_t stream, uint32_t flags, enum tokd_reason reason)
{
	struct text_ids *got = calloc(1, sizeof(*got));

	gather(stream, got);
	assert_int_equal(got->aborts, !!(flags & TOKD_REC_ABORT));
	assert_int_equal(got->last_flags, !!(flags & TOKD_REC_LAST));
	assert_int_equal(got->reason, reason);
	free(got);
}

FIXTURE_TEST(time_limit_ends_an_idle_stream_and_frees_what_it_held)
{
	const uint64_t limit = fx->w.streams->open_ticks;
	uint64_t ids, active;

	fx->w.wipe = false; /* records are read after times that do not pass */
	ask(data_request(1, 0, 0, "hello wor", 9, 0));
	ask(data_request(1, 2, 14, "hello", 5, 0));
	ask(data_request(1, 3, 19, "hello", 5, 0));
	drain();
	ids = fx->w.counter[C_IDS];
	assert_int_equal(fx->w.n_held, 2);
	active = TAILQ_FIRST(&fx->w.streams->open)->t_active;
	tokd_housekeeping(&fx->w, active + limit - 1);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 1);
	tokd_housekeeping(&fx->w, active + limit + 1);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 0);
	assert_int_equal(fx->w.n_held, 0);
	expect_count(C_IDS, ids); /* none that were not certain */
	expect_nothing();
	expect_last_record(1, TOKD_REC_ABORT, TOKD_R_TIMEOUT);
	expect_refusal(data_request(1, 1, 9, "hello", 5, 0), TOKD_R_TIMEOUT);
}

FIXTURE_TEST(time_limit_counts_from_the_latest_progress)
{
	struct request r[2] = {data_request(1, 0, 0, "a", 1, 0), data_request(2, 0, 0, "a", 1, 0)};
	struct request next = data_request(1, 1, 1, "b", 1, 0);
	struct request poll = poll_request(2, 0, 0);
	uint64_t t;

	ask(r[0]);
	t = fx->w.t_burst;
	ask(r[1]);
	ask(next);
	/* Packets that bring nothing new keep nothing open: a duplicate, a POLL, one too early. */
	ask(r[1]);
	ask(poll);
	r[1] = data_request(2, 5, 5, "a", 1, 0);
	ask(r[1]);
	assert_true(fx->w.t_burst > t);
	tokd_housekeeping(&fx->w, TAILQ_LAST(&fx->w.streams->open, tokd_stream_list)->t_active +
					  fx->w.streams->open_ticks);
	expect_count(C_STREAMS_FAILED, 1); /* 2, the older one now */
	drain();
	r[0] = poll_request(1, 0, 0);
	ask(r[0]);
	assert_int_equal(expect_reply().rep.flags, 0);
}

FIXTURE_TEST(time_limit_forgets_finished_streams)
{
	struct request r = text_packet(1, "hello", 5, 10, 0, 0);

	ask(r);
	drain();
	tokd_housekeeping(&fx->w, fx->w.t_burst + fx->w.streams->finished_ticks - 1);
	r = poll_request(1, 0, 0);
	ask(r);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	tokd_housekeeping(&fx->w, fx->w.t_burst + fx->w.streams->finished_ticks + 1);
	expect_refusal(r, TOKD_R_UNKNOWN);
}

FIXTURE_TEST(time_of_turns_is_accounted)
{
	uint64_t t0 = fx->w.t_burst;

	run();
	ask(data_request(1, 0, 0, "hello", 5, 0));
	tokd_worker_turn(&fx->w);
	assert_true(fx->w.counter[C_CYCLES_BUSY] > 0);
	assert_true(fx->w.counter[C_CYCLES_IDLE] > 0);
	assert_int_equal(
		fx->w.counter[C_CYCLES_BUSY] + fx->w.counter[C_CYCLES_IDLE], fx->w.t_burst - t0);
}

FIXTURE_TEST(drain_refuses_new_streams_and_finishes_open_ones)
{
	struct request r = data_request(1, 0, 0, "hello", 5, 0);

	ask(r);
	atomic_store(&fx->stop, TOKD_DRAIN);
	expect_refusal(data_request(2, 0, 0, "hello", 5, 0), TOKD_R_SHUTDOWN);
	expect_count(C_DROP_SHUTDOWN, 1);
	expect_refusal(poll_request(3, 0, 0),
		TOKD_R_SHUTDOWN); /* a client that asks for its health sends it no more */
	r = data_request(1, 1, 5, NULL, 0, TOKD_F_LAST);
	r.req.text_crc = crc32c_of("hello", 5);
	ask(r);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_text(1, "hello", 5);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 0);
}

FIXTURE_TEST(stop_fails_open_streams_and_returns)
{
	ask(data_request(1, 0, 0, "hello", 5, 0));
	ask(data_request(1, 2, 10, "hello", 5, 0));
	drain();
	atomic_store(&fx->stop, TOKD_STOP);
	assert_int_equal(tokd_worker_run(&fx->w), 0);
	expect_fail(TOKD_R_SHUTDOWN);
	expect_last_record(1, TOKD_REC_ABORT, TOKD_R_SHUTDOWN);
	assert_int_equal(fx->w.n_held, 0);
}

/* Last of all tests: its worker is fresh, what was counted is that of the others. */
FIXTURE_TEST(counters_every_reason_to_drop_was_met)
{
	bool all = true;

	for (uint32_t c = 0; c < C_COUNT; c++) {
		if (fx_counted[c] > 0)
			continue;
		print_error("never counted: %s\n", tokd_counter_info[c].name);
		all = false;
	}
	assert_true(all);
}
