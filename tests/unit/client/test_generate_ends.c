/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of a model that end early, late, or not at all; and that are begun once. */
#include <stdlib.h>
#include <string.h>

#include "reader.h"

/* ---- the end before the end ---- */

/* Step until `until` of these: then cancel, and see that the server's lane is free. */
enum when {
	SUBMITTED,
	SENT,
	HALF_THE_PROMPT,
	NO_LANE,
	BUSY,
	WAITING, /* for the first item */
	ANSWERING,
	UNTAKEN,
	FINISHED,
	WHENS
};

static bool
is_it(const struct world *w, const struct text *t, enum when when)
{
	const struct stream *st = w->server.n > 0 ? &w->server.stream[0] : NULL;

	switch (when) {
	case SUBMITTED:
		return true;
	case SENT:
		return w->n_wire > 0;
	case HALF_THE_PROMPT:
		return t->r.arrived > 10;
	case NO_LANE:
		return w->now > 50 * MS;
	case BUSY:
		return t->r.resends > 0;
	case WAITING:
		return st != NULL && st->generates && w->now > 300 * MS;
	case ANSWERING:
		return t->r.taken > 100;
	case UNTAKEN:
		return t->r.n_ids > 100;
	default:
		return t->r.status == TOKD_OK;
	}
}

static void
cancelled_when(enum when when, uint32_t lose)
{
	struct world *w = world_make(NULL); /* of one slot */
	const uint32_t len = when == HALF_THE_PROMPT ? 100 * TOKD_WIRE_PAYLOAD : 100;
	struct tokd_client_stats before;
	struct reader reader = {0};
	struct tokd_request *r;
	const struct stream *st;
	struct text t;

	w->lose = lose;
	w->server.make_ns = 5 * MS;
	w->server.make_pause = when == WAITING;
	w->server.window = when == NO_LANE ? 0 : when == HALF_THE_PROMPT ? 4 : TOKD_WIRE_WINDOW;
	w->server.reason = TOKD_R_BUSY;
	w->server.refuse_first = when == BUSY ? 1 : 0;
	w->server.retry_ms = 50;
	prompt_begin(w, &t, len, when == FINISHED ? 5 : 500, 0);
	while (!is_it(w, &t, when)) {
		assert_true(world_step(w));
		while ((r = tokd_engine_done(w->e)) != NULL && when != UNTAKEN)
			take(w, &t, &reader, UINT32_MAX);
	}
	if (when == HALF_THE_PROMPT)
		w->n_wire = 0; /* the rest would arrive before the CANCEL */
	tokd_engine_cancel(w->e, &t.r);
	assert_int_equal(t.r.status, when == FINISHED ? TOKD_OK : TOKD_E_CANCELLED);
	assert_null(tokd_engine_done(w->e));
	assert_int_equal(tokd_engine_pending(w->e), 0);
	text_free(&t); /* a sanitizer sees who still reads it */
	before = tokd_engine_stats(w->e);
	w->server.make_pause = false;
	finish_cancels(w);
	st = w->server.n > 0 ? &w->server.stream[0] : NULL;
	if (st != NULL && st->generates)
		assert_true(st->done);
	if (when == SENT || when == WAITING || when == ANSWERING || when == UNTAKEN) {
		assert_true(st->generates && st->ends == TOKD_MADE_CANCELLED);
		if (lose == 0)
			assert_int_equal(w->server.cancels, 1);
	}
	/* Those of which no part of an answer was made: the server fails the stream. */
	if (when == HALF_THE_PROMPT || when == NO_LANE)
		assert_true(w->server.cancels >= 1 && st->failed);
	if (when == SUBMITTED || when == BUSY || when == FINISHED)
		assert_int_equal(w->server.cancels, 0);
	assert_int_equal(tokd_engine_stats(w->e).retransmits, before.retransmits);
	/* The slot is free. */
	reader = (struct reader){0};
	w->server.window = TOKD_WIRE_WINDOW;
	prompt_begin(w, &t, 10, 3, 0);
	read_all(w, &t, &reader);
	answer_right(&t, &reader);
	world_free(w);
}

TEST(cancelled_at_any_time_the_lane_is_free)
{
	for (enum when when = 0; when < WHENS; when++)
		cancelled_when(when, 0);
}

/* Of six POLLs one arrives; here the server hears of it whatever the dice say. */
TEST(cancelled_on_a_bad_wire_the_lane_is_free)
{
	for (enum when when = 0; when < WHENS; when++) {
		if (when != SENT) /* the prompt itself may be lost, and is not sent again */
			cancelled_when(when, 200);
	}
}

WORLD_TEST(nobody_is_told_for_ever_of_a_cancel)
{
	struct reader reader = {0};
	struct text t;
	uint64_t at;

	w->server.make_ns = MS;
	prompt_begin(w, &t, 10, 500, 0);
	while (reader.n < 10) {
		assert_true(world_step(w));
		while (tokd_engine_done(w->e) != NULL)
			take(w, &t, &reader, UINT32_MAX);
	}
	w->lose = 1000;
	w->server.make_pause = true;
	at = w->now;
	tokd_engine_cancel(w->e, &t.r);
	text_free(&t);
	finish_cancels(w);
	assert_in_range(w->now - at, 100 * MS, 2000 * MS);
	assert_int_equal(w->server.cancels, 0);
}

/* With one slot. */
WORLD_TEST(a_cancel_gives_way_to_the_next_request)
{
	struct reader reader = {0};
	struct text t, next;

	w->server.make_ns = MS;
	prompt_begin(w, &t, 10, 500, 0);
	while (t.r.n_ids == 0)
		assert_true(world_step(w));
	tokd_engine_cancel(w->e, &t.r);
	text_free(&t);
	prompt_begin(w, &next, 10, 20, 0);
	read_all(w, &next, &reader);
	assert_int_equal(w->server.cancels, 1);
	assert_int_equal(w->server.stream[0].ends, TOKD_MADE_CANCELLED);
	answer_right(&next, &reader);
}

/* ---- time ---- */

/* Less than 16 items in the appliance's time limit. */
WORLD_TEST(a_slow_caller_acknowledges_each_item)
{
	struct reader reader = {0};
	struct text t;

	prompt_begin(w, &t, 10, 200, 0);
	while (t.r.made < 40)
		assert_true(world_step(w));
	for (uint32_t i = 0; i < 10; i++) {
		struct tokd_packet p[2];

		w->now += 1000 * MS; /* the caller looks at nothing else */
		assert_int_equal(take(w, &t, &reader, 1), 1);
		assert_int_equal(tokd_engine_packets(w->e, p, 2, w->now), 1);
		assert_int_equal(p[0].req.type, TOKD_POLL);
		assert_int_equal(p[0].req.ids_ack, t.r.taken);
	}
	read_all(w, &t, &reader);
	answer_right(&t, &reader);
}

WORLD_TEST(a_slow_model_is_asked_seldom_and_has_its_time_for_each_id)
{
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = 4900 * MS;
	prompt_begin(w, &t, 10, 4, 0);
	read_all(w, &t, &reader);
	assert_true(w->now > 4 * 4900 * MS);
	assert_in_range(w->server.polls, 4 * 5, 4 * 8); /* 200, 400, 800 ms, then each second */
	assert_int_equal(t.r.resends, 0);
	answer_right(&t, &reader);
}

WORLD_TEST(a_model_that_stops_ends_the_request_after_the_time_limit)
{
	struct reader reader = {0};
	uint64_t last = 0;
	struct text t;

	w->server.make_ns = MS;
	prompt_begin(w, &t, 10, 500, 0);
	while (t.r.status == TOKD_PENDING) {
		assert_true(world_step(w));
		while (tokd_engine_done(w->e) != NULL) {
			if (take(w, &t, &reader, UINT32_MAX) > 0)
				last = w->now;
		}
		w->server.make_pause = reader.n >= 30;
	}
	assert_int_equal(t.r.status, TOKD_E_TIMEOUT);
	assert_int_equal(t.r.reason, TOKD_R_NONE);
	/* Taking counts, too: when it did is known at the next time-out. */
	assert_in_range(w->now - last, 5000 * MS, 5201 * MS);
	finish_cancels(w);
	assert_int_equal(w->server.stream[0].ends, TOKD_MADE_CANCELLED);
	text_free(&t);
}

static void
say_lanes(struct world *w, struct datagram *d)
{
	struct tokd_rep *rep = (void *)d->data;

	(void)w;
	if (rep->type == TOKD_REPLY && rep->credit == 0)
		rep->reason = TOKD_R_LANES;
}

TEST(without_a_lane_it_waits_and_that_is_the_reason_at_the_time_limit)
{
	for (int frees = 0; frees < 2; frees++) {
		struct world *w = world_make(NULL);
		struct reader reader = {0};
		struct text t;

		w->server.window = 0;
		w->spoil = say_lanes;
		prompt_begin(w, &t, 10, 5, 0);
		while (w->now < 3000 * MS)
			assert_true(world_step(w));
		assert_int_equal(t.r.status, TOKD_PENDING);
		assert_int_equal(t.r.reason, TOKD_R_LANES);
		assert_in_range(w->server.polls, 10, 40);
		w->server.window = frees ? 64 : 0;
		read_all(w, &t, &reader);
		assert_int_equal(t.r.status, frees ? TOKD_OK : TOKD_E_TIMEOUT);
		assert_int_equal(t.r.reason, frees ? TOKD_R_NONE : TOKD_R_LANES);
		text_free(&t);
		world_free(w);
	}
}

static void
until_made(struct world *w, uint32_t made)
{
	while (w->server.n == 0 || w->server.stream[0].made < made)
		assert_true(world_step(w));
}

/* It is sent first what it has not taken, and that is more than the server sends at once. */
WORLD_TEST(a_paused_caller_with_a_gap_asks_seldom)
{
	struct reader reader = {0};
	uint64_t from;
	uint32_t polls;
	struct text t;

	w->server.make_ns = MS;
	w->server.make_reply = 8;
	prompt_begin(w, &t, 10, 200, 0);
	until_made(w, 40);
	w->lose = 1000;
	until_made(w, 42);
	w->lose = 0;
	until_made(w, 48);
	w->server.make_pause = true;
	for (from = w->now + 2000 * MS; w->now < from;)
		assert_true(world_step(w));
	polls = w->server.polls;
	while (w->now < from + 10000 * MS)
		assert_true(world_step(w));
	assert_in_range(w->server.polls - polls, 9, 11);
	/* When it has taken all it asks at once. */
	from = w->now;
	take(w, &t, &reader, UINT32_MAX);
	assert_in_range(reader.n, 38, 41);
	while (t.r.made < 48)
		assert_true(world_step(w));
	assert_true(w->now - from < 10 * MS);
	w->server.make_pause = false;
	read_all(w, &t, &reader);
	answer_right(&t, &reader);
}

/* ---- once ---- */

TEST(a_prompt_that_has_arrived_is_not_begun_again_on_a_smaller_path)
{
	for (uint32_t arrives = 0; arrives < 2; arrives++) {
		struct world *w = world_make(NULL);
		struct reader reader = {0};
		struct text t;

		w->server.make_ns = MS;
		w->server.make_pause = true;
		prompt_begin(w, &t, 3000, 20, 0);
		while (t.r.arrived < (arrives ? t.r.packets : 1))
			assert_true(world_step(w));
		w->n_wire = 0;
		w->server.payload = 500;
		tokd_engine_path(w->e, 500, 564, w->now);
		w->server.make_pause = false;
		read_all(w, &t, &reader);
		assert_int_equal(t.r.resends, !arrives);
		assert_int_equal(w->server.n, arrives ? 1 : 2);
		answer_right(&t, &reader);
		world_free(w);
	}
}

TEST(before_the_first_item_a_prompt_is_sent_again)
{
	static const uint32_t reasons[] = {
		TOKD_R_BUSY, TOKD_R_SHUTDOWN, TOKD_R_EXPIRED, TOKD_R_SHARE};

	for (uint32_t i = 0; i < 4; i++) {
		struct world *w = world_make(NULL);
		struct reader reader = {0};
		struct text t;

		w->server.reason = reasons[i];
		w->server.refuse_first = 3;
		prompt_begin(w, &t, 10, 5, 0);
		read_all(w, &t, &reader);
		assert_int_equal(t.r.resends, 3);
		answer_right(&t, &reader);
		world_free(w);
	}
}

static void
restarted_after(uint32_t items)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = MS;
	w->server.make_pause = true;
	prompt_begin(w, &t, 10, 50, 0);
	while (reader.n < items || w->now < 100 * MS) {
		assert_true(world_step(w));
		while (tokd_engine_done(w->e) != NULL)
			take(w, &t, &reader, UINT32_MAX);
		w->server.make_pause = reader.n >= items;
	}
	w->n_wire = 0;
	server_free(&w->server);
	w->server.n = 0;
	w->server.make_pause = false;
	if (items == 0) {
		read_all(w, &t, &reader);
		assert_int_equal(t.r.resends, 1);
		answer_right(&t, &reader);
	} else {
		const uint32_t had = reader.n;

		read_all(w, &t, &reader);
		assert_int_equal(t.r.status, TOKD_E_REFUSED);
		assert_int_equal(t.r.reason, TOKD_R_UNKNOWN);
		assert_int_equal(reader.n, had);
		assert_int_equal(w->server.n, 0); /* no text was sent */
		text_free(&t);
	}
	world_free(w);
}

TEST(an_answer_that_has_begun_is_not_begun_again)
{
	restarted_after(0);
	restarted_after(1);
	restarted_after(20);
}

/* A POLL had overtaken the text, which was taken since; its answer may have begun. */
WORLD_TEST(unknown_that_is_older_than_what_was_heard_is_not_heeded)
{
	struct tokd_rep unknown = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = TOKD_F_FAIL,
		.epoch = w->config.epoch,
		.reason = TOKD_R_UNKNOWN};
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = MS;
	w->server.make_pause = true;
	prompt_begin(w, &t, 10, 50, 0);
	while (w->now < 10 * MS)
		assert_true(world_step(w));
	w->server.make_pause = false;
	for (uint32_t i = 0; i <= 20; i++) {
		while (reader.n < i) {
			assert_true(world_step(w));
			while (tokd_engine_done(w->e) != NULL)
				take(w, &t, &reader, UINT32_MAX);
		}
		unknown.stream_id = t.r.stream_id;
		tokd_engine_take(w->e, &unknown, sizeof(unknown), w->now);
	}
	read_all(w, &t, &reader);
	assert_int_equal(t.r.resends, 0);
	answer_right(&t, &reader);
}

WORLD_TEST(a_path_that_takes_less_leaves_an_answer_that_has_begun)
{
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = MS;
	prompt_begin(w, &t, 5000, 50, 0);
	while (t.r.n_ids == 0)
		assert_true(world_step(w));
	tokd_engine_path(w->e, 500, 564, w->now);
	read_all(w, &t, &reader);
	assert_int_equal(t.r.resends, 0);
	assert_int_equal(w->server.n, 1);
	answer_right(&t, &reader);
}

WORLD_TEST(a_prompt_without_limit_or_room_or_with_an_unknown_flag_is_refused)
{
	static char out[16];
	const struct tokd_request good = {.text = "a",
		.len = 1,
		.out = out,
		.max_ids = 16,
		.flags = TOKD_REQUEST_GENERATE | TOKD_REQUEST_SKIP_SPECIAL,
		.limit = 1};
	struct tokd_packet p[2];

	for (uint32_t i = 0; i < 7; i++) {
		struct tokd_request r = good;

		r.limit = i == 0 ? 0 : i == 4 ? TOKD_GENERATE_MOST + 1 : TOKD_GENERATE_MOST;
		r.out = i == 1 ? NULL : out;
		r.max_ids = i == 2 ? 15 : 16;
		r.flags |= i == 3 ? TOKD_REQUEST_DECODE : i == 5 ? 1u << 4 : 0;
		assert_int_equal(
			tokd_engine_submit(w->e, &r), i < 6 ? TOKD_E_ARGUMENT : TOKD_PENDING);
		if (i < 6)
			continue;
		assert_int_equal(tokd_engine_packets(w->e, p, 2, w->now), 1);
		assert_true(p[0].req.flags & TOKD_F_SKIP_SPECIAL);
		tokd_engine_cancel(w->e, &r);
	}
}
