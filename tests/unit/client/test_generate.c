/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of a model: whole items in order, whatever wires, servers and callers do. */
#include <stdlib.h>
#include <string.h>

#include <crc32c.h>
#include "world.h"

/* A caller that takes items, and knows which must come. */
struct reader {
	uint32_t n; /* ids */
	uint32_t end;
};

static struct tokd_engine_config
many(uint32_t requests)
{
	return (struct tokd_engine_config){.epoch = 77,
		.requests = requests,
		.packets = 128,
		.payload = TOKD_WIRE_PAYLOAD,
		.timeout_ns = 5000 * MS,
		.rto_least_ns = 5 * MS,
		.first_stream_id = UINT64_MAX - 100};
}

static uint32_t
take(struct world *w, struct text *t, struct reader *reader, uint32_t most)
{
	char expected[ITEM_TEXT_MAX];
	struct tokd_made made;
	const char *text;
	uint32_t n = 0;

	for (; n < most && tokd_engine_made(w->e, &t->r, &made, &text, w->now); n++) {
		assert_int_equal(reader->end, 0);
		reader->end = made.end;
		if (made.end == TOKD_MADE_CANCELLED)
			continue;
		assert_int_equal(made.text, item_text(reader->n, expected));
		assert_memory_equal(text, expected, made.text);
		assert_int_equal(made.id, made.end ? TOKD_MADE_END : item_id(reader->n++));
	}
	return n;
}

/* Until the request is finished. A caller that takes all each time that it is returned. */
static void
read_all(struct world *w, struct text *t, struct reader *reader)
{
	struct tokd_request *r;

	while (t->r.status == TOKD_PENDING) {
		assert_true(world_step(w));
		while ((r = tokd_engine_done(w->e)) != NULL)
			assert_true(take(w, t, reader, UINT32_MAX) > 0 || r->status != 1);
	}
	assert_int_equal(take(w, t, reader, UINT32_MAX), 0);
}

static void
answer_right(struct text *t, const struct reader *reader)
{
	assert_int_equal(t->r.status, TOKD_OK);
	assert_int_equal(reader->end, TOKD_MADE_LENGTH);
	assert_int_equal(reader->n, t->r.limit);
	assert_int_equal(t->r.made, t->r.limit);
	assert_int_equal(t->r.n_ids, t->r.total);
	text_free(t);
}

static void
finish_cancels(struct world *w)
{
	for (uint32_t steps = 0; world_step(w); steps++)
		assert_true(steps < 100000);
}

TEST(an_answer_comes_as_it_is_made)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = 10 * MS;
	prompt_begin(w, &t, 3000, 100, 0);
	while (t.r.status == TOKD_PENDING) {
		assert_true(world_step(w));
		if (tokd_engine_done(w->e) == NULL)
			continue;
		/* It was made one way of the wire ago. */
		assert_true(w->now - (w->server.make_at - w->server.make_ns) < MS);
		assert_true(take(w, &t, &reader, UINT32_MAX) > 0);
	}
	while (world_step(w))
		;
	assert_int_equal(t.r.retransmits + t.r.asks + t.r.resends, 0);
	assert_in_range(w->server.polls, 6, 10); /* acknowledgements */
	assert_true(w->server.last_acks > 0);
	answer_right(&t, &reader);
	world_free(w);
}

TEST(items_that_are_cut_anywhere_come_whole)
{
	static const uint32_t bytes[] = {1, 2, 3, 7, 8, 9, 11, 500};

	for (uint32_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct world *w = world_make(NULL);
		struct reader reader = {0};
		struct text t;

		w->server.make_ns = MS;
		w->server.make_reply = bytes[i];
		prompt_begin(w, &t, 10, 60, 0);
		read_all(w, &t, &reader);
		answer_right(&t, &reader);
		world_free(w);
	}
}

static void
many_answers_survive(uint32_t bad, uint64_t make_ns, uint32_t reply)
{
	enum { N = 12 };
	struct tokd_engine_config config = many(N);
	struct world *w = world_make(&config);
	struct reader reader[N] = {0};
	struct tokd_request *r;
	struct text t[N];
	uint32_t ended = 0;

	w->lose = w->reorder = bad;
	w->twice = bad / 2;
	w->server.make_ns = make_ns;
	w->server.make_reply = reply;
	w->server.cookie = 3;
	for (uint32_t i = 0; i < N; i++)
		prompt_begin(w, &t[i], world_dice(w, 5000), 1 + world_dice(w, 300), 0);
	while (ended < N) {
		assert_true(world_step(w));
		while ((r = tokd_engine_done(w->e)) != NULL) {
			const ptrdiff_t i = (struct text *)r - t;

			take(w, &t[i], &reader[i], UINT32_MAX);
			ended += r->status != TOKD_PENDING;
		}
	}
	for (uint32_t i = 0; i < N; i++)
		answer_right(&t[i], &reader[i]);
	assert_int_equal(tokd_engine_stats(w->e).bad, 0);
	world_free(w);
}

TEST(many_answers_survive_a_good_wire)
{
	many_answers_survive(0, 5 * MS, TOKD_WIRE_PAYLOAD);
	many_answers_survive(0, 0, TOKD_WIRE_PAYLOAD);
}

TEST(many_answers_survive_a_bad_wire)
{
	many_answers_survive(20, 5 * MS, TOKD_WIRE_PAYLOAD);
	many_answers_survive(200, 5 * MS, TOKD_WIRE_PAYLOAD);
	many_answers_survive(200, MS, 100);
	many_answers_survive(200, 0, TOKD_WIRE_PAYLOAD);
}

/* Nothing comes behind it that would show it. */
TEST(a_last_item_that_is_lost_is_asked_for)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;
	uint64_t at;

	w->server.make_ns = MS;
	prompt_begin(w, &t, 10, 40, 0);
	while (reader.n < 20) {
		assert_true(world_step(w));
		while (tokd_engine_done(w->e) != NULL)
			take(w, &t, &reader, UINT32_MAX);
	}
	w->lose = 1000;
	while (w->server.stream[0].made < 22)
		assert_true(world_step(w));
	w->lose = 0;
	w->server.make_pause = true;
	at = w->now;
	while (reader.n < 22) {
		assert_true(world_step(w));
		while (tokd_engine_done(w->e) != NULL)
			take(w, &t, &reader, UINT32_MAX);
	}
	assert_in_range(w->now - at, 190 * MS, 202 * MS);
	assert_int_equal(t.r.asks, 2); /* what there is, and then that */
	w->server.make_pause = false;
	read_all(w, &t, &reader);
	answer_right(&t, &reader);
	world_free(w);
}

/* Its lane pauses. That is no failure, however long. */
TEST(what_the_caller_has_not_taken_is_not_acknowledged)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = MS;
	w->server.make_window = 400;
	prompt_begin(w, &t, 10, 200, 0);
	for (uint64_t next = 0; reader.end == 0;) {
		while (t.r.status == TOKD_PENDING && w->now < next) {
			assert_true(world_step(w));
			while (tokd_engine_done(w->e) != NULL)
				;
		}
		next = w->now + 700 * MS;
		if (w->server.n > 0 && t.r.status == TOKD_PENDING) {
			const struct stream *st = &w->server.stream[0];

			/* At most a part of an item beyond. */
			assert_in_range(st->acked, 0, t.r.taken + ITEM_TEXT_MAX);
			assert_in_range(st->total - t.r.taken, 0, 400 + 2 * ITEM_TEXT_MAX + 16);
		} else if (w->server.n == 0) {
			assert_true(world_step(w));
		}
		take(w, &t, &reader, 10);
	}
	assert_true(w->now > 10000 * MS);
	assert_int_equal(t.r.resends, 0);
	answer_right(&t, &reader);
	world_free(w);
}

/* The server sends more than there is room for; the rest comes when there is. */
TEST(an_answer_longer_than_its_room_passes_through)
{
	static const uint32_t rooms[] = {
		2 * (8 + ITEM_TEXT_MAX), 2 * (8 + ITEM_TEXT_MAX) + 1, 7000};

	for (uint32_t i = 0; i < 12; i++) {
		struct world *w = world_make(NULL);
		struct reader reader = {0};
		struct text t;

		w->lose = i % 4 == 3 ? 200 : 0;
		w->server.make_reply = i % 4 == 2 ? 13 : TOKD_WIRE_PAYLOAD;
		prompt_begin(w, &t, 10, 1000, rooms[i % 3]);
		read_all(w, &t, &reader);
		assert_true(t.r.total > 8 * t.r.max_ids);
		assert_int_equal(t.r.resends, 0);
		answer_right(&t, &reader);
		world_free(w);
	}
}

/* An event loop would wait for the next time-out otherwise. */
TEST(what_is_taken_makes_a_poll_due_at_once)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;

	prompt_begin(w, &t, 10, 1000, 2 * (8 + ITEM_TEXT_MAX));
	while (t.r.n_ids < t.r.max_ids / 2 || w->n_wire > 0)
		assert_true(world_step(w));
	assert_ptr_equal(tokd_engine_done(w->e), &t.r);
	assert_false(tokd_engine_owes(w->e));
	assert_true(take(w, &t, &reader, UINT32_MAX) > 0);
	assert_true(tokd_engine_owes(w->e));
	read_all(w, &t, &reader);
	answer_right(&t, &reader);
	world_free(w);
}

TEST(an_item_longer_than_half_of_the_room_ends_it_and_the_lane)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = MS;
	prompt_begin(w, &t, 10, 100, 2 * (8 + ITEM_TEXT_MAX) - 1);
	read_all(w, &t, &reader);
	assert_int_equal(t.r.status, TOKD_E_ROOM);
	assert_int_equal(reader.n, 49);
	finish_cancels(w);
	assert_int_equal(w->server.stream[0].ends, TOKD_MADE_CANCELLED);
	text_free(&t);
	world_free(w);
}

/* ---- answers that are none ---- */

struct said {
	struct tokd_rep rep;
	uint8_t answer[64];
};

/* A prompt of one packet, which was sent; its reply is to be changed. */
static struct said
prompt_sent(struct world *w, struct text *t, uint32_t limit)
{
	struct tokd_packet p[8];

	prompt_begin(w, t, 10, limit, 0);
	assert_int_equal(tokd_engine_packets(w->e, p, 8, w->now), 1);
	assert_int_equal(p[0].req.limit, limit);
	assert_int_equal(p[0].req.flags,
		TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS | TOKD_F_STREAM | TOKD_F_GENERATE);
	return (struct said){.rep = {.magic = TOKD_WIRE_MAGIC,
				     .version = TOKD_WIRE_VERSION,
				     .type = TOKD_REPLY,
				     .flags = TOKD_F_GENERATE,
				     .epoch = 77,
				     .stream_id = t->r.stream_id,
				     .ack = 1,
				     .credit = 64}};
}

static void
hear(struct world *w, const struct said *s)
{
	tokd_engine_take(w->e, s, sizeof(s->rep) + s->rep.count, w->now);
}

TEST(what_is_no_answer_ends_the_request)
{
	const struct {
		struct tokd_made made[4];
		uint32_t n, limit;
		bool done;
		enum tokd_status status;
		uint32_t good; /* items that stand */
	} cases[] = {
		{{{1, 0, 0}, {TOKD_MADE_END, 0, 1}}, 2, 1, true, TOKD_OK, 2},
		{{{(1 << 24) - 1, 0, 0}, {TOKD_MADE_END, 0, 3}}, 2, 1, true, TOKD_OK, 2},
		{{{1, 0, 0}, {1 << 24, 0, 0}}, 2, 9, false, TOKD_E_ANSWER, 1},
		{{{TOKD_MADE_END, 0, 0}}, 1, 9, false, TOKD_E_ANSWER, 0},
		{{{1, 0, 1}}, 1, 9, false, TOKD_E_ANSWER, 0},
		{{{1, 0, 0}, {TOKD_MADE_END, 0, 4}}, 2, 9, true, TOKD_E_ANSWER, 1},
		{{{1, 0, 0}, {2, 0, 0}}, 2, 1, false, TOKD_E_ANSWER, 1}, /* above the limit */
		{{{1, 0, 0}, {2, 0, 0}}, 2, 9, true, TOKD_E_ANSWER, 2},	 /* no end */
		{{{1, 0, 0}, {2, 9, 0}}, 2, 9, true, TOKD_E_ANSWER, 1},	 /* cut */
		{{{1, 0, 0}, {2, 9, 0}}, 2, 9, false, TOKD_PENDING, 1},	 /* the rest may come */
		{{{TOKD_MADE_END, 0, 1}, {TOKD_MADE_END, 0, 1}}, 2, 9, true, TOKD_E_ANSWER, 1},
		{{{TOKD_MADE_END, 0, 1}, {1, 0, 0}}, 2, 9, false, TOKD_E_ANSWER, 1},
		{{{0}}, 0, 9, true, TOKD_E_ANSWER, 0}, /* nothing */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world *w = world_make(NULL);
		struct tokd_made made;
		const char *text;
		uint32_t items = 0;
		struct said s;
		struct text t;

		s = prompt_sent(w, &t, cases[i].limit);
		s.rep.count = s.rep.total = cases[i].n * (uint32_t)sizeof(made);
		memcpy(s.answer, cases[i].made, s.rep.count);
		if (cases[i].done) {
			s.rep.flags |= TOKD_F_DONE;
			s.rep.text_end = 10;
			s.rep.ids_crc = tokd_crc32c(0, s.answer, s.rep.count);
		}
		hear(w, &s);
		assert_int_equal(t.r.status, cases[i].status);
		while (tokd_engine_made(w->e, &t.r, &made, &text, w->now))
			items++;
		assert_int_equal(items, cases[i].good);
		tokd_engine_cancel(w->e, &t.r);
		text_free(&t);
		world_free(w);
	}
}

TEST(an_answer_with_a_wrong_crc_is_an_error)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;

	w->server.spoil_crc = true;
	prompt_begin(w, &t, 10, 5, 0);
	read_all(w, &t, &reader);
	assert_int_equal(t.r.status, TOKD_E_IDS_CRC);
	text_free(&t);
	world_free(w);
}

TEST(what_cannot_be_an_answer_is_not_taken)
{
	for (uint32_t i = 0; i < 5; i++) {
		struct world *w = world_make(NULL);
		struct said s;
		struct text t;

		s = prompt_sent(w, &t, 5);
		s.rep.count = s.rep.total = 8;
		if (i == 0)
			s.rep.ack = 0; /* the prompt was not complete */
		else if (i == 1)
			s.rep.flags = TOKD_F_DECODE;
		else if (i == 2)
			s.rep.flags |= TOKD_F_DECODE;
		else if (i == 3)
			s.rep.flags |= TOKD_F_SHORT;
		else
			s.rep.first = 1;
		hear(w, &s);
		assert_int_equal(tokd_engine_stats(w->e).bad, 1);
		assert_int_equal(t.r.status, TOKD_PENDING);
		assert_int_equal(t.r.total, 0);
		tokd_engine_cancel(w->e, &t.r);
		text_free(&t);
		world_free(w);
	}
}

static void
noise(struct world *w, struct datagram *d)
{
	struct tokd_rep *rep = (void *)d->data;
	uint32_t *fields[] = {&rep->ack, &rep->credit, &rep->first, &rep->total, &rep->ids_crc,
		&rep->reason, &rep->text_end};

	for (uint32_t i = world_dice(w, 3); i-- > 0;)
		*fields[world_dice(w, 7)] =
			world_dice(w, 2) ? world_dice(w, 5000) : UINT32_MAX - world_dice(w, 3);
	if (world_dice(w, 4) == 0 && d->len > sizeof(*rep))
		d->data[sizeof(*rep) + world_dice(w, d->len - (uint32_t)sizeof(*rep))]++;
	if (world_dice(w, 16) == 0)
		rep->flags ^= (uint16_t)(1u << world_dice(w, 12));
	if (world_dice(w, 16) == 0) {
		rep->count = world_dice(w, 1000);
		d->len = (uint32_t)sizeof(*rep) + rep->count;
	}
}

/* Memory stays whole, every request ends, and no slot is lost. */
TEST(noise_in_answers_harms_nobody)
{
	enum { N = 300, AT_ONCE = 8 };
	struct tokd_engine_config config = many(AT_ONCE);
	struct world *w = world_make(&config);
	static struct text t[N];
	uint32_t begun = 0, ended = 0;

	w->spoil = noise;
	w->lose = 50;
	while (ended < N) {
		struct tokd_request *r;
		struct tokd_made made;
		const char *text;
		uint32_t sum = 0;

		for (; begun < N && tokd_engine_pending(w->e) < AT_ONCE; begun++)
			prompt_begin(w, &t[begun], world_dice(w, 3000), 1 + world_dice(w, 200),
				world_dice(w, 2) ? 0 : 6100);
		world_step(w);
		while ((r = tokd_engine_done(w->e)) != NULL) {
			while (tokd_engine_made(w->e, r, &made, &text, w->now)) {
				for (uint32_t i = 0; i < made.text; i++)
					sum += (uint8_t)text[i];
				assert_true(text + made.text <= r->out + r->max_ids);
			}
			assert_true(r->made <= r->limit && sum < UINT32_MAX);
			if (r->status != TOKD_PENDING) {
				ended++;
				text_free((struct text *)r);
			}
		}
	}
	finish_cancels(w);
	assert_int_equal(tokd_engine_pending(w->e), 0);
	world_free(w);
}

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

TEST(nobody_is_told_for_ever_of_a_cancel)
{
	struct world *w = world_make(NULL);
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
	world_free(w);
}

/* With one slot. */
TEST(a_cancel_gives_way_to_the_next_request)
{
	struct world *w = world_make(NULL);
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
	world_free(w);
}

/* ---- time ---- */

/* Less than 16 items in the appliance's time limit. */
TEST(a_slow_caller_acknowledges_each_item)
{
	struct world *w = world_make(NULL);
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
	world_free(w);
}

TEST(a_slow_model_is_asked_seldom_and_has_its_time_for_each_id)
{
	struct world *w = world_make(NULL);
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = 4900 * MS;
	prompt_begin(w, &t, 10, 4, 0);
	read_all(w, &t, &reader);
	assert_true(w->now > 4 * 4900 * MS);
	assert_in_range(w->server.polls, 4 * 5, 4 * 8); /* 200, 400, 800 ms, then each second */
	assert_int_equal(t.r.resends, 0);
	answer_right(&t, &reader);
	world_free(w);
}

TEST(a_model_that_stops_ends_the_request_after_the_time_limit)
{
	struct world *w = world_make(NULL);
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
	world_free(w);
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
TEST(a_paused_caller_with_a_gap_asks_seldom)
{
	struct world *w = world_make(NULL);
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
	world_free(w);
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

/* A POLL had overtaken its text. */
TEST(unknown_that_is_older_than_an_answer_is_not_heeded)
{
	struct world *w = world_make(NULL);
	struct tokd_rep unknown = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = TOKD_F_FAIL,
		.epoch = w->config.epoch,
		.reason = TOKD_R_UNKNOWN};
	struct reader reader = {0};
	struct text t;

	w->server.make_ns = MS;
	prompt_begin(w, &t, 10, 50, 0);
	for (uint32_t i = 1; i <= 20; i++) {
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
	world_free(w);
}

TEST(a_path_that_takes_less_leaves_an_answer_that_has_begun)
{
	struct world *w = world_make(NULL);
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
	world_free(w);
}

TEST(a_prompt_without_limit_or_room_is_refused)
{
	struct world *w = world_make(NULL);
	static char out[16];
	const struct tokd_request good = {.text = "a",
		.len = 1,
		.out = out,
		.max_ids = 16,
		.flags = TOKD_REQUEST_GENERATE | TOKD_REQUEST_SKIP_SPECIAL,
		.limit = 1};
	struct tokd_packet p[2];

	for (uint32_t i = 0; i < 6; i++) {
		struct tokd_request r = good;

		r.limit = i == 0 ? 0 : i == 4 ? TOKD_GENERATE_MOST + 1 : TOKD_GENERATE_MOST;
		r.out = i == 1 ? NULL : out;
		r.max_ids = i == 2 ? 15 : 16;
		r.flags |= i == 3 ? TOKD_REQUEST_DECODE : 0;
		assert_int_equal(
			tokd_engine_submit(w->e, &r), i < 5 ? TOKD_E_ARGUMENT : TOKD_PENDING);
		if (i < 5)
			continue;
		assert_int_equal(tokd_engine_packets(w->e, p, 2, w->now), 1);
		assert_true(p[0].req.flags & TOKD_F_SKIP_SPECIAL);
		tokd_engine_cancel(w->e, &r);
	}
	world_free(w);
}
