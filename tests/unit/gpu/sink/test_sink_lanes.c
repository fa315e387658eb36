/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes of the sink, one promise after the other. ../stress has all of them at once, at random.
 */
#include <string.h>

#include "fixture.h"

#define SLOTS 4
#define IDS (SLOT_BYTES / 4)
#define QUOTA (LOG_WORDS / LANES_MOST - 1)

/* A text that generates. */
static uint32_t
generating(struct world *w, uint32_t count, uint32_t limit, uint32_t *lane)
{
	const uint32_t serial = new_text(w, vocabs[0], count);

	*lane = tokg_sink_generate(w->sink, serial, limit);
	assert_int_not_equal(*lane, TOKG_NO_LANE);
	assert_true(publish(w, serial, count, TOKD_REC_LAST));
	return serial;
}

/* The same with its slot done: the engine may make tokens. */
static void
decoding(struct world *w, uint32_t limit, uint32_t granted, uint32_t *lane)
{
	generating(w, 3, limit, lane);
	tokg_sink_grant(w->sink, *lane, granted);
	turns(w, 2);
	consume_all(w, TOKG_OK);
}

static void
token(struct world *w, uint32_t lane, uint32_t turn, uint32_t id)
{
	uint64_t *log = w->done + w->g.slots + w->g.lanes;

	log[w->log_at % LOG_WORDS] = TOKG_TOKEN(id, lane, turn, tokg_lap_of(&w->g, w->log_at));
	w->log_at++;
}

static void
end(struct world *w, uint32_t lane, uint32_t turn, uint32_t n, enum tokg_end how)
{
	w->done[w->g.slots + lane] = TOKG_LANE_WORD(n, turn, how);
}

static uint32_t
lanes_free(struct world *w)
{
	uint32_t lane[LANES_MOST], n = 0;

	while (n < LANES_MOST && (lane[n] = tokg_sink_generate(w->sink, 999, 1)) != TOKG_NO_LANE)
		n++;
	for (uint32_t i = 0; i < n; i++)
		tokg_sink_cancel(w->sink, lane[i]);
	return n;
}

static void
agent_dies(struct world *w)
{
	w->agent_is_gone = true;
	w->fault = FAIL_POLL;
	assert_false(turn(w, true));
	give_up(w, "gone");
}

static void
finish(struct world *w)
{
	settle_all(w);
	world_free(w);
}

/* The first turn of a sink learns of its lanes. */
static struct world *
begun(void)
{
	struct world *w = world_with_lanes(SLOTS);

	turns(w, 1);
	return w;
}

#define LANES_TEST(name)                                                                           \
	static void name##_in(struct world *w);                                                    \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct world *w = begun();                                                         \
		name##_in(w);                                                                      \
		finish(w);                                                                         \
	}                                                                                          \
	static void name##_in(struct world *w)

LANES_TEST(tokens_of_a_text_come_back)
{
	uint32_t lane, serial;

	publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST);
	serial = generating(w, 3, 2, &lane);
	publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST);
	tokg_sink_grant(w->sink, lane, 5);
	turns(w, 2);
	/* Alone in its slot. */
	assert_int_equal(w->hdr[1].request, serial);
	assert_int_equal(w->hdr[1].flags, TOKG_FIRST | TOKG_LAST | TOKG_GENERATE_FLAGS(lane, 1));
	assert_int_equal(w->hdr[2].flags, TOKG_FIRST | TOKG_LAST);
	assert_int_equal(w->ask[lane], TOKG_ASK(2, w->t.epoch, 1, TOKG_ASK_FINAL));
	consume_all(w, TOKG_OK);
	token(w, lane, 1, 77);
	turns(w, 2);
	assert_int_equal(w->n_tokens, 1);
	token(w, lane, 1, 78);
	end(w, lane, 1, 2, TOKG_END_LENGTH);
	turns(w, 2);
	assert_int_equal(w->n_tokens, 2);
	assert_int_equal(w->last_token.id, 78);
	assert_int_equal(w->last_token.index, 1);
	assert_int_equal(w->last_token.lane, lane);
	assert_int_equal(w->last_token.serial, serial);
	assert_int_equal(w->n_ended, 1);
	assert_int_equal(w->last_end, TOKG_END_LENGTH);
	assert_int_equal(lanes_free(w), LANES_MOST);
}

LANES_TEST(an_end_waits_for_tokens_that_the_read_did_not_have)
{
	uint32_t lane;

	decoding(w, 2, 2, &lane);
	end(w, lane, 1, 1, TOKG_END_STOP);
	turns(w, 2);
	assert_int_equal(w->n_ended, 0);
	token(w, lane, 1, 7);
	turns(w, 2);
	assert_int_equal(w->n_tokens, 1);
	assert_int_equal(w->n_ended, 1);
}

LANES_TEST(a_lane_is_free_when_its_slot_is_done_too)
{
	uint32_t lane;

	generating(w, 3, 2, &lane);
	turns(w, 2);
	end(w, lane, 1, 0, TOKG_END_CUT); /* the consumer ended before `done` */
	turns(w, 2);
	assert_int_equal(w->last_end, TOKG_END_CUT);
	assert_int_equal(lanes_free(w), LANES_MOST - 1);
	consume_all(w, TOKG_OK);
	turns(w, 2);
	assert_int_equal(lanes_free(w), LANES_MOST);
	generating(w, 3, 2, &lane);
	turns(w, 1);
	assert_int_equal(w->last.flags >> 20, 2); /* its next turn */
	consume_all(w, TOKG_OK);
	tokg_sink_cancel(w->sink, lane);
}

LANES_TEST(at_most_a_quota_is_granted_and_not_read)
{
	uint32_t lane, asks;

	generating(w, 3, 100, &lane);
	turns(w, 2);
	assert_int_equal(w->n_asks, 1);
	assert_int_equal(w->ask[lane], TOKG_ASK(0, w->t.epoch, 1, 0));
	tokg_sink_grant(w->sink, lane, 1);
	turns(w, 1);
	assert_int_equal(TOKG_LANE_N(w->ask[lane]), 1);
	tokg_sink_grant(w->sink, lane, 50);
	consume_all(w, TOKG_OK);
	for (uint32_t i = 1; i <= 51; i++) {
		turns(w, 2);
		assert_in_range(TOKG_LANE_N(w->ask[lane]), i, 51);
		assert_true(TOKG_LANE_N(w->ask[lane]) < i + QUOTA);
		assert_int_equal(w->ask[lane] & 0xff, 0);
		token(w, lane, 1, i);
	}
	asks = w->n_asks;
	turns(w, 4);
	assert_int_equal(w->n_tokens, 51);
	assert_int_equal(w->n_asks, asks); /* it is paused */
	assert_true(asks < 40);
	tokg_sink_cancel(w->sink, lane);
}

LANES_TEST(the_log_is_read_while_a_word_of_it_may_come)
{
	const uint32_t all = tokg_back_bytes(&w->g, true);
	uint32_t lane;

	generating(w, 3, 100, &lane);
	turns(w, 2);
	assert_int_equal(w->t.read_bytes, all - 8 * LOG_WORDS);
	tokg_sink_grant(w->sink, lane, 1);
	consume_all(w, TOKG_OK);
	turns(w, 2);
	assert_int_equal(w->t.read_bytes, all);
	token(w, lane, 1, 7);
	turns(w, 3);
	assert_int_equal(w->n_tokens, 1);
	assert_int_equal(w->t.read_bytes, all - 8 * LOG_WORDS); /* it is paused */
	end(w, lane, 1, 1, TOKG_END_CUT);
	turns(w, 1);
	assert_int_equal(w->n_ended, 0);
	turns(w, 3);
	assert_int_equal(w->n_ended, 1);
	assert_int_equal(lanes_free(w), LANES_MOST);
}

LANES_TEST(a_text_of_several_slots_begins_when_all_are_done)
{
	uint32_t lane;

	generating(w, 2 * IDS + 1, 5, &lane);
	tokg_sink_grant(w->sink, lane, 5);
	turns(w, 2);
	assert_true(w->hdr[2].flags & TOKG_GENERATE);
	assert_false(w->hdr[1].flags & TOKG_GENERATE);
	consume(w, 2, TOKG_OK);
	consume(w, 0, TOKG_OK);
	turns(w, 3);
	assert_int_equal(w->n_asks, 1);
	assert_int_equal(w->ask[lane], TOKG_ASK(0, w->t.epoch, 1, 0));
	consume(w, 1, TOKG_OK);
	turns(w, 3);
	assert_int_equal(TOKG_LANE_N(w->ask[lane]), QUOTA);
	tokg_sink_cancel(w->sink, lane);
}

LANES_TEST(a_slot_that_is_posted_again_keeps_its_turn)
{
	uint32_t lane;

	generating(w, 3, 5, &lane);
	turns(w, 2);
	consume(w, 0, TOKG_BADSUM);
	turns(w, 3);
	assert_int_equal(w->hdr[1].flags & ~(uint32_t)TOKG_STRICT, w->hdr[0].flags);
	assert_int_equal(lanes_free(w), LANES_MOST - 1);
	consume(w, 1, TOKG_BADSUM);
	turns(w, 3);
	assert_int_equal(w->n_failed, 1);
	assert_int_equal(w->n_ended, 0);
	assert_int_equal(lanes_free(w), LANES_MOST);
}

LANES_TEST(a_turn_number_is_not_reused_too_early)
{
	uint32_t lane;

	for (uint32_t i = 0; i <= TOKG_TURN_MAX; i++) {
		generating(w, 3, 5, &lane);
		assert_int_equal(lane, 0);
		turns(w, 2);
		if (i > 0)
			assert_int_not_equal(TOKG_FLAGS_TURN(w->last.flags), 1);
		consume_all(w, i == 0 ? TOKG_OK : TOKG_BADPOS);
		if (i == 0)
			end(w, lane, 1, 0, TOKG_END_STOP);
		release(w, UINT32_MAX);
		turns(w, 2);
	}
	assert_int_equal(w->n_ended, 1);
	assert_int_equal(w->n_failed, TOKG_TURN_MAX);
	assert_int_equal(TOKG_FLAGS_TURN(w->last.flags), 2);
}

LANES_TEST(a_text_cancelled_before_its_post_generates_nothing)
{
	uint32_t lane;

	generating(w, 3, 5, &lane);
	tokg_sink_cancel(w->sink, lane);
	assert_int_equal(lanes_free(w), LANES_MOST);
	turns(w, 2);
	assert_int_equal(w->hdr[0].flags, TOKG_FIRST | TOKG_LAST);
}

LANES_TEST(a_cancelled_text_gets_no_more_tokens)
{
	uint32_t lane;

	decoding(w, 5, 5, &lane);
	token(w, lane, 1, 7);
	tokg_sink_cancel(w->sink, lane);
	turns(w, 2);
	assert_int_equal(w->ask[lane] & 0xff, TOKG_ASK_CANCEL);
	assert_int_equal(w->n_tokens, 0);
	assert_int_equal(lanes_free(w), LANES_MOST - 1);
	end(w, lane, 1, 1, TOKG_END_CANCELLED);
	turns(w, 2);
	assert_int_equal(w->n_ended, 0);
	assert_int_equal(lanes_free(w), LANES_MOST);
}

LANES_TEST(tokens_of_an_ended_turn_are_dropped)
{
	uint32_t lane;

	decoding(w, 5, 5, &lane);
	end(w, lane, 1, 0, TOKG_END_CUT);
	turns(w, 2);
	generating(w, 3, 5, &lane);
	tokg_sink_grant(w->sink, lane, 5);
	turns(w, 2);
	token(w, lane, 1, 6); /* written before the end, and noted by nobody */
	token(w, lane, 2, 7);
	consume_all(w, TOKG_OK);
	turns(w, 2);
	assert_int_equal(w->n_tokens, 1);
	assert_int_equal(w->last_token.id, 7);
	tokg_sink_cancel(w->sink, lane);
}

LANES_TEST(without_a_free_lane_generate_fails)
{
	uint32_t lane;

	for (uint32_t i = 0; i < LANES_MOST; i++)
		generating(w, 3, 5, &lane);
	assert_int_equal(tokg_sink_generate(w->sink, 999, 1), TOKG_NO_LANE);
}

TEST(without_lanes_nothing_generates)
{
	struct world *w = world_make(SLOTS, 1u << 16, 1u << 17, 0);

	turns(w, 1);
	assert_int_equal(tokg_sink_generate(w->sink, 999, 1), TOKG_NO_LANE);
	world_free(w);
}

LANES_TEST(asks_are_written_again_on_a_new_connection)
{
	struct tokg_error err = {""};
	uint32_t lane, idle;

	generating(w, 3, 5, &lane);
	generating(w, 3, 5, &idle);
	tokg_sink_grant(w->sink, lane, 2);
	turns(w, 2);
	consume_all(w, TOKG_OK);
	turns(w, 2);
	w->ask[lane] = 0;
	w->n_asks = 0;
	w->fault = FAIL_POLL;
	assert_false(turn(w, true));
	assert_int_equal(tokg_sink_recover(w->sink, &err), 1);
	turns(w, 1);
	assert_int_equal(w->ask[lane], TOKG_ASK(2, w->t.epoch, 1, 0));
	assert_int_equal(w->n_asks, 2);
}

/* What has tokens is lost; what has none is posted again, in a lane of the new agent. */
LANES_TEST(a_new_agent_gets_texts_that_have_no_token)
{
	uint32_t lane[3], serial[3];

	for (uint32_t i = 0; i < 3; i++) {
		serial[i] = generating(w, 3, 5, &lane[i]);
		tokg_sink_grant(w->sink, lane[i], 3);
		turns(w, 2);
	}
	consume(w, 0, TOKG_OK); /* 0: done; 1: a token, not done; 2: neither */
	token(w, lane[1], 1, 7);
	turns(w, 2);
	agent_dies(w);
	new_agent(w);
	w->n_ended = 0;
	turns(w, 2);
	assert_int_equal(w->n_ended, 2);
	assert_int_equal(w->last_ended, serial[1]);
	assert_int_equal(w->last_end, TOKG_END_LOST);
	assert_int_equal(lanes_free(w), LANES_MOST - 1);
	assert_int_equal(w->last.request, serial[2]);
	assert_int_equal(w->last.flags >> 8, lane[2] | 1 << 12);
	assert_int_equal(TOKG_LANE_N(w->ask[lane[2]]), 3);
	consume_all(w, TOKG_OK);
}

LANES_TEST(an_agent_with_fewer_lanes_loses_the_texts_of_the_others)
{
	uint32_t lane[3], serial[3];

	for (uint32_t i = 0; i < 3; i++)
		serial[i] = generating(w, 3, 5, &lane[i]);
	turns(w, 1);
	agent_dies(w);
	w->g.lanes = 2;
	assert_true(tokg_geometry_fill(&w->g, &(struct tokg_error){""}));
	new_agent(w);
	turns(w, 1);
	assert_int_equal(tokg_sink_lanes(w->sink), 2);
	assert_int_equal(w->n_ended, 1);
	assert_int_equal(w->last_ended, serial[2]);
	assert_int_equal(w->last_end, TOKG_END_LOST);
	for (uint32_t i = 0; i < 3; i++) /* it is embedded all the same */
		assert_int_equal((w->hdr[i].flags & TOKG_GENERATE) != 0, i < 2);
	assert_int_equal(lanes_free(w), 0);
}

TEST(shed_texts_end_as_lost)
{
	struct world *w = begun();
	uint32_t lane;

	generating(w, 3, 5, &lane);
	turns(w, 1);
	generating(w, 3, 5, &lane);
	agent_dies(w);
	shed(w);
	assert_int_equal(w->n_ended, 2);
	assert_int_equal(w->last_end, TOKG_END_LOST);
	new_agent(w);
	turns(w, 1);
	assert_int_equal(lanes_free(w), LANES_MOST);
	/* Nothing more is posted of them. */
	assert_int_equal(tokg_sink_generate(w->sink, w->shed_below - 1, 1), TOKG_NO_LANE);
	assert_int_not_equal(tokg_sink_generate(w->sink, w->shed_below, 1), TOKG_NO_LANE);
	world_free(w);
}

/* A predecessor wrote the log's positions from `from` to `to`, before the first read. */
static void
successor(uint64_t from, uint64_t to)
{
	struct world *w = world_with_lanes(SLOTS);
	uint32_t lane;

	w->log_at = from;
	while (w->log_at < to)
		token(w, 0, 1, 9);
	new_sink(w);
	turns(w, 1);
	generating(w, 3, 5, &lane);
	tokg_sink_grant(w->sink, lane, 3);
	turns(w, 1);
	consume_all(w, TOKG_OK);
	turns(w, 2);
	assert_int_equal(w->n_tokens, 0);
	token(w, lane, 1, 7);
	turns(w, 2);
	assert_int_equal(w->n_tokens, 1);
	tokg_sink_cancel(w->sink, lane);
	finish(w);
}

/* It reads on where the log stands, also if that is the end of a lap, or of the last one. */
TEST(a_successor_finds_the_end_of_the_log)
{
	const uint64_t last = (uint64_t)(TOKG_LAP_MAX - 1) * LOG_WORDS;

	for (uint32_t words = 0; words <= 2 * LOG_WORDS; words++) {
		successor(0, words);
		successor(last - LOG_WORDS, last + words);
	}
}

/* What an agent may not say. */
static void
breach(uint64_t ended, uint64_t word)
{
	struct world *w = begun();
	bool whole = true;
	uint32_t lane;

	decoding(w, 5, 1, &lane);
	w->done[SLOTS + lane] = ended;
	w->done[SLOTS + LANES_MOST] = word;
	w->done[SLOTS + LANES_MOST + 1] = word;
	for (uint32_t i = 0; i < 3 && whole; i++) {
		w->now += 50;
		whole = turn(w, true);
	}
	assert_false(whole);
	give_up(w, "impossible back area");
	world_free(w);
}

TEST(impossible_words_end_the_connection)
{
	breach(0, TOKG_TOKEN(7, 0, 1, 1));		/* two, one is granted */
	breach(0, TOKG_TOKEN(7, LANES_MOST, 1, 1));	/* no such lane */
	breach(0, TOKG_TOKEN(65536, 1, 1, 1));		/* no such id */
	breach(TOKG_LANE_WORD(2, 1, TOKG_END_STOP), 0); /* more than granted */
	breach(TOKG_LANE_WORD(0, 1, TOKG_END_LOST), 0); /* no such end */
	breach(TOKG_LANE_WORD(0, 1, 0), 0);
}

LANES_TEST(reads_are_frequent_while_they_show_something)
{
	uint64_t reads, n;
	uint32_t lane;

	w->config.read_ticks_most = 1000;
	new_sink(w);
	turns(w, 1);
	generating(w, 3, 5, &lane);
	turns(w, 2);
	consume_all(w, TOKG_OK);
	turns(w, 100); /* of 50 ticks each */
	reads = tokg_sink_counters(w->sink)[TOKG_C_READS];
	turns(w, 100);
	n = tokg_sink_counters(w->sink)[TOKG_C_READS] - reads;
	assert_in_range(n, 4, 6);
	reads = tokg_sink_counters(w->sink)[TOKG_C_READS];
	while (tokg_sink_counters(w->sink)[TOKG_C_READS] == reads)
		turns(w, 1);
	n = w->n_done_calls;
	publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST);
	turns(w, 1);
	consume_all(w, TOKG_OK);
	turns(w, 3);
	assert_int_equal(w->n_done_calls, n + 1);
	publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST);
	turns(w, 40);
	for (uint32_t i = 0; i < 40; i++) { /* something in each read */
		publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST);
		turns(w, 1);
		consume_all(w, TOKG_OK);
		release(w, UINT32_MAX);
	}
	reads = tokg_sink_counters(w->sink)[TOKG_C_READS];
	for (uint32_t i = 0; i < 20; i++) {
		publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST);
		turns(w, 1);
		consume_all(w, TOKG_OK);
		release(w, UINT32_MAX);
	}
	n = tokg_sink_counters(w->sink)[TOKG_C_READS] - reads;
	assert_in_range(n, 8, 20);
	tokg_sink_cancel(w->sink, lane);
}

/* Of 20 turns with something in each read. */
static uint64_t
reads_of(struct world *w)
{
	const uint64_t before = tokg_sink_counters(w->sink)[TOKG_C_READS];

	for (uint32_t i = 0; i < 20; i++) {
		publish(w, new_text(w, vocabs[0], 3), 3, TOKD_REC_LAST);
		turns(w, 1);
		consume_all(w, TOKG_OK);
		release(w, UINT32_MAX);
	}
	return tokg_sink_counters(w->sink)[TOKG_C_READS] - before;
}

TEST(reads_are_more_frequent_while_lanes_are_used)
{
	struct world *w = world_with_lanes(32);
	uint32_t lane;

	w->config.read_ticks = 500;
	w->config.read_ticks_most = 1000;
	new_sink(w);
	assert_in_range(reads_of(w), 1, 3);
	turns(w, 20);
	generating(w, 3, 5, &lane);
	assert_in_range(reads_of(w), 8, 20);
	tokg_sink_cancel(w->sink, lane);
	finish(w);
}
