/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine beside the consumer: lanes by hand. */
#include <string.h>

#include "bench.h"
#include "engine_rule.h"

#define LANES 4
#define LOG 16

static const uint32_t ids[3] = {1, 2, 3};

static void
lanes(struct tokg_device_config *c)
{
	c->geometry.lanes = LANES;
	c->geometry.log = LOG;
	c->stop_id = UINT32_MAX;
}

/* Posts a text to slot and lane of producer 1, in the lane's turn. */
static void
post(struct bench *b, uint32_t slot, uint32_t lane, uint32_t turn)
{
	struct tokg_hdr h = bench_hdr(b, 3);

	h.out_off = slot * (uint64_t)TOKG_OUT_ALIGN;
	h.flags |= TOKG_GENERATE_FLAGS(lane, turn);
	bench_post(b, 1, slot, h, ids);
}

static void
ask(struct bench *b, uint32_t lane, uint32_t turn, uint32_t granted, uint32_t bits)
{
	assert_int_equal(b->d->ops->write_u64(b->d, tokg_ask_at(&b->d->geometry, 1, lane),
				 TOKG_ASK(granted, 7, turn, bits)),
		0);
}

static void
ends(struct bench *b, uint32_t lane, uint32_t turn, uint32_t n, enum tokg_end how)
{
	bench_comes(b, tokg_ended_at(&b->d->geometry, 1, lane), UINT64_MAX,
		TOKG_LANE_WORD(n, turn, how));
}

static uint64_t
logged(const struct bench *b, uint64_t position)
{
	return bench_word(b, tokg_log_at(&b->d->geometry, 1, position));
}

/* The id after so many, of the text that post() posts. */
static uint32_t
nth(uint32_t n)
{
	uint32_t last = 3, before = 0;

	for (uint32_t i = 0; i <= n; i++) {
		const uint32_t next = tokg_engine_next(last, before, 3, N_IDS);

		before = last;
		last = next;
	}
	return last;
}

BENCH_TEST(the_engine_makes_what_is_granted_and_no_more, lanes)
{
	post(b, 0, 2, 1);
	assert_int_equal(bench_status(b, 1, 0), TOKG_OK);
	assert_int_equal(bench_entry(b).flags, TOKG_FIRST | TOKG_LAST | TOKG_GENERATE);
	bench_nap();
	assert_int_equal(logged(b, 0), 0); /* nothing is granted */
	ask(b, 2, 1, 2, 0);
	bench_comes(b, tokg_log_at(&b->d->geometry, 1, 1), UINT64_MAX, TOKG_TOKEN(nth(1), 2, 1, 1));
	assert_int_equal(logged(b, 0), TOKG_TOKEN(nth(0), 2, 1, 1));
	bench_nap();
	assert_int_equal(logged(b, 2), 0);
	ask(b, 2, 1, 3, TOKG_ASK_FINAL);
	ends(b, 2, 1, 3, TOKG_END_LENGTH);
	assert_int_equal(logged(b, 2), TOKG_TOKEN(nth(2), 2, 1, 1));
}

BENCH_TEST(the_slot_is_free_while_its_lane_decodes, lanes)
{
	for (uint32_t i = 0; i < 3 * 4; i++) {
		if (i == 0)
			post(b, 0, 0, 1);
		else
			bench_post(b, 1, i % 4, bench_hdr(b, 3), ids);
		assert_int_equal(bench_status(b, 1, i % 4), TOKG_OK);
	}
	ask(b, 0, 1, 1, TOKG_ASK_FINAL);
	ends(b, 0, 1, 1, TOKG_END_LENGTH);
}

BENCH_TEST(a_paused_lane_delays_no_other, lanes)
{
	for (uint32_t i = 0; i < LANES; i++) {
		post(b, i, i, 1);
		assert_int_equal(bench_status(b, 1, i), TOKG_OK);
	}
	ask(b, 0, 1, 1, 0);
	for (uint32_t i = 1; i < LANES; i++)
		ask(b, i, 1, 3, TOKG_ASK_FINAL);
	for (uint32_t i = 1; i < LANES; i++)
		ends(b, i, 1, 3, TOKG_END_LENGTH);
	assert_int_equal(bench_word(b, tokg_ended_at(&b->d->geometry, 1, 0)), 0);
}

BENCH_TEST(log_laps_and_lane_turns_increase, lanes)
{
	uint64_t at = 0;

	for (uint32_t turn = 1; turn <= 20; turn++) {
		post(b, turn % 4, 1, turn);
		ask(b, 1, turn, 3, TOKG_ASK_FINAL);
		ends(b, 1, turn, 3, TOKG_END_LENGTH);
		assert_int_equal(bench_status(b, 1, turn % 4), TOKG_OK);
		for (uint32_t i = 0; i < 3; i++, at++)
			assert_int_equal(logged(b, at), TOKG_TOKEN(nth(i), 1, turn, 1 + at / LOG));
	}
}

BENCH_TEST(an_ask_of_the_turn_before_grants_nothing, lanes)
{
	ask(b, 1, 4, 9, TOKG_ASK_FINAL | TOKG_ASK_CANCEL);
	post(b, 0, 1, 5);
	assert_int_equal(bench_status(b, 1, 0), TOKG_OK);
	bench_nap();
	assert_int_equal(logged(b, 0), 0);
	ask(b, 1, 5, 1, TOKG_ASK_FINAL);
	ends(b, 1, 5, 1, TOKG_END_LENGTH);
}

BENCH_TEST(a_cancelled_text_ends, lanes)
{
	post(b, 0, 1, 1);
	ask(b, 1, 1, 2, 0);
	bench_comes(b, tokg_log_at(&b->d->geometry, 1, 1), ~0ull << 48, 1ull << 48);
	ask(b, 1, 1, 2, TOKG_ASK_CANCEL);
	ends(b, 1, 1, 2, TOKG_END_CANCELLED);
}

static void
stops_at_second(struct tokg_device_config *c)
{
	lanes(c);
	c->stop_id = nth(1);
}

BENCH_TEST(the_stop_id_ends_a_text_and_is_not_in_the_log, stops_at_second)
{
	post(b, 0, 1, 1);
	ask(b, 1, 1, 9, TOKG_ASK_FINAL);
	ends(b, 1, 1, 1, TOKG_END_STOP);
	assert_int_equal(logged(b, 1), 0);
}

BENCH_TEST(lanes_of_a_dead_producer_end, lanes)
{
	post(b, 0, 1, 1);
	assert_int_equal(bench_status(b, 1, 0), TOKG_OK);
	assert_int_equal(
		bench_word(b, tokg_opened_at(&b->d->geometry, 1, 1)), TOKG_LANE_WORD(0, 1, 0));
	bench_grant(b, 1, 0);
	ends(b, 1, 1, 0, TOKG_END_STALE);
}

/* Tokens stay; the log goes on behind them; the lane's next turn is as any. */
BENCH_TEST(a_restart_cuts_open_lanes, lanes)
{
	post(b, 0, 1, 1);
	ask(b, 1, 1, 2, 0);
	bench_comes(b, tokg_log_at(&b->d->geometry, 1, 1), ~0ull << 48, 1ull << 48);
	bench_stop(b, TOKG_STOP_NOW);
	/* A word that it wrote and did not note. */
	b->d->ops->write_u64(b->d, tokg_log_at(&b->d->geometry, 1, 2), TOKG_TOKEN(nth(2), 1, 1, 1));
	bench_run(b, 2);
	ends(b, 1, 1, 2, TOKG_END_CUT);
	post(b, 1, 1, 2);
	ask(b, 1, 2, 1, TOKG_ASK_FINAL);
	ends(b, 1, 2, 1, TOKG_END_LENGTH);
	assert_int_equal(logged(b, 2), TOKG_TOKEN(nth(2), 1, 1, 1));
	assert_int_equal(logged(b, 3), TOKG_TOKEN(nth(0), 1, 2, 1));
}

/* Its worker had ended between the two, and the slot may fail when it is done again. */
BENCH_TEST(a_lane_that_was_opened_and_not_begun_is_closed, lanes)
{
	uint64_t at;

	at = tokg_opened_at(&b->d->geometry, 1, 2);
	bench_stop(b, TOKG_STOP_NOW);
	b->d->ops->write_u64(b->d, at, TOKG_LANE_WORD(0, 9, 0));
	bench_run(b, 2);
	bench_comes(b, at, UINT64_MAX, TOKG_LANE_WORD(0, 0, 0));
}

static void
refused(uint32_t flags, void (*change)(struct tokg_device_config *c))
{
	struct tokg_hdr h;
	struct bench b;

	bench_start(&b, change);
	h = bench_hdr(&b, 3);
	h.flags = flags;
	bench_done(&b, 1, 0, h, ids, TOKG_BADHDR);
	bench_close(&b);
}

TEST(contradictory_flags_are_refused)
{
	const uint32_t right = TOKG_GENERATE_FLAGS(1, 1);

	refused(TOKG_FIRST | right, lanes); /* not the last slot */
	refused(TOKG_LAST | TOKG_ABORT | right, lanes);
	refused(TOKG_LAST | TOKG_BATCH | right, lanes);
	refused(TOKG_FIRST | TOKG_LAST | TOKG_TEXT | right, lanes);
	refused(TOKG_LAST | 1 << 7 | right, lanes);
	refused(TOKG_LAST | TOKG_GENERATE_FLAGS(1, 0), lanes); /* no turn */
	refused(TOKG_LAST | TOKG_GENERATE_FLAGS(LANES, 1), lanes);
	refused(TOKG_LAST | 1 << 8, lanes); /* a lane for nothing */
	refused(TOKG_LAST | right, NULL);   /* a ring without lanes */
}

TEST(sizes_of_lanes_and_log_are_limited)
{
	struct tokg_geometry g;
	struct tokg_error err = {{0}};
	struct bench b;

	bench_open(&b, lanes);
	g = b.d->geometry;
	bench_close(&b);
	assert_true(tokg_geometry_fill(&g, &err));
	g.log = LOG / 2;
	assert_false(tokg_geometry_fill(&g, &err));
	assert_non_null(strstr(err.text, "words of a producer's log is 8, must be 16 to 65536"));
	g.log = LOG + 1;
	assert_false(tokg_geometry_fill(&g, &err));
	assert_non_null(strstr(err.text, "must be a power of 2"));
	g.lanes = TOKG_LANES_MAX + 1;
	assert_false(tokg_geometry_fill(&g, &err));
	g.lanes = 0;
	g.log = LOG;
	assert_false(tokg_geometry_fill(&g, &err));
}

/* A write that a predecessor's NIC had sent to a GPU may land behind the agent's clearing. */
TEST(an_ask_of_another_epoch_grants_nothing)
{
	struct bench b;

	bench_start(&b, lanes);
	assert_int_equal(b.d->ops->write_u64(b.d, tokg_ask_at(&b.d->geometry, 1, 1),
				 TOKG_ASK(5, 6, 1, TOKG_ASK_CANCEL)),
		0);
	post(&b, 0, 1, 1);
	assert_int_equal(bench_status(&b, 1, 0), TOKG_OK);
	post(&b, 1, 2, 1);
	ask(&b, 2, 1, 1, TOKG_ASK_FINAL);
	ends(&b, 2, 1, 1, TOKG_END_LENGTH); /* the engine has looked at both */
	ask(&b, 1, 1, 2, TOKG_ASK_FINAL);
	ends(&b, 1, 1, 2, TOKG_END_LENGTH);
	bench_close(&b);
}
