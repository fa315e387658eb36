/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker with a sink: its ring, its loop and its streams. */
#include <stdlib.h>

#include "fake_gpu.h"
#include "fixture.h"
#include "telemetry/histogram.h"

static void
text(uint64_t stream)
{
	ask_text(stream, "hello world", 11, 11, 0);
}

FIXTURE_TEST(sink_is_waited_for_as_a_reader)
{
	struct tokd_reader *rd = &fx->w.ring.reader[TOKD_READER_SINK];

	give_sink();
	assert_int_equal(fx->w.ring.n_active, 1);
	text(1);
	turns(3);
	assert_int_equal(gpu.n_posts, 1);
	assert_int_equal(gpu.hdr[0].flags, TOKG_FIRST | TOKG_LAST);
	assert_int_equal(atomic_load(rd->cursor), 0);
	embed(TOKG_OK);
	turns(3);
	assert_int_equal(atomic_load(rd->cursor), fx->w.ring.head);
	tokd_housekeeping(&fx->w, rte_rdtsc());
	expect_count(C_SINK_DONE, 1);
	assert_int_equal(tokd_histogram_count(&fx->w.time[T_POSTED_TO_DONE]), 1);
	assert_int_equal(fx->w.ring.n_active, 1);
	expect_reply();
	tokd_sink_close(&fx->w);
}

FIXTURE_TEST(sink_that_cannot_embed_fails_the_open_text)
{
	struct request other = data_request(2, 0, 0, "hello world", 11, TOKD_F_FIRST);

	give_sink();
	ask(data_request(1, 0, 0, "hello world hello world", 23, TOKD_F_FIRST));
	turns(3);
	assert_int_equal(gpu.n_posts, 1);
	embed(TOKG_BADPOS);
	ask(other);
	turns(3);
	tokd_sink_count(&fx->w);
	expect_count(C_SINK_FAILED, 1);
	expect_count(C_STREAMS_FAILED, 1);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 1);
	assert_int_equal(atomic_load(&fx->w.sink->last_status), TOKG_BADPOS);
	drain();
	expect_refusal(poll_request(1, 0, 0), TOKD_R_SINK);
	tokd_sink_close(&fx->w);
}

/* By its serial alone, among many; what is over is not found. */
FIXTURE_TEST(sink_finds_the_open_text_by_its_serial)
{
	enum { MANY = 8 };
	struct tokd_streams *t = fx->w.streams;
	uint64_t first;

	give_sink();
	first = fx->w.ring.serial;
	for (uint32_t i = 0; i < MANY; i++)
		ask(data_request(i + 1, 0, 0, "hello world", 11, TOKD_F_FIRST));
	text(MANY + 1);
	assert_int_equal(tokd_worker_open_streams(&fx->w), MANY);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(tokd_stream_of_serial(t, first + i)->key.stream_id, i + 1);
	assert_null(tokd_stream_of_serial(t, first + MANY));
	tokd_sink_failed(&fx->w, first, TOKG_BADPOS);
	tokd_sink_failed(&fx->w, first + 4, TOKG_BADPOS);
	tokd_sink_failed(&fx->w, first + 4, TOKG_BADPOS);
	tokd_sink_failed(&fx->w, first + MANY, TOKG_BADPOS);
	assert_int_equal(tokd_worker_open_streams(&fx->w), MANY - 2);
	assert_null(tokd_stream_of_serial(t, first));
	assert_null(tokd_stream_of_serial(t, first + 4));
	assert_int_equal(tokd_stream_of_serial(t, first + 5)->key.stream_id, 6);
	tokd_sink_close(&fx->w);
}

/* The loop goes on without it; what is not embedded holds the ring, and goes out once it is back.
 */
FIXTURE_TEST(sink_that_is_broken_does_not_stop_the_worker)
{
	struct tokg_error err;

	give_sink();
	gpu.is_broken = true;
	text(1);
	turns(3);
	assert_int_equal(atomic_load(&fx->w.sink->state), TOKD_SINK_BROKEN);
	expect_reply();
	text(2);
	expect_reply();
	assert_int_equal(gpu.n_posts, 0);
	assert_int_equal(atomic_load(fx->w.ring.reader[TOKD_READER_SINK].cursor), 0);
	assert_int_equal(tokg_sink_recover(fx->w.sink->sink, &err), 1);
	atomic_store(&fx->w.sink->state, TOKD_SINK_RUNNING);
	turns(3);
	embed(TOKG_OK);
	turns(3);
	assert_true(tokg_sink_is_idle(fx->w.sink->sink, fx->w.ring.head));
	tokd_sink_count(&fx->w);
	expect_count(C_SINK_RECONNECTS, 1);
	tokd_sink_close(&fx->w);
}

/* Slots, outputs, check words: the worker's counters tell. */
FIXTURE_TEST(sink_that_waits_is_counted)
{
	give_sink();
	for (uint32_t i = 0; i < GPU_SLOTS + 2; i++)
		text(i);
	turns(3);
	assert_int_equal(gpu.n_posts, GPU_SLOTS);
	embed(TOKG_BADSUM);
	turns(3);
	tokd_sink_count(&fx->w);
	assert_true(fx->w.counter[C_SINK_NO_SLOT] > 0);
	expect_count(C_SINK_BADSUM, GPU_SLOTS);
	expect_count(C_SINK_AGAIN, GPU_SLOTS);
	embed(TOKG_OK);
	turns(3);
	embed(TOKG_OK);
	turns(3);
	expect_count(C_SINK_NO_OUTPUT, 0);
	/* Embedded, and never released: GPU_OUTPUTS of them are all there is. */
	for (uint32_t i = 0; i < GPU_OUTPUTS + 2; i++) {
		text(100 + i);
		turns(2);
		for (uint32_t slot = 0; slot < GPU_SLOTS; slot++)
			gpu.done[slot] = TOKG_DONE(gpu.hdr[slot].ticket, TOKG_OK);
	}
	tokd_sink_count(&fx->w);
	assert_true(fx->w.counter[C_SINK_NO_OUTPUT] > 0);
	drain();
	tokd_sink_close(&fx->w);
}

/* With --sink-full=shed: texts get their ids, whatever the agent does. */
TEST_WITH(sink_without_an_agent_is_shed_when_the_ring_is_full, setup_small_ring, teardown)
{
	const struct tokd_reader *rd = &fx->w.ring.reader[TOKD_READER_SINK];
	uint64_t n = 0;

	fx->opt.sink_full = TOKD_SINK_SHED;
	give_sink();
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	for (; fx->w.ring.head < 4 * SMALL_RING_BYTES; n++) {
		text(n);
		assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	}
	expect_count(C_DROP_RING_FULL, 0);
	expect_count(C_STREAMS_DONE, n);
	tokd_housekeeping(&fx->w, rte_rdtsc());
	/* All but what the ring still has, which no agent has had. */
	assert_true(fx->w.counter[C_SINK_SHED] >= n / 2 && fx->w.counter[C_SINK_SHED] < n);
	assert_true(fx->w.ring.head - rd->seen <= SMALL_RING_BYTES);
	assert_int_equal(tokg_sink_shed_below(fx->w.sink->sink) > fx->w.counter[C_SINK_SHED], true);
	tokd_sink_close(&fx->w);
}

/* An agent that is there is waited for, as long as a reader would be. */
TEST_WITH(sink_that_holds_the_ring_too_long_is_given_up, setup_small_ring, teardown)
{
	const uint64_t limit = fx->w.tsc_hz / 1000 * 20;
	struct tokd_reader *rd = &fx->w.ring.reader[TOKD_READER_SINK];
	struct tokg_error err;
	uint64_t n = 0;

	for (int shed = 0; shed < 2; shed++) {
		fx->opt.sink_full = shed ? TOKD_SINK_SHED : TOKD_SINK_WAIT;
		give_sink();
		fx->w.ring.hold_ms = 20;
		while (fx->w.counter[C_DROP_RING_FULL] == (uint64_t)shed) {
			text(n++);
			drain();
		}
		assert_int_not_equal(rd->since, 0);
		tokd_housekeeping(&fx->w, rd->since + limit);
		assert_int_equal(fx->w.sink->state, TOKD_SINK_RUNNING);
		tokd_housekeeping(&fx->w, rd->since + limit + 1);
		assert_int_equal(fx->w.sink->state, shed ? TOKD_SINK_BROKEN : TOKD_SINK_RUNNING);
		expect_count(C_SINK_SHED, 0);
		if (shed) {
			assert_int_equal(tokg_sink_recover(fx->w.sink->sink, &err), -1);
			atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
			tokd_housekeeping(&fx->w, rte_rdtsc());
			assert_false(fx->w.ring.full);
			assert_true(fx->w.counter[C_SINK_SHED] > 0);
			text(n);
			assert_true(expect_reply().rep.flags & TOKD_F_DONE);
		}
		tokd_sink_close(&fx->w);
	}
}
