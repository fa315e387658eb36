/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of a model: whole items in order, whatever wires, servers and callers do. */
#include <string.h>

#include <crc32c.h>
#include "reader.h"

WORLD_TEST(an_answer_comes_as_it_is_made)
{
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

/* Nothing comes behind it that would show it. */
WORLD_TEST(a_last_item_that_is_lost_is_asked_for)
{
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
}

/* Its lane pauses. That is no failure, however long. */
WORLD_TEST(what_the_caller_has_not_taken_is_not_acknowledged)
{
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
WORLD_TEST(what_is_taken_makes_a_poll_due_at_once)
{
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
}

WORLD_TEST(an_item_longer_than_half_of_the_room_ends_it_and_the_lane)
{
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
}

/* ---- answers that are none ---- */

struct said {
	struct tokd_rep rep;
	uint8_t answer[64];
};

/* A prompt, of which one packet was sent; the reply to it is to be changed. */
static struct said
prompt_sent(struct world *w, struct text *t, uint32_t len, uint32_t limit)
{
	struct tokd_packet p;
	bool last;

	prompt_begin(w, t, len, limit, 0);
	assert_int_equal(tokd_engine_packets(w->e, &p, 1, w->now), 1);
	last = p.len == len;
	assert_int_equal(p.req.limit, last ? limit : 0);
	assert_int_equal(p.req.flags, TOKD_F_FIRST | (last ? TOKD_F_LAST : 0) | TOKD_F_IDS |
					      TOKD_F_STREAM | TOKD_F_GENERATE);
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

		s = prompt_sent(w, &t, 10, cases[i].limit);
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

/* An appliance may lie, and acknowledge what was not sent: the rest of the prompt is sent still. */
TEST(a_new_path_leaves_the_cuts_of_a_prompt_whose_answer_has_begun)
{
	static const uint32_t payloads[] = {500, TOKD_WIRE_PAYLOAD * 4};
	const struct tokd_made item = {.id = 1};

	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct world *w = world_make(NULL);
		struct tokd_packet p[8];
		struct said s;
		struct text t;
		uint32_t n;

		s = prompt_sent(w, &t, 5000, 9);
		s.rep.ack = t.r.packets;
		s.rep.count = s.rep.total = sizeof(item);
		memcpy(s.answer, &item, sizeof(item));
		hear(w, &s);
		assert_int_equal(t.r.n_ids, sizeof(item));
		tokd_engine_path(w->e, payloads[i], 564, w->now);
		n = tokd_engine_packets(w->e, p, 8, w->now);
		assert_int_equal(n, t.r.packets - 1);
		for (uint32_t k = 0; k < n; k++) {
			assert_int_equal(p[k].req.offset, (k + 1) * TOKD_WIRE_PAYLOAD);
			assert_int_equal(p[k].len,
				k + 1 < n ? TOKD_WIRE_PAYLOAD : 5000 - n * TOKD_WIRE_PAYLOAD);
			assert_ptr_equal(p[k].text, (const char *)t.r.text + p[k].req.offset);
		}
		tokd_engine_cancel(w->e, &t.r);
		text_free(&t);
		world_free(w);
	}
}

/* After three seconds without a reply, questions are a second apart. */
static void
be_silent(struct world *w)
{
	struct tokd_packet p[8];

	for (uint64_t end = w->now + 3000 * MS; w->now < end; w->now += MS) {
		tokd_engine_tick(w->e, w->now);
		tokd_engine_packets(w->e, p, 8, w->now);
	}
}

TEST(news_after_a_silence_is_followed_up_at_once)
{
	static const bool is_gone[] = {true, false};

	for (size_t i = 0; i < 2; i++) {
		struct world *w = world_make(NULL);
		struct tokd_packet p[8];
		struct said s;
		struct text t;

		s = prompt_sent(w, &t, 10, 9);
		s.rep.count = s.rep.total = sizeof(struct tokd_made);
		hear(w, &s);
		be_silent(w);
		s.rep.count = 0;
		if (is_gone[i]) { /* which counts once it is confirmed */
			s.rep.total = s.rep.ack = s.rep.credit = 0;
			s.rep.flags = TOKD_F_FAIL;
			s.rep.reason = TOKD_R_UNKNOWN;
		} else {
			s.rep.total = 3 * sizeof(struct tokd_made);
		}
		hear(w, &s);
		assert_int_equal(t.r.status, TOKD_PENDING);
		assert_int_equal(tokd_engine_packets(w->e, p, 8, w->now), 1);
		assert_int_equal(p[0].req.ids_end, s.rep.total);
		assert_in_range(tokd_engine_next(w->e), w->now, w->now + 200 * MS);
		tokd_engine_cancel(w->e, &t.r);
		text_free(&t);
		world_free(w);
	}
}

WORLD_TEST(an_answer_with_a_wrong_crc_is_an_error)
{
	struct reader reader = {0};
	struct text t;

	w->server.spoil_crc = true;
	prompt_begin(w, &t, 10, 5, 0);
	read_all(w, &t, &reader);
	assert_int_equal(t.r.status, TOKD_E_IDS_CRC);
	text_free(&t);
}

TEST(what_cannot_be_an_answer_is_not_taken)
{
	for (uint32_t i = 0; i < 5; i++) {
		struct world *w = world_make(NULL);
		struct said s;
		struct text t;

		s = prompt_sent(w, &t, 10, 5);
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
	const struct tokd_engine_config config = {.epoch = 77,
		.requests = AT_ONCE,
		.packets = 128,
		.payload = TOKD_WIRE_PAYLOAD,
		.timeout_ns = 5000 * MS,
		.rto_least_ns = 5 * MS,
		.first_stream_id = UINT64_MAX - 100};
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
