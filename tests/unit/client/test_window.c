/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control: how many packets of text are in flight, and whose. */
#include <engine.h>

#include "world.h"

static struct world *
world_of(uint32_t requests, uint32_t packets)
{
	const struct tokd_engine_config config = {.epoch = 77,
		.requests = requests,
		.packets = packets,
		.payload = TOKD_WIRE_PAYLOAD,
		.timeout_ns = 5000 * MS,
		.rto_least_ns = 5 * MS,
		.first_stream_id = 1000};

	return world_make(&config);
}

/* Sends a text of 64 packets; every `lose`-th is lost once. Returns the smallest window. */
static uint32_t
least_window(struct world *w, uint32_t lose)
{
	uint32_t least = UINT32_MAX;
	struct text t;

	text_begin(w, &t, 64 * TOKD_WIRE_PAYLOAD, 0, 0);
	(void)world_step(w);
	for (uint32_t i = w->n_wire; i-- > 0;) {
		const struct tokd_req *req = (const void *)w->wire[i].data;

		if (w->wire[i].to_server && req->packet % lose == lose - 1)
			w->wire[i] = w->wire[--w->n_wire];
	}
	while (tokd_engine_done(w->e) == NULL) {
		assert_true(world_step(w));
		least = w->e->window < least ? w->e->window : least;
	}
	text_right(&t);
	return least;
}

WORLD_TEST_IN(a_loss_halves_the_window_once_a_round_trip, world_of(1, 128))
{
	assert_int_equal(least_window(w, 65), 128);
	assert_int_equal(least_window(w, 20), 64);
	assert_in_range(least_window(w, 60), 32, 33);
}

/* Then it goes on as soon as it can. */
WORLD_TEST_IN(what_is_lost_again_and_again_leaves_two_packets, world_of(1, 128))
{
	struct text t;

	w->server.reply_every = 16;
	w->lose = 1000;
	text_begin(w, &t, 64 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->now < 3000 * MS)
		assert_true(world_step(w));
	assert_int_equal(w->e->window, 2);
	w->lose = 0;
	world_run(w, 1);
	assert_true(w->now < 3300 * MS);
	text_right(&t);
}

/*
 * What is sent again does not measure the round trip. The long time-out of what is sent first would
 * last until all of the text has arrived.
 */
WORLD_TEST_IN(what_is_sent_again_after_an_outage_is_missed_soon, world_of(1, 128))
{
	struct text t;
	uint64_t heard;

	w->lose = 1000;
	text_begin(w, &t, 64 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->now < 700 * MS)
		assert_true(world_step(w));
	w->lose = 0;
	while (t.r.arrived == 0)
		assert_true(world_step(w));
	heard = w->now;
	w->lose = 1000;
	while (w->n_wire > 0 || tokd_engine_next(w->e) < heard + 10 * MS)
		assert_true(world_step(w));
	w->lose = 0;
	world_run(w, 1);
	assert_true(w->now < heard + 30 * MS);
	text_right(&t);
}

/* Their packets would meet the same full queue. */
WORLD_TEST_IN(texts_that_time_out_together_do_not_do_so_again, world_of(4, 128))
{
	struct text t[4];

	w->lose = 1000;
	for (uint32_t i = 0; i < 4; i++)
		text_begin(w, &t[i], 10 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (t[3].r.asks == 0)
		assert_true(world_step(w));
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(t[i].r.asks, 1);
		assert_in_range(w->e->slot[i].deadline, 55 * MS, 66 * MS); /* 20 ms before */
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(
				w->e->slot[i].deadline * 10 / MS, w->e->slot[j].deadline * 10 / MS);
	}
	w->lose = 0;
	world_run(w, 4);
	for (uint32_t i = 0; i < 4; i++)
		text_right(&t[i]);
}

/* Texts without any loss: how long all take. */
static uint64_t
batch(struct world *w, uint32_t texts, uint32_t packets)
{
	static struct text t[64];
	const uint64_t begun = w->now;

	for (uint32_t i = 0; i < texts; i++)
		text_begin(w, &t[i], packets * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, texts);
	for (uint32_t i = 0; i < texts; i++)
		text_right(&t[i]);
	return w->now - begun;
}

/* At first the time-out is a guess, which is too short here. */
TEST(a_long_path_without_loss_keeps_the_window)
{
	static const uint32_t ms[] = {25, 50, 100, 200, 600};

	for (uint32_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		for (uint32_t packets = 3; packets <= 60; packets *= 20) {
			struct world *w = world_of(64, 256);

			w->delay = ms[i] * MS / 2;
			w->server.reply_every = 16;
			for (uint32_t n = 0; n < 3; n++)
				(void)batch(w, 240 / packets < 64 ? 240 / packets : 64, packets);
			for (uint32_t n = 0; n < 5; n++)
				assert_true(batch(w, 4, 60) < (ms[i] + 1) * MS);
			assert_int_equal(w->e->window, 256);
			world_free(w);
		}
	}
}

/* Each time after three of 100 ms that left the time-out at 101 ms. */
WORLD_TEST_IN(a_round_trip_that_is_longer_once_keeps_the_window, world_of(64, 256))
{
	w->server.reply_every = 16;
	for (uint32_t n = 0; n < 20; n++) {
		w->delay = (n % 4 == 3 ? 60 : 50) * MS;
		(void)batch(w, n % 8 < 4 ? 4 : 24, n % 8 < 4 ? 60 : 10);
		if (n >= 4)
			assert_int_equal(w->e->window, 256);
	}
}

/* A queue that grows does that. */
WORLD_TEST_IN(a_round_trip_far_above_the_least_lowers_the_window, world_of(64, 256))
{
	w->server.reply_every = 16;
	w->delay = MS;
	(void)batch(w, 4, 60);
	w->delay = 9 * MS;
	for (uint32_t n = 0; n < 3; n++)
		(void)batch(w, 4, 60);
	w->delay = 20 * MS;
	(void)batch(w, 4, 60);
	assert_in_range(w->e->window, 2, 135);
}

/* In one reply with those that were sent again, long after these. */
WORLD_TEST_IN(packets_that_were_given_up_and_arrive_keep_the_window, world_of(1, 256))
{
	struct tokd_rep rep = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.epoch = 77,
		.vocab = 5,
		.credit = TOKD_WIRE_WINDOW};
	struct text t;

	w->delay = 50 * MS;
	for (uint32_t n = 0; n < 3; n++)
		(void)batch(w, 1, 60);
	w->lose = 1000;
	text_begin(w, &t, 60 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->e->window > 64)
		assert_true(world_step(w));
	rep.stream_id = t.r.stream_id;
	rep.ack = 17;
	tokd_engine_take(w->e, &rep, sizeof(rep), w->now + 90 * MS);
	assert_int_equal(w->e->window, 256);
	text_free(&t);
}

/* What the appliance gets meanwhile it answers then. */
static void
stall(struct world *w, uint64_t ns, uint32_t texts, uint32_t packets)
{
	const uint64_t delay = w->delay, end = w->now + ns;
	static struct text t[64];

	for (uint32_t i = 0; i < texts; i++)
		text_begin(w, &t[i], packets * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->now < end) {
		w->delay = end + delay - w->now;
		assert_true(world_step(w));
	}
	w->delay = delay;
	w->lose = 0;
	world_run(w, texts);
	for (uint32_t i = 0; i < texts; i++)
		text_right(&t[i]);
}

WORLD_TEST_IN(an_appliance_that_stalls_costs_no_window, world_of(64, 256))
{
	w->server.reply_every = 16;
	w->delay = MS / 10;
	(void)batch(w, 1, 1);
	(void)batch(w, 16, 20);
	stall(w, 300 * MS, 16, 20);
	assert_int_equal(w->e->window, 256);
	stall(w, 300 * MS, 4, 60);
	assert_int_equal(w->e->window, 256);
}

WORLD_TEST_IN(what_time_outs_have_found_stays_found, world_of(64, 256))
{
	w->server.reply_every = 16;
	w->delay = 50 * MS;
	for (uint32_t n = 0; n < 3; n++)
		(void)batch(w, 4, 60);
	w->lose = 1000;
	stall(w, 300 * MS, 4, 60);
	assert_in_range(w->e->window, 2, 70);
	for (uint32_t n = 0; n < 3; n++)
		(void)batch(w, 4, 60);
	w->delay = 60 * MS;
	(void)batch(w, 4, 60);
	assert_in_range(w->e->window, 2, 100);
}

/* The first packet is lost, and all others are late. */
WORLD_TEST_IN(a_loss_among_late_packets_counts, world_of(64, 256))
{
	static struct text t[4];
	uint32_t i = 0;

	w->server.reply_every = 16;
	w->delay = 50 * MS;
	for (uint32_t n = 0; n < 3; n++)
		(void)batch(w, 4, 60);
	w->delay = 60 * MS;
	for (i = 0; i < 4; i++)
		text_begin(w, &t[i], 60 * TOKD_WIRE_PAYLOAD, 0, 0);
	(void)world_step(w);
	for (i = 0; w->wire[i].len == sizeof(struct tokd_req);)
		i++;
	w->wire[i] = w->wire[--w->n_wire];
	world_run(w, 4);
	assert_in_range(w->e->window, 2, 75);
	for (i = 0; i < 4; i++)
		text_right(&t[i]);
}

/* A full queue would have lengthened the round trip. */
WORLD_TEST_IN(a_silence_beside_a_short_round_trip_lowers_nothing, world_of(1, 128))
{
	struct text t;

	text_run(w, &t, 100, 0, 0);
	text_right(&t);
	w->lose = 1000;
	text_begin(w, &t, 64 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->now < 1000 * MS)
		assert_true(world_step(w));
	w->lose = 0;
	world_run(w, 1);
	assert_int_equal(w->e->window, 128);
	text_right(&t);
}

WORLD_TEST_IN(the_window_grows_by_a_packet_a_round_trip_up_to_the_limit, world_of(1, 9))
{
	struct text t;

	w->e->window = 4;
	text_run(w, &t, 4 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(w->e->window, 5);
	text_right(&t);
	text_run(w, &t, (5 + 6 + 7) * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(w->e->window, 8);
	assert_int_equal(w->most_text, 7);
	text_right(&t);
	text_run(w, &t, 100 * TOKD_WIRE_PAYLOAD, 0, 0);
	assert_int_equal(w->e->window, 9);
	assert_int_equal(w->most_text, 9);
	text_right(&t);
}

/* The appliance acknowledges every 16th packet, so below that the client has to ask. */
WORLD_TEST_IN(a_small_window_needs_no_time_outs, world_of(8, 3))
{
	struct text t[8];

	w->server.reply_every = 16;
	for (uint32_t i = 0; i < 8; i++)
		text_begin(w, &t[i], 50 * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, 8);
	assert_true(w->now < 8 * 50 / 2 * 2 * w->delay); /* two packets a round trip at least */
	assert_in_range(w->server.polls, 8 * 50 / 3, 8 * 50);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(t[i].r.retransmits + t[i].r.asks, 0);
		text_right(&t[i]);
	}
}

WORLD_TEST_IN(a_lost_packet_in_a_small_window_needs_no_time_out, world_of(1, 3))
{
	uint32_t lost = 0;
	struct text t;

	w->server.reply_every = 16;
	text_begin(w, &t, 40 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (tokd_engine_done(w->e) == NULL) {
		assert_true(world_step(w));
		for (uint32_t i = 0; i < w->n_wire && lost < 3; i++) {
			const struct tokd_req *req = (const void *)w->wire[i].data;

			if (w->wire[i].to_server && req->packet == 10 * lost + 5) {
				w->wire[i] = w->wire[--w->n_wire];
				lost++;
			}
		}
	}
	assert_int_equal(t.r.retransmits, 3);
	assert_int_equal(t.r.asks, 0);
	text_right(&t);
}

WORLD_TEST_IN(texts_that_wait_for_the_window_take_turns, world_of(2, 4))
{
	struct text t[2];

	for (uint32_t i = 0; i < 2; i++)
		text_begin(w, &t[i], 100 * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, 1);
	assert_int_equal(t[0].r.status, TOKD_OK);
	assert_in_range(t[1].r.arrived, 80, 99);
	world_run(w, 1);
	text_right(&t[0]);
	text_right(&t[1]);
}

/* Each waits for some 800 round trips of 8 ms, longer than the time limit. */
WORLD_TEST_IN(a_text_that_waits_its_turn_is_not_late, world_of(110, 2))
{
	static struct text t[110];

	w->delay = 4 * MS;
	text_run(w, &t[0], 1, 0, 0);
	text_right(&t[0]);
	w->now += 20000 * MS; /* nothing was asked meanwhile */
	for (uint32_t i = 0; i < 110; i++)
		text_begin(w, &t[i], 20 * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, 110);
	for (uint32_t i = 0; i < 110; i++) {
		assert_int_equal(t[i].r.retransmits + t[i].r.asks, 0);
		text_right(&t[i]);
	}
}

/* The same for one that another appliance has begun. */
WORLD_TEST_IN(a_text_that_moved_here_and_waits_its_turn_is_not_late, world_of(110, 2))
{
	static struct text t[110];

	w->delay = 4 * MS;
	text_run(w, &t[0], 1, 0, 0);
	text_right(&t[0]);
	for (uint32_t i = 0; i < 110; i++) {
		text_begin(w, &t[i], 20 * TOKD_WIRE_PAYLOAD, 0, 0);
		t[i].r.since = w->now;
	}
	world_run(w, 110);
	for (uint32_t i = 0; i < 110; i++)
		text_right(&t[i]);
}

/* Half of the texts have moved here. */
WORLD_TEST_IN(a_text_that_leaves_takes_no_wait_for_the_window_along, world_of(110, 2))
{
	static struct text t[110];
	uint32_t held = 0;

	w->delay = 4 * MS;
	text_run(w, &t[0], 1, 0, 0);
	text_right(&t[0]);
	for (uint32_t i = 0; i < 110; i++) {
		text_begin(w, &t[i], 40 * TOKD_WIRE_PAYLOAD, 0, 0);
		t[i].r.since = i % 2 ? w->now : 0;
	}
	while (w->now < 6000 * MS)
		assert_true(world_step(w));
	for (uint32_t i = 0; i < 110; i++)
		held += w->e->slot[t[i].r.slot].held_at != 0;
	assert_in_range(held, 20, 108);
	tokd_engine_fail_all(w->e, TOKD_E_NET, 111);
	for (uint32_t i = 0; i < 110; i++) {
		if (t[i].r.since != 0)
			assert_true(w->now - t[i].r.since < 100 * MS);
		text_free(&t[i]);
	}
}

/* The appliance is silent for 5.1 s after the first text has begun. */
WORLD_TEST_IN(a_text_that_begins_late_in_a_silence_has_its_time, world_of(40, 256))
{
	static struct text t[40];

	w->delay = 4 * MS;
	text_run(w, &t[0], 1, 0, 0);
	text_right(&t[0]);
	w->lose = 1000;
	text_begin(w, &t[0], 16 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->now < 4900 * MS)
		assert_true(world_step(w));
	for (uint32_t i = 1; i < 40; i++)
		text_begin(w, &t[i], 4 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (w->now < 5100 * MS)
		assert_true(world_step(w));
	w->lose = 0;
	world_run(w, 40);
	assert_int_equal(t[0].r.status, TOKD_E_TIMEOUT);
	text_free(&t[0]);
	for (uint32_t i = 1; i < 40; i++)
		text_right(&t[i]);
}

/* What it has waited until a VALIDATE, which is progress, does not lengthen its time limit. */
WORLD_TEST_IN(a_validate_ends_the_wait_for_the_window, world_of(20, 2))
{
	static struct text t[20];
	struct slot *s = w->e->slot;

	w->delay = 4 * MS;
	for (uint32_t i = 0; i < 20; i++)
		text_begin(w, &t[i], 20 * TOKD_WIRE_PAYLOAD, 0, 0);
	while (s->held_at == 0)
		assert_true(world_step(w));
	w->now += 100 * MS;
	w->server.cookie = 7;
	const struct tokd_rep rep = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.flags = TOKD_F_FAIL,
		.reason = TOKD_R_VALIDATE,
		.epoch = 77,
		.stream_id = s->stream_id,
		.ack = s->ack,
		.cookie = 7};
	tokd_engine_take(w->e, &rep, sizeof(rep), w->now);
	while (in_flight(s) == 0)
		assert_true(world_step(w));
	assert_true(s->moved_at <= w->now);
	world_run(w, 20);
	for (uint32_t i = 0; i < 20; i++)
		text_right(&t[i]);
}

/* Those that wait for the window do not have their turns first. */
WORLD_TEST_IN(all_texts_to_a_dead_appliance_fail_within_twice_the_limit, world_of(300, 256))
{
	static struct text t[300];

	w->lose = 1000;
	for (uint32_t i = 0; i < 300; i++)
		text_begin(w, &t[i], (i % 2 + 1) * 30 * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, 300);
	assert_true(w->now < 10000 * MS);
	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(t[i].r.status, TOKD_E_TIMEOUT);
		text_free(&t[i]);
	}
}

/* A caller that does not take its answer leaves nothing to make progress. */
WORLD_TEST_IN(texts_that_begin_long_after_the_latest_progress_have_their_time, world_of(21, 256))
{
	static struct text answer, t[20];

	w->delay = 15 * MS;
	prompt_begin(w, &answer, 100, TOKD_GENERATE_MOST, 0);
	while (w->now < 20000 * MS)
		assert_true(world_step(w));
	for (uint32_t i = 0; i < 20; i++)
		text_begin(w, &t[i], 16 * TOKD_WIRE_PAYLOAD, 0, 0);
	w->lose = 1000;
	while (w->now < 20400 * MS)
		assert_true(world_step(w));
	w->lose = 0;
	world_run(w, 20);
	for (uint32_t i = 0; i < 20; i++)
		text_right(&t[i]);
	text_free(&answer);
}

WORLD_TEST_IN(a_time_out_that_was_backed_off_does_not_last, world_of(2, 128))
{
	struct tokd_packet lost;
	struct text t[2];

	w->e->rto = 1000 * MS;
	text_begin(w, &t[0], 100, 0, 0);
	assert_int_equal(tokd_engine_packets(w->e, &lost, 1, w->now), 1);
	text_begin(w, &t[1], 100, 0, 0);
	world_run(w, 2);
	assert_true(w->now < 10 * MS);
	text_right(&t[0]);
	text_right(&t[1]);
}

WORLD_TEST_IN(a_text_without_credit_leaves_the_window_to_others, world_of(2, 8))
{
	struct text t[2];

	w->server.window = 0;
	text_begin(w, &t[0], 10 * TOKD_WIRE_PAYLOAD, 0, 0);
	do
		assert_true(world_step(w));
	while (w->n_wire > 0);
	w->server.window = TOKD_WIRE_WINDOW;
	text_begin(w, &t[1], 10 * TOKD_WIRE_PAYLOAD, 0, 0);
	world_run(w, 1);
	assert_int_equal(t[0].r.status, TOKD_PENDING);
	assert_true(w->now < MS);
	text_right(&t[1]);
	world_run(w, 1);
	assert_int_equal(w->e->window, 8); /* nothing was lost on the way */
	text_right(&t[0]);
}

/*
 * Packets that followed the refused one have begun the text. Sent again in a small window, fewer
 * have been sent than are acknowledged.
 */
WORLD_TEST_IN(a_text_that_began_behind_a_validate_goes_on, world_of(1, 128))
{
	struct text t;

	w->server.cookie = 7;
	text_begin(w, &t, 100 * TOKD_WIRE_PAYLOAD, 0, 0);
	(void)world_step(w);
	assert_int_equal(w->server.validates, 1);
	w->server.cookie = 0;
	while (w->e->cookie == 0)
		assert_true(world_step(w));
	w->e->window = 2;
	world_run(w, 1);
	assert_true(w->now < 5 * MS);
	text_right(&t);
}

/* The path grows meanwhile: what was cut for the smaller one is not cut again. */
WORLD_TEST_IN(a_text_that_has_begun_keeps_its_packets_when_the_path_grows, world_of(1, 128))
{
	struct text t;

	w->server.cookie = 7;
	text_begin(w, &t, 100 * TOKD_WIRE_PAYLOAD, 0, 0);
	(void)world_step(w);
	w->server.cookie = 0;
	tokd_engine_path(w->e, 3 * TOKD_WIRE_PAYLOAD, TOKD_WIRE_PAYLOAD, w->now);
	world_run(w, 1);
	assert_int_equal(t.r.packets, 100);
	text_right(&t);
}
