/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol as a client has to keep it, over wires and servers that are good and bad. */
#include <string.h>

#include "world.h"

static struct tokd_engine_config
many(uint32_t requests)
{
	return (struct tokd_engine_config){.epoch = 77,
		.requests = requests,
		.packets = 128,
		.payload = TOKD_WIRE_PAYLOAD,
		.timeout_ns = 5000 * MS,
		.rto_least_ns = 5 * MS,
		.first_stream_id = UINT64_MAX - 100}; /* ids go round */
}

static struct world *
world_of(uint32_t requests)
{
	const struct tokd_engine_config config = many(requests);

	return world_make(&config);
}

WORLD_TEST(every_size_comes_back_without_a_packet_too_many)
{
	const uint32_t sizes[] = {
		0, 1, 344, 353, 1375, 1376, 1377, 2752, 64 * 1376, 64 * 1376 + 1, 150 * 1376 + 7};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct text t;

		text_run(w, &t, sizes[i], 0, sizes[i] + 1);
		assert_int_equal(t.r.retransmits + t.r.asks + t.r.resends, 0);
		assert_int_equal(t.r.vocab, 5);
		text_right(&t);
	}
	assert_true(w->server.most_ahead <= TOKD_WIRE_WINDOW);
}

TEST(packets_are_as_long_as_they_are_told_to_be)
{
	static const uint32_t payloads[] = {1, 100, 1900}, lengths[] = {0, 1, 99, 100, 101, 200};

	for (uint32_t i = 0; i < 3; i++) {
		struct tokd_engine_config config = many(1);
		struct world *w;

		config.payload = payloads[i];
		w = world_make(&config);
		for (uint32_t j = 0; j < 6; j++) {
			const uint32_t len = lengths[j] * (payloads[i] == 1900 ? 19 : 1);
			struct text t;

			text_run(w, &t, len, 0, len + 1);
			text_right(&t);
		}
		world_free(w);
	}
}

/* Or each loss would make the next one's time-out longer, which would make the estimate longer. */
WORLD_TEST_IN(losses_do_not_lengthen_the_round_trip, world_of(8))
{
	struct text t[64];

	w->lose = 100;
	w->reorder = 50;
	for (uint32_t i = 0; i < 64; i += 8) {
		for (uint32_t j = i; j < i + 8; j++)
			text_begin(w, &t[j], j % 2 == 0 ? 100 : 30 * TOKD_WIRE_PAYLOAD, 0, 0);
		while (tokd_engine_pending(w->e) > 0) {
			assert_true(world_step(w));
			/* Late ones are late by once the delay, each way. */
			assert_true(
				tokd_engine_stats(w->e).srtt_ns <= 4 * w->delay + 2 * ON_THE_WIRE);
		}
		while (tokd_engine_done(w->e) != NULL)
			;
	}
	for (uint32_t i = 0; i < 64; i++)
		text_right(&t[i]);
}

static uint32_t
sent_again(struct world *w, uint32_t texts, uint32_t len)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < texts; i++) {
		struct text t;

		text_run(w, &t, len, 0, 0);
		n += t.r.retransmits + t.r.asks;
		text_right(&t);
	}
	return n;
}

TEST(a_round_trip_that_becomes_longer_is_learnt)
{
	const uint32_t lengths[] = {100, 3 * TOKD_WIRE_PAYLOAD};

	for (uint32_t i = 0; i < 2; i++) {
		struct world *w = world_make(NULL);

		assert_int_equal(sent_again(w, 20, lengths[i]), 0);
		w->delay *= 1000; /* 20 ms: far beyond the time-out */
		assert_in_range(sent_again(w, 50, lengths[i]), 1, 30);
		assert_int_equal(sent_again(w, 50, lengths[i]), 0);
		assert_true(tokd_engine_stats(w->e).srtt_ns > 39 * MS);
		w->delay /= 1000;
		assert_int_equal(sent_again(w, 50, lengths[i]), 0);
		assert_true(tokd_engine_stats(w->e).srtt_ns < MS);
		world_free(w);
	}
}

/* Also when it is longer than a request waits before it sends again: over satellites. */
TEST(a_long_round_trip_is_measured)
{
	const uint32_t trips_ms[] = {200, 260, 600, 1200};

	for (uint32_t i = 0; i < 4; i++) {
		struct world *w = world_make(NULL);

		w->delay = trips_ms[i] * MS / 2;
		assert_in_range(sent_again(w, 3, 100), 1, 30);
		assert_int_equal(sent_again(w, 20, 100), 0);
		assert_in_range(
			tokd_engine_stats(w->e).srtt_ns, trips_ms[i] * MS, (trips_ms[i] + 1) * MS);
		world_free(w);
	}
}

/* The time-out of new packets is long then. A text that waited hears soon all the same. */
TEST(after_an_outage_a_text_is_tried_soon)
{
	for (uint32_t ms = 100; ms <= 4000; ms += 300) {
		struct world *w = world_make(NULL);
		struct text t;
		uint64_t back;

		assert_int_equal(sent_again(w, 20, 100), 0);
		back = w->now + ms * MS;
		w->lose = 1000;
		text_begin(w, &t, 100, 0, 0);
		do
			assert_true(world_step(w));
		while (tokd_engine_next(w->e) < back);
		w->lose = 0;
		world_run(w, 1);
		assert_true(w->now < back + 251 * MS);
		text_right(&t);
		world_free(w);
	}
}

TEST(no_more_packets_are_in_flight_than_allowed)
{
	struct tokd_engine_config config = many(32);
	struct world *w = world_make(&config);
	struct text t[32];

	for (uint32_t i = 0; i < 32; i++)
		text_begin(w, &t[i], 30 * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, 32);
	assert_int_equal(w->most_text, config.packets);
	for (uint32_t i = 0; i < 32; i++)
		text_right(&t[i]);
	world_free(w);
}

WORLD_TEST(a_packet_overtaken_is_sent_again_at_once)
{
	struct text t;
	uint64_t begun = w->now;

	text_begin(w, &t, 10 * TOKD_WIRE_PAYLOAD, 0, 0);
	tokd_engine_tick(w->e, w->now);
	assert_true(world_step(w)); /* all are on the wire, one was delivered */
	for (uint32_t i = 0; i < w->n_wire; i++) {
		const struct tokd_req *req = (const void *)w->wire[i].data;

		if (w->wire[i].to_server && req->packet == 4)
			w->wire[i] = w->wire[--w->n_wire];
	}
	world_run(w, 1);
	assert_int_equal(t.r.retransmits, 1);
	assert_true(w->now - begun < 5 * MS); /* before any time-out */
	text_right(&t);
}

/* Of a text of n packets, one is lost, or comes `late` ns after those behind it. */
static void
one_is_missed(uint32_t n, uint32_t packet, uint64_t late)
{
	struct world *w = world_make(NULL);
	struct tokd_request r;
	uint64_t begun;
	struct text t;

	assert_int_equal(sent_again(w, 20, n * TOKD_WIRE_PAYLOAD), 0);
	begun = w->now;
	text_begin(w, &t, n * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_true(world_step(w));
	for (uint32_t i = 0; i < w->n_wire; i++) {
		const struct tokd_req *req = (const void *)w->wire[i].data;

		if (!w->wire[i].to_server || req->type != TOKD_DATA || req->packet != packet)
			continue;
		if (late > 0)
			w->wire[i].due += late;
		else
			w->wire[i] = w->wire[--w->n_wire];
		break;
	}
	world_run(w, 1);
	r = t.r;
	text_right(&t);
	assert_int_equal(r.retransmits, late == 0);
	assert_int_equal(r.asks, 0);
	/* Two round trips and a quarter; the time-out is more than a hundred. */
	assert_true(w->now - begun < 5 * w->delay);
	world_free(w);
}

TEST(a_lost_packet_of_a_short_text_is_found_before_its_time_out)
{
	for (uint32_t n = 2; n <= 8; n++) {
		for (uint32_t packet = 1; packet < n - 1; packet++)
			one_is_missed(n, packet, 0);
	}
}

TEST(packets_that_come_in_another_order_are_not_sent_again)
{
	for (uint32_t n = 4; n <= 8; n++) {
		one_is_missed(n, n - 3, MS / 500);
		one_is_missed(n, n - 2, MS / 500);
	}
}

WORLD_TEST(without_credit_it_waits_and_asks)
{
	struct text t;

	w->server.window = 0;
	text_begin(w, &t, 20 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->now < 300 * MS)
		assert_true(world_step(w));
	assert_int_equal(t.r.status, TOKD_PENDING);
	assert_in_range(w->server.polls, 3, 40);
	assert_int_equal(t.r.retransmits, 0);
	w->server.window = 4;
	world_run(w, 1);
	assert_true(w->now < 500 * MS);
	text_right(&t);
	assert_in_range(w->server.most_ahead, 1, 4);
}

/* Its ids fill the reply window: only their acknowledgement can give it room (rule 9). */
WORLD_TEST(a_server_that_stopped_hears_of_its_ids_at_once)
{
	struct {
		struct tokd_rep rep;
		uint32_t ids[100];
	} reply = {.rep = {.magic = TOKD_WIRE_MAGIC,
			   .version = TOKD_WIRE_VERSION,
			   .type = TOKD_REPLY,
			   .epoch = 77,
			   .stream_id = 1000,
			   .ack = 10,
			   .count = 100,
			   .total = 100}};
	struct tokd_packet p[64];
	struct text t;

	text_begin(w, &t, 20 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(tokd_engine_packets(w->e, p, 64, w->now), 20);
	tokd_engine_take(w->e, &reply, sizeof(reply), w->now);
	assert_int_equal(tokd_engine_packets(w->e, p, 64, w->now), 1);
	assert_int_equal(p[0].req.type, TOKD_POLL);
	assert_int_equal(p[0].req.ids_ack, 100);
	assert_int_equal(p[0].req.ids_end, 0);
	tokd_engine_cancel(w->e, &t.r);
	text_free(&t);
}

WORLD_TEST(busy_is_tried_again_under_the_same_id_after_a_pause)
{
	struct text t;

	w->server.reason = TOKD_R_BUSY;
	w->server.refuse_first = 3;
	text_run(w, &t, 100, 0, 0);
	assert_int_equal(t.r.resends, 3);
	assert_int_equal(t.r.stream_id, 1000);
	assert_true(w->now >= (5 + 10 + 20) * MS);
	text_right(&t);
}

WORLD_TEST(shutdown_is_tried_again_until_the_appliance_is_back)
{
	struct text t;

	w->server.reason = TOKD_R_SHUTDOWN;
	w->server.refuse_first = 8;
	text_run(w, &t, 100, 0, 0);
	assert_int_equal(t.r.resends, 8);
	assert_true(w->now >= (5 << 8) * MS - 5 * MS);
	text_right(&t);
}

/* What is only in `sack` may be dropped. */
WORLD_TEST(packets_that_were_held_and_then_dropped_are_sent_again)
{
	struct text t;

	w->lose = 200;
	w->server.drops_held = 1;
	text_run(w, &t, 40 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(w->server.drops_held, 0);
	text_right(&t);
}

WORLD_TEST(of_many_that_were_held_and_then_dropped_each_needs_no_time_out)
{
	bool lost = false;
	struct text t;

	w->server.reply_every = 16;
	w->server.drops_held = 1;
	text_begin(w, &t, 129 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (tokd_engine_done(w->e) == NULL) {
		assert_true(world_step(w));
		for (uint32_t i = 0; i < w->n_wire && !lost; i++) {
			const struct tokd_req *req = (const void *)w->wire[i].data;

			if (!w->wire[i].to_server || req->packet != 1)
				continue;
			w->wire[i] = w->wire[--w->n_wire];
			lost = true;
		}
	}
	assert_int_equal(w->server.drops_held, 0);
	assert_in_range(t.r.retransmits, 60, 70); /* 63 were held */
	assert_true(w->now < 30 * MS);
	text_right(&t);
}

WORLD_TEST(validate_is_answered_at_once_under_the_same_id_and_once)
{
	struct text t;

	w->server.cookie = UINT64_C(0x1122334455667788);
	text_run(w, &t, 20 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(w->server.validates, 20); /* each of the first packets */
	assert_int_equal(w->server.n, 1);
	assert_int_equal(t.r.stream_id, 1000);
	assert_int_equal(t.r.resends + t.r.retransmits + t.r.asks, 0);
	assert_true(w->now < MS / 2); /* two round trips */
	text_right(&t);
	/* It is kept for later texts. */
	text_run(w, &t, 1000, 0, 0);
	assert_int_equal(w->server.validates, 20);
	text_right(&t);
}

TEST(validate_is_heeded_by_each_of_many_on_a_bad_wire)
{
	enum { N = 64 };
	struct tokd_engine_config config = many(N);
	struct world *w = world_make(&config);
	struct text t[N];

	w->lose = 100;
	w->reorder = 100;
	w->twice = 50;
	w->server.cookie = 1;
	for (uint32_t i = 0; i < N; i++)
		text_begin(w, &t[i], 3 * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, N);
	assert_in_range(w->server.validates, N / 2, 4 * N);
	for (uint32_t i = 0; i < N; i++)
		text_right(&t[i]);
	world_free(w);
}

WORLD_TEST(validate_of_a_stream_in_progress_is_answered_by_a_poll)
{
	struct tokd_rep reply = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = TOKD_F_FAIL,
		.epoch = 77,
		.stream_id = 1000,
		.ack = 2,
		.reason = TOKD_R_VALIDATE,
		.cookie = 5};
	struct tokd_packet p[64];
	struct text t;

	text_begin(w, &t, 2 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(tokd_engine_packets(w->e, p, 64, w->now), 2);
	for (uint32_t i = 0; i < 3; i++) { /* the same again has been answered */
		tokd_engine_take(w->e, &reply, sizeof(reply), w->now);
		assert_int_equal(tokd_engine_packets(w->e, p, 64, w->now), i == 0);
	}
	assert_int_equal(p[0].req.type, TOKD_POLL);
	assert_int_equal(p[0].req.cookie, 5);
	tokd_engine_cancel(w->e, &t.r);
	text_free(&t);
}

/* All that is on the wire is lost, and the path takes less from now on. */
static void
shrink(struct world *w, uint32_t payload)
{
	w->n_wire = 0;
	w->server.payload = payload;
	tokd_engine_path(w->e, payload, payload + 64, w->now);
}

TEST(a_path_that_takes_less_has_texts_cut_again)
{
	enum { N = 6 };
	const struct tokd_engine_config config = many(N);
	struct world *w = world_make(&config);
	struct tokd_packet p[64];
	struct text t[N];
	uint32_t resends = 0;

	for (uint32_t i = 0; i < N - 1; i++)
		text_begin(w, &t[i], i * 3000, 0, i * 3000 + 1);
	for (uint32_t steps = 0; steps < 3; steps++)
		world_step(w);		      /* some have answers, some have not */
	text_begin(w, &t[N - 1], 5000, 0, 0); /* nothing of it was sent */
	shrink(w, 500);
	for (uint32_t n, k = 0; (n = tokd_engine_packets(w->e, p, 1, w->now)) > 0; k++) {
		assert_true(k < 1000);
		assert_true(p[0].req.type == TOKD_POLL ||
			    (p[0].len <= 500 && p[0].req.reply_max == 564));
		tokd_engine_unsent(w->e, &p[0]);
		if (k == 5)
			break;
	}
	world_run(w, N);
	for (uint32_t i = 0; i < N; i++) {
		assert_in_range(t[i].r.resends, 0, 1);
		resends += t[i].r.resends;
		text_right(&t[i]);
	}
	assert_true(resends > 0);
	assert_int_equal(tokd_engine_stats(w->e).resends, resends);
	world_free(w);
}

TEST(a_path_that_takes_more_is_for_new_texts)
{
	struct tokd_engine_config config = many(2);
	struct world *w;
	struct text t[2];

	config.payload = 500;
	config.reply_max = 564;
	w = world_make(&config);
	text_begin(w, &t[0], 5000, 0, 0);
	while (t[0].r.arrived == 0)
		assert_true(world_step(w));
	tokd_engine_path(w->e, 1000, 1064, w->now);
	world_run(w, 1);
	assert_int_equal(t[0].r.resends, 0);
	assert_int_equal(t[0].r.packets, 10);
	text_right(&t[0]);
	w->server.payload = 1000;
	text_run(w, &t[1], 5000, 0, 0);
	assert_int_equal(t[1].r.packets, 5);
	text_right(&t[1]);
	world_free(w);
}

/* Packets of the old cut may be on their way: another stream id. */
WORLD_TEST(a_path_that_takes_less_while_a_text_pauses)
{
	struct text t;

	w->server.reason = TOKD_R_BUSY;
	w->server.retry_ms = 50;
	w->server.refuse_first = 5;
	text_begin(w, &t, 5 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (t.r.resends == 0)
		assert_true(world_step(w));
	shrink(w, 700);
	w->server.refuse_first = 0;
	world_run(w, 1);
	assert_int_equal(t.r.resends, 1);
	assert_int_equal(t.r.stream_id, 1001);
	text_right(&t);
}

/* It was on its way while the text began. */
WORLD_TEST(busy_of_a_text_that_has_begun_is_not_heeded)
{
	struct tokd_rep busy = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = TOKD_F_FAIL,
		.epoch = w->config.epoch,
		.reason = TOKD_R_BUSY};
	struct text t;

	text_begin(w, &t, 100 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (t.r.arrived < 10)
		assert_true(world_step(w));
	busy.stream_id = t.r.stream_id;
	tokd_engine_take(w->e, &busy, sizeof(busy), w->now);
	world_run(w, 1);
	assert_int_equal(t.r.resends, 0);
	text_right(&t);
}

static void
another_version(struct world *w, struct datagram *d)
{
	d->data[offsetof(struct tokd_rep, version)] = 9;
}

/* By the reply as an appliance sends it now, and as those of before did. */
TEST(another_version_ends_the_request_at_once)
{
	static const struct {
		uint32_t speaks, says;
		void (*spoil)(struct world *w, struct datagram *d);
	} cases[] = {{2, 2, NULL}, {2, 2, another_version}, {0, 9, another_version}};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world *w = world_make(NULL);
		const uint64_t begun = w->now;
		struct text t;

		w->server.reason = TOKD_R_VERSION;
		w->server.refuse_first = UINT32_MAX;
		w->server.retry_ms = cases[i].speaks; /* the same bytes */
		w->spoil = cases[i].spoil;
		text_run(w, &t, 100, 0, 0);
		assert_int_equal(t.r.status, TOKD_E_REFUSED);
		assert_int_equal(t.r.reason, TOKD_R_VERSION);
		assert_int_equal(t.r.error, cases[i].says);
		assert_int_equal(t.r.retransmits + t.r.resends, 0);
		assert_true(w->now - begun < 5 * MS);
		text_free(&t);
		world_free(w);
	}
}

WORLD_TEST(validate_without_end_ends_the_request)
{
	struct text t;

	w->server.cookie = 1;
	w->server.cookie_changes = true;
	text_run(w, &t, 100, 0, 0);
	assert_int_equal(t.r.status, TOKD_E_REFUSED);
	assert_int_equal(t.r.reason, TOKD_R_VALIDATE);
	assert_int_equal(w->server.validates, 9);
	text_free(&t);
}

TEST(busy_is_tried_again_when_the_appliance_says_within_limits)
{
	static const struct {
		uint32_t retry_ms, refusals, least_ms, most_ms;
	} cases[] = {{40, 3, 3 * 40, 130}, {1, 3, 3 * 1, 10}, {500, 1, 500, 520},
		{UINT32_MAX, 2, 2 * 2000, 4020}, {1500, 8, 8 * 1500, 12040}};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world *w = world_make(NULL);
		struct text t;
		uint64_t begun = w->now;

		w->server.reason = TOKD_R_BUSY;
		w->server.retry_ms = cases[i].retry_ms;
		w->server.refuse_first = cases[i].refusals;
		text_run(w, &t, 100, 0, 0);
		assert_int_equal(t.r.resends, cases[i].refusals);
		assert_in_range(w->now - begun, cases[i].least_ms * MS, cases[i].most_ms * MS);
		text_right(&t);
		world_free(w);
	}
}

TEST(ids_of_every_size_come_back_as_text)
{
	static const uint32_t payloads[] = {1, 3, TOKD_WIRE_PAYLOAD};

	for (uint32_t i = 0; i < 3; i++) { /* packets may cut ids */
		struct tokd_engine_config config = many(1);
		struct world *w;

		config.payload = payloads[i];
		w = world_make(&config);
		for (uint32_t len = 0; len <= 60 * payloads[i]; len += 4 + len / 4 * 4) {
			struct text t;

			text_run(w, &t, len, TOKD_REQUEST_DECODE, len / 4 + 1);
			text_right(&t);
		}
		world_free(w);
	}
}

WORLD_TEST(half_an_id_is_refused_and_one_that_is_none_is_named)
{
	const uint32_t ids[4] = {0};
	struct tokd_request r = {.text = ids, .len = 15, .flags = TOKD_REQUEST_DECODE};

	assert_int_equal(tokd_engine_submit(w->e, &r), TOKD_E_ARGUMENT);
	r.len = 16;
	assert_int_equal(tokd_engine_submit(w->e, &r), TOKD_PENDING);
	w->server.reason = TOKD_R_ID;
	w->server.refuse_first = 1;
	w->server.retry_ms = 8; /* in the place of text_end */
	world_run(w, 1);
	assert_int_equal(r.status, TOKD_E_REFUSED);
	assert_int_equal(r.error, 2);
	/* There is no fifth id. */
	assert_int_equal(tokd_engine_submit(w->e, &r), TOKD_PENDING);
	w->server.refuse_first = 1;
	w->server.retry_ms = 16;
	world_run(w, 1);
	assert_int_equal(r.status, TOKD_OK);
	assert_int_equal(tokd_engine_stats(w->e).bad, 1);
}

TEST(refusals_end_a_request_with_their_reason)
{
	for (uint32_t reason = 1; reason <= 20; reason++) {
		struct world *w = world_make(NULL);
		bool again =
			reason == TOKD_R_BUSY || reason == TOKD_R_EXPIRED || reason == TOKD_R_SHARE;
		bool waits = reason == TOKD_R_UNKNOWN || reason == TOKD_R_VALIDATE;
		struct text t;

		w->server.reason = reason;
		w->server.refuse_first = UINT32_MAX;
		text_run(w, &t, 100, 0, 0);
		assert_int_equal(t.r.status, waits ? TOKD_E_TIMEOUT : TOKD_E_REFUSED);
		assert_int_equal(t.r.reason, waits ? 0 : reason);
		if (reason == TOKD_R_BUSY ||
			reason == TOKD_R_SHUTDOWN) /* as long as a request may make no progress */
			assert_true(t.r.resends > 8 && w->now >= 5000 * MS);
		else
			assert_int_equal(t.r.resends, again ? 8 : 0);
		text_free(&t);
		world_free(w);
	}
}

WORLD_TEST(unknown_before_the_text_came_is_no_failure)
{
	struct text t;

	w->server.reason = TOKD_R_UNKNOWN;
	w->server.refuse_first = 2;
	text_run(w, &t, 100, 0, 0);
	assert_int_equal(t.r.resends, 0);
	text_right(&t);
}

static uint32_t expire_at;

static void
expire(struct world *w, struct datagram *d)
{
	struct tokd_rep *rep = (void *)d->data;

	if (rep->first == expire_at && rep->stream_id == 1000) {
		rep->flags = TOKD_F_FAIL;
		rep->reason = TOKD_R_EXPIRED;
		rep->count = 0;
		d->len = sizeof(*rep);
	}
}

WORLD_TEST(a_stream_that_expires_goes_on_where_it_was)
{
	struct tokd_request *r;
	struct text t;
	uint32_t n = 0;

	expire_at = 344;
	w->spoil = expire;
	text_begin(w, &t, 2000, TOKD_REQUEST_STREAM, 0);
	while (t.r.status == TOKD_PENDING) {
		assert_true(world_step(w));
		while ((r = tokd_engine_done(w->e)) != NULL) {
			assert_true(r == &t.r && r->n_ids >= n);
			n = r->n_ids;
		}
	}
	assert_int_equal(t.r.resends, 1);
	text_right(&t);
}

/* As from an earlier stream, whose appliance had another vocabulary. */
TEST(ids_that_do_not_stand_are_not_counted)
{
	for (uint32_t flags = 0; flags <= TOKD_REQUEST_STREAM; flags += TOKD_REQUEST_STREAM) {
		struct world *w = world_make(NULL);
		struct text t;

		text_begin(w, &t, 2000, flags, 3000);
		t.r.n_ids = t.r.total = 2500;
		t.r.vocab = 5; /* as the server has */
		world_run(w, 1);
		assert_int_equal(t.r.status, flags != 0 ? TOKD_E_IDS_CRC : TOKD_OK);
		if (flags == 0) {
			assert_int_equal(t.r.n_ids, 2000);
			assert_int_equal(t.r.total, 2000);
		}
		text_free(&t);
		world_free(w);
	}
}

WORLD_TEST(a_stream_that_shows_another_vocabulary_than_before_ends)
{
	struct text t;

	text_begin(w, &t, 2000, TOKD_REQUEST_STREAM, 0);
	t.r.n_ids = 1;
	t.r.vocab = 77;
	world_run(w, 1);
	assert_int_equal(t.r.status, TOKD_E_REFUSED);
	assert_int_equal(t.r.reason, TOKD_R_VOCAB);
	text_free(&t);
}

/* It died without a word. What comes first is not the first packet. */
TEST(a_text_half_of_which_had_arrived_survives_a_restart)
{
	struct tokd_engine_config config = many(1);
	struct world *w;
	struct text t;

	config.packets = 4;
	w = world_make(&config);
	text_begin(w, &t, 40 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (t.r.arrived < 20)
		assert_true(world_step(w));
	w->n_wire = 0;
	server_free(&w->server);
	w->server.n = 0;
	world_run(w, 1);
	assert_true(t.r.resends > 0);
	text_right(&t);
	world_free(w);
}

TEST(with_resending_off_it_fails_at_once)
{
	struct tokd_engine_config config = many(1);
	struct world *w;
	struct text t;

	config.no_resend = true;
	w = world_make(&config);
	w->server.reason = TOKD_R_BUSY;
	w->server.refuse_first = 1;
	text_run(w, &t, 100, 0, 0);
	assert_int_equal(t.r.status, TOKD_E_REFUSED);
	assert_int_equal(t.r.reason, TOKD_R_BUSY);
	text_free(&t);
	world_free(w);
}

TEST(of_many_that_are_late_at_once_a_few_are_tried)
{
	enum { N = 128, A_TICK = 16 };
	struct tokd_engine_config config = many(N);
	struct world *w;
	static struct tokd_packet out[2 * N];
	static struct tokd_request r[N];
	uint64_t late = 20 * MS, now;

	config.packets = 2 * N; /* the first loss leaves enough for all */
	w = world_make(&config);

	for (uint32_t i = 0; i < N; i++) {
		r[i] = (struct tokd_request){.text = "text", .len = 4};
		assert_int_equal(tokd_engine_submit(w->e, &r[i]), TOKD_PENDING);
	}
	assert_int_equal(tokd_engine_packets(w->e, out, 2 * N, 0), N);
	tokd_engine_tick(w->e, late);
	assert_int_equal(tokd_engine_packets(w->e, out, 2 * N, late), 2 * A_TICK); /* and POLLs */
	assert_int_equal(tokd_engine_next(w->e), late + config.rto_least_ns);
	while (tokd_engine_stats(w->e).retransmits < N) {
		now = tokd_engine_next(w->e);
		tokd_engine_tick(w->e, now);
		(void)tokd_engine_packets(w->e, out, 2 * N, now);
	}
	assert_true(now < 250 * MS);
	tokd_engine_tick(w->e, 5000 * MS);
	assert_int_equal(tokd_engine_pending(w->e), 0); /* the limit of time is for all at once */
	world_free(w);
}

WORLD_TEST(silence_ends_after_the_time_limit)
{
	struct text t;

	w->lose = 1000;
	text_run(w, &t, 100000, 0, 0);
	assert_int_equal(t.r.status, TOKD_E_TIMEOUT);
	assert_in_range(w->now, 5000 * MS, 5001 * MS);
	/* Backed off: the first time-out is 20 ms, the last 250 ms. */
	assert_in_range(t.r.asks, 18, 30);
	text_free(&t);
}

WORLD_TEST(replies_without_progress_do_not_hold_off_the_time_limit)
{
	struct text t;

	w->server.window = 0;
	w->twice = 1000;
	text_run(w, &t, 1000, 0, 0);
	assert_int_equal(t.r.status, TOKD_E_TIMEOUT);
	assert_int_equal(t.r.reason, TOKD_R_NONE);
	assert_in_range(w->now, 5000 * MS, 5001 * MS);
	text_free(&t);
}

static void
say_ring(struct world *w, struct datagram *d)
{
	struct tokd_rep *rep = (void *)d->data;

	if (rep->type == TOKD_REPLY && rep->credit == 0)
		rep->reason = TOKD_R_RING;
}

TEST(a_full_ring_is_waited_for_and_is_the_reason_at_the_time_limit)
{
	for (int opens = 0; opens < 2; opens++) {
		struct world *w = world_make(NULL);
		struct text t;

		w->server.window = 0;
		w->spoil = say_ring;
		text_begin(w, &t, 1000, 0, 0);
		while (w->now < 300 * MS)
			assert_true(world_step(w));
		assert_int_equal(t.r.status, TOKD_PENDING);
		assert_int_equal(t.r.reason, TOKD_R_RING);
		w->server.window = opens ? 4 : 0;
		world_run(w, 1);
		assert_int_equal(t.r.status, opens ? TOKD_OK : TOKD_E_TIMEOUT);
		assert_int_equal(t.r.reason, opens ? TOKD_R_NONE : TOKD_R_RING);
		text_free(&t);
		world_free(w);
	}
}

WORLD_TEST(ids_beyond_the_room_are_an_error)
{
	struct text t;

	text_run(w, &t, 1000, 0, 999);
	assert_int_equal(t.r.status, TOKD_E_ROOM);
	assert_int_equal(t.r.total, 1000);
	text_free(&t);
}

WORLD_TEST(without_room_for_ids_only_the_end_is_waited_for)
{
	struct tokd_request r = {.text = "some text", .len = 9};

	assert_int_equal(tokd_engine_submit(w->e, &r), TOKD_PENDING);
	world_run(w, 1);
	assert_int_equal(r.status, TOKD_OK);
	assert_int_equal(r.total, 9);
	assert_int_equal(r.n_ids, 0);
}

TEST(a_text_whose_ids_the_gpu_makes_is_done_without_their_number)
{
	for (uint32_t wants = 0; wants < 2; wants++) {
		struct world *w = world_make(NULL);
		struct text t;

		w->server.uncounted = true;
		text_begin(w, &t, 3000, 0, 0);
		if (!wants)
			t.r.ids = NULL;
		world_run(w, 1);
		/* Who wants ids takes no such answer for one. */
		assert_int_equal(t.r.status, wants ? TOKD_E_TIMEOUT : TOKD_OK);
		assert_int_equal(t.r.uncounted, !wants);
		assert_int_equal(t.r.total, 0);
		t.r.ids = t.room;
		text_free(&t);
		world_free(w);
	}
}

WORLD_TEST(wrong_ids_are_found_by_their_crc)
{
	struct text t;

	w->server.spoil_crc = true;
	text_run(w, &t, 5000, 0, 0);
	assert_int_equal(t.r.status, TOKD_E_IDS_CRC);
	text_free(&t);
}

TEST(another_vocabulary_than_asked_for_is_refused)
{
	struct tokd_engine_config config = many(1);
	struct world *w;
	struct text t;

	config.vocab = 6; /* the server's is 5 */
	w = world_make(&config);
	text_run(w, &t, 10, 0, 0);
	assert_int_equal(t.r.status, TOKD_E_REFUSED);
	assert_int_equal(t.r.reason, TOKD_R_VOCAB);
	text_free(&t);
	world_free(w);
}

WORLD_TEST_IN(the_last_ids_are_acknowledged, world_of(4))
{
	struct text t[4];

	for (uint32_t i = 0; i < 4; i++)
		text_begin(w, &t[i], 1000, 0, 0);
	world_run(w, 4);
	while (world_step(w))
		;
	assert_int_equal(w->server.last_acks, 4);
	for (uint32_t i = 0; i < 4; i++)
		text_right(&t[i]);
}

WORLD_TEST_IN(cancelled_requests_are_forgotten, world_of(8))
{
	struct text t[8], later;

	for (uint32_t i = 0; i < 8; i++)
		text_begin(w, &t[i], 20 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(tokd_engine_submit(w->e, &(struct tokd_request){0}), TOKD_E_FULL);
	for (uint32_t i = 0; i < 50; i++)
		assert_true(world_step(w));
	for (uint32_t i = 0; i < 8; i += 2) {
		tokd_engine_cancel(w->e, &t[i].r);
		assert_int_equal(t[i].r.status, TOKD_E_CANCELLED);
		text_free(&t[i]); /* a sanitizer sees who still reads it */
	}
	text_begin(w, &later, 3000, 0, 0);
	world_run(w, 5);
	for (uint32_t i = 1; i < 8; i += 2)
		text_right(&t[i]);
	text_right(&later);
	assert_int_equal(tokd_engine_pending(w->e), 0);
	assert_true(tokd_engine_stats(w->e).stale > 0);
}

WORLD_TEST(what_could_not_be_sent_is_given_out_again)
{
	struct tokd_packet p[64];
	struct text t;

	text_begin(w, &t, 10 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(tokd_engine_packets(w->e, p, 64, w->now), 10);
	for (uint32_t i = 3; i < 10; i++)
		tokd_engine_unsent(w->e, &p[i]);
	assert_int_equal(tokd_engine_packets(w->e, p, 64, w->now), 7);
	assert_int_equal(p[0].req.packet, 3);
	for (uint32_t i = 0; i < 7; i++)
		tokd_engine_unsent(w->e, &p[i]);
	world_run(w, 1); /* the first three were lost */
	text_right(&t);
}

WORLD_TEST_IN(all_fail_together_when_the_network_does, world_of(3))
{
	struct text t[3];

	for (uint32_t i = 0; i < 3; i++)
		text_begin(w, &t[i], 10, 0, 0);
	tokd_engine_fail_all(w->e, TOKD_E_NET, 111);
	for (uint32_t i = 0; i < 3; i++) {
		assert_ptr_equal(tokd_engine_done(w->e), &t[i].r);
		assert_int_equal(t[i].r.status, TOKD_E_NET);
		assert_int_equal(t[i].r.error, 111);
		text_free(&t[i]);
	}
	assert_null(tokd_engine_done(w->e));
}

/* Each is one lie that a reply may tell; it is not believed, and the true one that follows is. */
static uint32_t lie;

static void
tell_a_lie(struct world *w, struct datagram *d)
{
	struct datagram bad = *d;
	struct tokd_rep *b = (void *)bad.data;

	switch (lie) {
	case 0:
		bad.len = sizeof(*b) - 1;
		break;
	case 1:
		b->count++;
		break;
	case 2:
		b->count = UINT32_MAX;
		break;
	case 3:
		b->first = b->total;
		break;
	case 4:
		b->first = UINT32_MAX;
		break;
	case 5:
		b->credit = 65;
		break;
	case 6:
		b->magic++;
		break;
	case 7:
		b->version++;
		break;
	case 8:
		b->type = TOKD_DATA;
		break;
	case 9:
		b->epoch++;
		break;
	case 10:
		b->stream_id += 1 + world_dice(w, 1000);
		break;
	case 11:
		b->ack--;
		break;
	case 12:
		b->text_end--;
		break;
	case 13: /* text, though ids were asked for */
		b->flags |= TOKD_F_DECODE;
		b->count *= 4;
		b->total = b->count;
		break;
	default:
		bad.len = DATAGRAM;
		break;
	}
	tokd_engine_take(w->e, bad.data, bad.len, w->now);
}

TEST(lies_are_not_believed)
{
	for (lie = 0; lie <= 14; lie++) {
		struct world *w = world_make(NULL);
		struct tokd_client_stats stats;
		struct text t;

		w->spoil = tell_a_lie;
		text_run(w, &t, 300, 0, 0);
		stats = tokd_engine_stats(w->e);
		assert_int_equal(stats.bad + stats.stale, 1);
		text_right(&t);
		world_free(w);
	}
}

/* Headers whose every field may be anything: memory stays whole, and the engine comes to an end. */
static void
noise(struct world *w, struct datagram *d)
{
	struct tokd_rep *rep = (void *)d->data;
	uint32_t *fields[] = {&rep->ack, &rep->credit, &rep->first, &rep->total, &rep->ids_crc,
		&rep->reason, &rep->text_end};

	for (uint32_t i = world_dice(w, 4); i-- > 0;)
		*fields[world_dice(w, 7)] =
			world_dice(w, 2) ? world_dice(w, 100) : UINT32_MAX - world_dice(w, 3);
	if (world_dice(w, 4) == 0)
		rep->sack = w->seed;
	if (world_dice(w, 16) == 0)
		rep->flags ^= 1u << world_dice(w, 8);
	if (world_dice(w, 16) == 0) {
		rep->count = world_dice(w, 300);
		d->len = (uint32_t)sizeof(*rep) + 4 * rep->count;
	}
}

WORLD_TEST_IN(noise_in_replies_harms_nobody, world_of(16))
{
	static struct text t[400];
	uint32_t begun = 0, ended = 0;

	w->spoil = noise;
	w->lose = 50;
	while (ended < 400) {
		struct tokd_request *r;

		for (; begun < 400 && tokd_engine_pending(w->e) < 16; begun++)
			text_begin(w, &t[begun], world_dice(w, 20000), 0, 20001);
		world_step(w);
		while ((r = tokd_engine_done(w->e)) != NULL)
			ended++;
		assert_true(ended + tokd_engine_pending(w->e) == begun);
	}
	for (uint32_t i = 0; i < 400; i++)
		text_free(&t[i]);
	assert_int_equal(tokd_engine_pending(w->e), 0);
}
