/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources that compete for streams: who is served, who gives way, and what they are told. */
#include <stdlib.h>

#include "fixture.h"

static uint32_t
host(uint32_t i)
{
	return RTE_IPV4(10, 0, 1, 0) + i;
}

static struct request
from(uint32_t i, struct request r)
{
	r.ip = host(i);
	return r;
}

/* A text of source i that is not finished. */
static void
begin(uint32_t i, uint64_t stream)
{
	const struct request r = from(i, data_request(stream, 0, 0, "hello", 5, 0));

	ask(r);
}

/* A whole text of source i. */
static void
finish(uint32_t i, uint64_t stream)
{
	const struct request r = from(i, text_packet(stream, "hello", 5, 100, 0, 0));

	ask(r);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
}

static struct tokd_source *
source(uint32_t i)
{
	const struct tokd_addr a = tokd_addr_v4(rte_cpu_to_be_32(host(i)));

	return tokd_source_of(&fx->w, &a);
}

static uint32_t
open_of(uint32_t i)
{
	return source(i)->n[TOKD_KIND_OPEN];
}

static uint32_t
state_of(uint32_t i, uint64_t stream)
{
	const struct request r = from(i, poll_request(stream, 0, 0));
	struct reply got;

	ask(r);
	got = expect_reply();
	return got.rep.flags & TOKD_F_FAIL ? got.rep.reason : 0;
}

FIXTURE_TEST(share_greediest_source_gives_way_with_its_stalest_text)
{
	struct text_ids *got = calloc(1, sizeof(*got));

	for (uint32_t i = 0; i < STREAMS - 2; i++)
		begin(1, i);
	begin(2, 50);
	/* The oldest of source 1 makes progress. */
	ask(from(1, data_request(0, 1, 5, " world, and all that is in it", 29, 0)));
	expect_nothing();
	finish(3, 60);
	begin(3, 61);
	expect_nothing();
	expect_count(C_STREAMS_EVICTED, 0);
	begin(4, 70);
	expect_fail(TOKD_R_SHARE); /* at once: it need not ask */
	expect_count(C_STREAMS_EVICTED, 1);
	assert_int_equal(state_of(1, 1), TOKD_R_UNKNOWN); /* its place was needed */
	assert_int_equal(state_of(1, 0), 0);
	assert_int_equal(state_of(2, 50), 0);
	assert_int_equal(state_of(4, 70), 0);
	gather(1, got);
	assert_int_equal(got->aborts, 1);
	assert_int_equal(got->reason, TOKD_R_SHARE);
	assert_int_equal(tokd_worker_open_streams(&fx->w), STREAMS);
	free(got);
}

FIXTURE_TEST(share_source_with_the_most_is_refused_and_told_when_to_try_again)
{
	struct reply got;

	for (uint32_t i = 0; i < STREAMS - 2; i++)
		begin(1, i);
	begin(2, 50);
	begin(2, 51);
	begin(1, 90);
	got = expect_reply();
	assert_int_equal(got.rep.reason, TOKD_R_BUSY);
	assert_int_equal(got.rep.retry_ms, 5); /* no text has ended yet */
	expect_count(C_DROP_TABLE_FULL, 1);
	expect_count(C_STREAMS_EVICTED, 0);
	fx->w.streams->mean_open = fx->w.tsc_hz / 10;
	begin(1, 91);
	assert_in_range(expect_reply().rep.retry_ms, 100, 101);
	fx->w.streams->mean_open = fx->w.tsc_hz * 100;
	begin(1, 92);
	assert_int_equal(expect_reply().rep.retry_ms, 1000);
}

FIXTURE_TEST(share_sources_come_to_equal_shares_and_then_stop)
{
	uint32_t evicted;

	for (uint32_t i = 0; i < STREAMS; i++)
		begin(1, i);
	for (uint32_t i = 0; i < 2 * STREAMS; i++)
		begin(2, 100 + i);
	assert_in_range(open_of(1), STREAMS / 2, STREAMS / 2 + 1);
	evicted = (uint32_t)fx->w.counter[C_STREAMS_EVICTED];
	for (uint32_t i = 0; i < STREAMS; i++) {
		begin(1, 200 + i);
		begin(2, 300 + i);
	}
	assert_int_equal(fx->w.counter[C_STREAMS_EVICTED], evicted);
	assert_int_equal(tokd_worker_open_streams(&fx->w), STREAMS);
	drain();
}

FIXTURE_TEST(share_new_source_gets_a_stream_beside_any_number_of_others)
{
	struct reply got;

	/* One packet of each address, as if forged: the one longest without progress goes. */
	for (uint32_t i = 0; i < 10 * STREAMS; i++) {
		begin(100 + i, i);
		assert_int_equal(drain(), i >= STREAMS);
	}
	ask(from(1, text_packet(1000, "hello", 5, 100, 0, 0)));
	assert_true(next_reply(&got));
	assert_int_equal(got.rep.reason, TOKD_R_SHARE);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	assert_int_equal(state_of(100 + 10 * STREAMS - 1, 10 * STREAMS - 1), 0);
}

FIXTURE_TEST(share_source_that_is_not_validated_gives_way_first)
{
	begin(2, 50); /* while nobody is asked for a cookie */
	for (uint32_t i = 0; i < STREAMS - 1; i++)
		begin(1, i);
	assert_true(source(1)->validated);
	assert_false(source(2)->validated);
	begin(3, 60);
	expect_fail(TOKD_R_SHARE);
	assert_int_equal(open_of(1), STREAMS - 1);
	assert_int_equal(open_of(2), 0);
	assert_int_equal(open_of(3), 1);
}

FIXTURE_TEST(share_no_text_is_evicted_if_its_place_is_of_no_use)
{
	for (uint32_t i = 0; i < STREAMS; i++)
		begin(1, i);
	begin(2, 50);
	expect_count(C_STREAMS_EVICTED, 1);
	drain();
	reader_join(0);
	fx->w.tsc_hz = UINT64_MAX;	    /* no housekeeping, which would look at the reader */
	fx->w.ring.limit = fx->w.ring.head; /* full */
	begin(3, 60);			    /* in the stream that failed before */
	expect_count(C_STREAMS_EVICTED, 2);
	drain();
	begin(4, 70); /* the one that failed now waits for the ring with its ABORT */
	expect_fail(TOKD_R_BUSY);
	expect_count(C_STREAMS_EVICTED, 2);
	assert_int_equal(tokd_worker_open_streams(&fx->w), STREAMS);
}

FIXTURE_TEST(share_slow_text_is_renewed_only_while_there_is_room)
{
	struct tokd_stream *s;
	uint64_t begun;

	ask(from(1, data_request(1, 0, 0, "a", 1, 0)));
	s = TAILQ_FIRST(&fx->w.streams->open);
	s->t_open -= 8 * fx->w.tsc_hz; /* a byte in 8 s */
	begun = s->t_active;
	ask(from(1, data_request(1, 1, 1, "b", 1, 0)));
	assert_true(s->t_active > begun);
	for (uint32_t i = 0; i < STREAMS / 2; i++)
		begin(2, i);
	begun = s->t_active;
	ask(from(1, data_request(1, 2, 2, "c", 1, 0)));
	assert_int_equal(s->t_active, begun);
	expect_count(C_PROGRESS_SLOW, 1);
	/* One that keeps up is. */
	s->t_open += 8 * fx->w.tsc_hz;
	ask(from(1, data_request(1, 3, 3, " and quite some more text of it", 31, 0)));
	assert_true(s->t_active > begun);
	expect_count(C_PROGRESS_SLOW, 1);
}

FIXTURE_TEST(share_source_that_lets_texts_die_opens_more_only_slowly)
{
	struct tokd_worker *w = &fx->w;
	const uint64_t each = 2 * w->streams->open_ticks / STREAMS;
	struct reply got;
	uint32_t died = 0;

	/* As many as there are streams cost nothing. */
	for (; died < STREAMS; died++)
		tokd_share_died(w, source(1));
	for (uint32_t i = 0; i < STREAMS; i++)
		begin(1, i);
	expect_count(C_STREAMS_OPENED, STREAMS);
	tokd_housekeeping(w, w->t_burst + 2 * w->streams->open_ticks);
	expect_count(C_STREAMS_FAILED, STREAMS);
	/* There is room up to the half. */
	for (uint32_t i = 0; i <= STREAMS / 2; i++)
		begin(1, 100 + i);
	drain();
	begin(1, 200);
	got = expect_reply();
	assert_int_equal(got.rep.reason, TOKD_R_BUSY);
	assert_int_equal(got.rep.retry_ms, 1000);
	expect_count(C_DROP_OPENS, 1);
	/* Others may; and so may it, once it has waited. */
	begin(2, 300);
	assert_int_equal(open_of(2), 1);
	source(1)->debt_end -= STREAMS * each;
	begin(1, 201);
	expect_count(C_DROP_OPENS, 1);
	assert_int_equal(state_of(1, 201), 0);
}

FIXTURE_TEST(share_answers_of_the_source_with_the_most_are_forgotten_first)
{
	finish(1, 1);
	finish(1, 2);
	finish(2, 1);
	for (uint32_t i = 0; i < 10 * STREAMS; i++)
		finish(3, i);
	assert_int_equal(state_of(1, 1), 0);
	assert_int_equal(state_of(1, 2), 0);
	assert_int_equal(state_of(2, 1), 0);
	assert_int_equal(state_of(3, 10 * STREAMS - 1), 0);
	assert_int_equal(state_of(3, 0), TOKD_R_UNKNOWN);
	/* Of source 3 the oldest; then, with as many as 1, all alike. */
	for (uint32_t i = 0; i < 10 * STREAMS; i++)
		finish(100 + i % STREAMS, i);
	assert_in_range(source(3)->n[TOKD_KIND_FINISHED], 0, 2);
}

/* Its stream is taken for a packet of a text that has ended, and is free again at once. */
FIXTURE_TEST(share_text_that_ends_in_its_first_burst_may_give_way_in_it)
{
	finish(1, 7);
	for (uint32_t i = 0; i < STREAMS; i++)
		begin(2, 100 + i);
	assert_int_equal(state_of(1, 7), TOKD_R_UNKNOWN);
	for (uint32_t i = 0; i < STREAMS; i++)
		ask(from(2, data_request(100 + i, 1, 5, "x", 1, TOKD_F_FIRST)));
	drain();
	assert_true(source(2)->validated); /* so the others' answers go first */
	send_request(from(3, data_request(50, 0, 0, "hello", 5, 0)));
	send_request(from(3, data_request(50, 1, 5, "x", 1, TOKD_F_FIRST)));
	ask(from(1, text_packet(7, "hello", 5, 100, 0, 0)));
	drain();
	assert_int_equal(state_of(3, 50), TOKD_R_UNKNOWN);
	assert_int_equal(state_of(1, 7), TOKD_R_UNKNOWN);
	drain();
}
