/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose text is fed next: order, charge, what is held, what is refused. */
#include "fixture.h"

#define TICKS 16000 /* of a turn: slices of 2000, quanta of 1000 */
#define SMALL RTE_IPV4(10, 0, 0, 77)

static struct tokd_drr drr;

/* A turn of a worker that was only idle or tokenized; `given`: ticks since it began. */
static void
turn_at(uint64_t given)
{
	tokd_drr_turn(&drr, TICKS, given, given - drr.took, UINT64_MAX);
}

static void
begin_shared(void)
{
	tokd_drr_init(&drr);
	drr.n_last = 3;
	turn_at(101);
	assert_true(drr.shared);
}

/* It is served once, for `ticks`. */
static struct tokd_flow *
serve(uint64_t ticks)
{
	struct tokd_flow *f = tokd_drr_next(&drr);

	if (f != NULL)
		tokd_drr_charge(&drr, f, ticks);
	return f;
}

TEST(drr_sources_get_the_same_time_whatever_a_piece_costs)
{
	static const uint64_t cost[] = {10, 700, 5000};
	struct tokd_flow flow[RTE_DIM(cost)] = {0};
	uint64_t took[RTE_DIM(cost)] = {0}, least = UINT64_MAX, most = 0;

	begin_shared();
	for (uint32_t i = 0; i < RTE_DIM(cost); i++)
		tokd_drr_wait(&drr, &flow[i]);
	for (uint32_t n = 0; n < 100000; n++) {
		const uint64_t i = (uint64_t)(tokd_drr_next(&drr) - flow);

		tokd_drr_charge(&drr, &flow[i], cost[i]);
		took[i] += cost[i];
	}
	for (uint32_t i = 0; i < RTE_DIM(cost); i++) {
		least = RTE_MIN(least, took[i]);
		most = RTE_MAX(most, took[i]);
		tokd_drr_leave(&drr, &flow[i]);
	}
	assert_true(least > 100000);
	assert_in_range(most - least, 0, 4 * 1000 + 2 * 5000);
	assert_null(tokd_drr_next(&drr));
}

TEST(drr_a_source_that_is_alone_gets_all_the_time)
{
	struct tokd_flow flow = {0};

	tokd_drr_init(&drr);
	tokd_drr_turn(&drr, TICKS, 1000000, 0, 10);
	assert_int_equal(drr.slice, TICKS);
	tokd_drr_charge(&drr, &flow, 100 * TICKS);
	assert_true(tokd_drr_may_take(&drr, &flow));
	tokd_drr_wait(&drr, &flow);
	for (uint32_t i = 0; i < 100; i++)
		assert_ptr_equal(serve(TICKS), &flow);
}

TEST(drr_who_takes_less_than_half_of_its_share_is_served_first)
{
	struct tokd_flow heavy[2] = {0}, light = {0};

	begin_shared();
	for (uint32_t i = 0; i < RTE_DIM(heavy); i++)
		tokd_drr_charge(&drr, &heavy[i], 2000); /* a new source has a quantum */
	for (uint32_t i = 0; i < RTE_DIM(heavy); i++)
		tokd_drr_wait(&drr, &heavy[i]);
	assert_true(tokd_drr_may_take(&drr, &light)); /* at once: it does not wait */
	tokd_drr_charge(&drr, &light, 100);
	tokd_drr_wait(&drr, &light);
	assert_ptr_equal(serve(100), &light);
	assert_ptr_equal(serve(1000), &light);
	assert_ptr_not_equal(serve(1), &light); /* now it is heavy, too */
	tokd_drr_leave(&drr, &light);
	turn_at(101 + drr.fill / 2);
	assert_false(tokd_drr_may_take(&drr, &light));
	assert_in_range(light.saved, TICKS / 2 - 1, TICKS / 2);
	turn_at(101 + 2 * drr.fill);
	assert_true(tokd_drr_may_take(&drr, &light));
	assert_int_equal(light.saved, TICKS);
}

TEST(drr_light_sources_leave_heavy_ones_half_of_the_time)
{
	struct tokd_flow heavy = {0}, light[100] = {0};
	uint32_t n_heavy = 0;

	begin_shared();
	tokd_drr_charge(&drr, &heavy, 2000);
	tokd_drr_wait(&drr, &heavy);
	for (uint32_t i = 0; i < RTE_DIM(light); i++) {
		light[i] = (struct tokd_flow){.saved = TICKS / 2, .at_saved = 101};
		tokd_drr_wait(&drr, &light[i]);
	}
	for (uint32_t i = 0; i < 20; i++)
		n_heavy += serve(900) == &heavy;
	assert_in_range(n_heavy, 8, 12);
}

/* Else all would be light, and nobody refused, where frames take most of the time. */
TEST(drr_of_sources_that_take_all_alike_none_is_light_however_little_it_takes)
{
	struct tokd_flow flow[3] = {0};

	begin_shared();
	for (uint64_t now = 1000; now < 100 * drr.fill; now += 1000) {
		tokd_drr_turn(&drr, TICKS, now, 0, UINT64_MAX);
		for (uint32_t i = 0; i < RTE_DIM(flow); i++)
			tokd_drr_charge(&drr, &flow[i], 10);
	}
	for (uint32_t i = 0; i < RTE_DIM(flow); i++)
		assert_true(flow[i].heavy);
}

TEST(drr_a_rested_source_is_refused_last)
{
	struct tokd_flow light[2] = {
		{.saved = TICKS / 2, .at_saved = 101}, {.saved = TICKS / 2, .at_saved = 101}};
	struct tokd_flow rested = {.saved = TICKS, .at_saved = 101};

	begin_shared();
	drr.ticks = 10;
	assert_int_equal(tokd_drr_delay(&drr, &rested), 0);
	tokd_drr_wait(&drr, &light[0]);
	tokd_drr_count(&drr, &light[0], 4);
	assert_int_equal(tokd_drr_delay(&drr, &light[1]), 4 * 10);
	assert_int_equal(tokd_drr_delay(&drr, &rested), 2 * 10);
}

TEST(drr_a_wait_counts_what_frames_take)
{
	struct tokd_flow f = {0};

	begin_shared();
	drr.ticks = 10;
	tokd_drr_charge(&drr, &f, 2000);
	tokd_drr_wait(&drr, &f);
	tokd_drr_count(&drr, &f, 1);
	assert_int_equal(tokd_drr_delay(&drr, &f), 5 * 10);
	for (uint32_t i = 0; i < 100;
		i++) { /* three times what the tokenizer has, and idle ticks */
		const uint64_t idle = i * TICKS;

		tokd_drr_turn(&drr, TICKS, 3 * drr.took + idle, idle, UINT64_MAX);
		tokd_drr_charge(&drr, &f, 2 * TICKS);
	}
	f.heavy = true;
	assert_in_range(tokd_drr_delay(&drr, &f), 5 * 28, 5 * 30);
	/* One pause of the machine hardly counts. */
	tokd_drr_turn(&drr, TICKS, UINT64_C(1) << 50, 99 * TICKS, UINT64_MAX);
	assert_in_range(tokd_drr_delay(&drr, &f), 5 * 30, 5 * 40);
}

TEST(drr_a_pause_of_the_machine_is_not_owed_for_long)
{
	struct tokd_flow flow[2] = {0};

	begin_shared();
	for (uint32_t i = 0; i < RTE_DIM(flow); i++) {
		tokd_drr_wait(&drr, &flow[i]);
		tokd_drr_charge(&drr, &flow[i], UINT64_C(1) << 40);
		assert_int_equal(flow[i].credit, (1 - TOKD_DRR_OWED) * drr.quantum);
	}
}

TEST(drr_retry_times_of_a_source_follow_each_other)
{
	struct tokd_flow f = {.ticks = 500};

	begin_shared();
	drr.ticks = 10;
	tokd_drr_charge(&drr, &f, 2000);
	tokd_drr_wait(&drr, &f);
	tokd_drr_count(&drr, &f, 3);
	assert_int_equal(tokd_drr_delay(&drr, &f), (3 + 4 * 3) * 10);
	assert_int_equal(tokd_drr_retry(&drr, &f, 2000), 150);
	assert_int_equal(tokd_drr_retry(&drr, &f, 2000), 150 + 500 * 3 / 2);
	assert_int_equal(tokd_drr_retry(&drr, &f, 2000), 150 + 2 * 500 * 3 / 2);
	for (uint32_t i = 0; i < 10; i++)
		assert_in_range(tokd_drr_retry(&drr, &f, 2000), 0, 2000);
}

/* ---- the worker ---- */

static uint8_t text[40 * 1400];

/* Two sources are at work: the default one, and SMALL. */
static void
share(void)
{
	fx->w.drr.n_last = 1 << 30; /* and more, so that an allowance hardly fills */
	fx->w.drr.t_period = rte_rdtsc();
	fx->w.tsc_hz = UINT64_MAX / 2; /* and this is not forgotten */
}

static void
put_text(uint32_t ip, uint64_t stream, uint32_t n)
{
	for (uint32_t i = 0; i < text_packets(n, 1400); i++) {
		struct request r = text_packet(stream, text, n, 1400, 0, i);

		r.ip = ip;
		send_request(r);
	}
}

static bool
is_done(uint64_t stream)
{
	struct reply r;
	bool done = false;

	while (next_reply(&r))
		done |= r.rep.stream_id == stream && r.rep.flags & TOKD_F_DONE;
	return done;
}

FIXTURE_TEST(drr_a_small_source_is_answered_in_its_turn)
{
	fx->w.feed_ticks = 1; /* a piece a turn */
	make_text(text, sizeof(text), 1);
	put_text(0, 1, sizeof(text));
	tokd_worker_turn(&fx->w);
	for (uint32_t i = 2; i < 10; i++) {
		put_text(SMALL, i, 5);
		tokd_worker_turn(&fx->w);
		tokd_worker_turn(&fx->w);
		assert_true(is_done(i));
	}
	assert_true(tokd_drr_waits(&fx->w.drr)); /* the long text */
	run();
	expect_text(1, text, sizeof(text));
	expect_count(C_DROP_HELD, 0);
}

FIXTURE_TEST(drr_a_source_never_holds_what_is_left_for_others)
{
	struct request r;

	fx->w.held_max = 12;
	share();
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t packet = 1; packet < 12; packet++) {
			r = data_request(1, packet, packet, "x", 1, 0);
			r.ip = i == 0 ? 0 : SMALL;
			send_request(r);
		}
		tokd_worker_turn(&fx->w);
		assert_int_equal(fx->w.n_held, i == 0 ? 4 : 7); /* a third; of the rest, the same */
	}
	expect_count(C_DROP_HELD, 22 - 7);
	for (uint32_t i = 0; i < 2; i++) { /* what they wait for is fed */
		r = data_request(1, 0, 0, "x", 1, 0);
		r.ip = i == 0 ? 0 : SMALL;
		send_request(r);
	}
	tokd_worker_turn(&fx->w);
	assert_int_equal(fx->w.n_held, 0);
	drain();
}

FIXTURE_TEST(drr_a_source_with_too_much_waiting_is_told_when_to_try_again)
{
	struct reply rep;

	share();
	fx->w.feed_ticks = 1;
	fx->w.delay_most = 1;
	make_text(text, sizeof(text), 1);
	put_text(0, 1, 20 * 1400);
	for (uint32_t i = 0; i < 3; i++)
		tokd_worker_turn(&fx->w);
	drain();
	put_text(0, 2, 5);
	put_text(SMALL, 3, 5);
	tokd_worker_turn(&fx->w);
	while (next_reply(&rep)) {
		if (rep.rep.stream_id != 2)
			continue;
		assert_int_equal(rep.rep.reason, TOKD_R_BUSY);
		assert_in_range(rep.rep.retry_ms, 1, 1000);
	}
	expect_count(C_DROP_BACKLOG, 1);
	run();
	expect_text(3, text, 5);
	expect_count(C_STREAMS_DONE, 2);
}

static void
say_that_others_wait(uint32_t packets)
{
	struct tokd_drr *d = &fx->w.drr;

	d->waiting[TOKD_FLOW_LIGHT] = d->waiting[TOKD_FLOW_HEAVY] = packets;
	d->ticks = fx->w.delay_most;
}

static void
expect_busy(uint64_t stream)
{
	const struct reply r = expect_reply();

	assert_int_equal(r.rep.reason, TOKD_R_BUSY);
	assert_int_equal(r.rep.stream_id, stream);
	expect_nothing();
}

FIXTURE_TEST(drr_what_follows_a_refused_packet_is_dropped_unread_until_the_text_is_accepted)
{
	struct request r;
	struct frame f;

	share();
	say_that_others_wait(100);
	make_text(text, 2000, 1);
	put_text(0, 1, 2000);
	tokd_worker_turn(&fx->w);
	expect_busy(1);
	expect_count(C_DROP_BACKLOG, 2);
	r = text_packet(1, text, 2000, 1400, 0, 1);
	f = make_frame(r);
	f.udp->dgram_cksum ^= 1;
	put(f.m);
	tokd_worker_turn(&fx->w);
	expect_nothing();
	expect_count(C_DROP_BACKLOG, 3);
	expect_count(C_DROP_UDP_CKSUM, 0);
	/* Not for another one who reads the wire, nor for other texts of the client. */
	f = make_frame(r);
	f.eth->src_addr.addr_bytes[5]++;
	seal_frame(&f);
	put(f.m);
	tokd_worker_turn(&fx->w);
	assert_int_equal(drain(), 1);
	r.req.stream_id = 2;
	send_request(r);
	tokd_worker_turn(&fx->w);
	expect_busy(2);

	say_that_others_wait(0); /* before the time that it was told */
	put_text(0, 1, 2000);
	tokd_worker_turn(&fx->w);
	assert_true(is_done(1));
	expect_text(1, text, 2000);
	expect_count(C_DROP_BACKLOG, 5);
}

FIXTURE_TEST(drr_half_of_the_wait_is_for_validated_sources)
{
	struct request r = text_packet(1, "hello", 5, 100, 0, 0);
	struct reply rep;

	fx->validated = false;
	share();
	say_that_others_wait(1);
	fx->w.drr.ticks = fx->w.delay_most * 3 / 8; /* two packets: three quarters of the limit */
	send_request(r);
	tokd_worker_turn(&fx->w);
	rep = expect_reply();
	assert_int_equal(rep.rep.reason, TOKD_R_VALIDATE);
	expect_count(C_DROP_VALIDATE, 1);
	r.req.cookie = rep.rep.cookie;
	send_request(r);
	tokd_worker_turn(&fx->w);
	assert_true(is_done(1));
	put_text(0, 2, 5); /* without a cookie: its source is known */
	tokd_worker_turn(&fx->w);
	assert_true(is_done(2));
	say_that_others_wait(100);
	put_text(0, 3, 5);
	tokd_worker_turn(&fx->w);
	expect_busy(3);
}

FIXTURE_TEST(drr_a_text_without_a_cookie_is_answered_once_and_passes_with_one)
{
	struct request r;
	struct reply rep;

	fx->validated = false;
	share();
	say_that_others_wait(1);
	fx->w.drr.ticks = fx->w.delay_most * 3 / 8; /* as above */
	make_text(text, 2000, 1);
	put_text(0, 1, 2000);
	tokd_worker_turn(&fx->w);
	rep = expect_reply();
	assert_int_equal(rep.rep.reason, TOKD_R_VALIDATE);
	expect_nothing();
	expect_count(C_DROP_VALIDATE, 1);
	expect_count(C_DROP_BACKLOG, 1);
	r = text_packet(1, text, 2000, 1400, 0, 0); /* its client did not get the answer */
	send_request(r);
	tokd_worker_turn(&fx->w);
	assert_int_equal(expect_reply().rep.reason, TOKD_R_VALIDATE);
	for (uint32_t packet = 2; packet-- > 0;) { /* the first one comes last */
		r = text_packet(1, text, 2000, 1400, 0, packet);
		r.req.cookie = rep.rep.cookie;
		send_request(r);
	}
	tokd_worker_turn(&fx->w);
	assert_true(is_done(1));
	expect_text(1, text, 2000);
	expect_count(C_DROP_BACKLOG, 1);
}

FIXTURE_TEST(drr_forged_texts_push_out_none_that_was_told_to_come_later)
{
	struct request r;

	share();
	say_that_others_wait(100);
	make_text(text, 2000, 1);
	put_text(0, 1, 2000);
	tokd_worker_turn(&fx->w);
	expect_busy(1);
	fx->validated = false;
	for (uint32_t i = 0; i < 2000; i++) {
		r = text_packet(2 + i, text, 2000, 1400, 0, 0);
		r.ip = SMALL;
		send_request(r);
		tokd_worker_turn(&fx->w);
		assert_int_equal(expect_reply().rep.reason, TOKD_R_VALIDATE);
	}
	fx->validated = true;
	send_request(text_packet(1, text, 2000, 1400, 0, 1));
	tokd_worker_turn(&fx->w);
	expect_nothing();
	expect_count(C_DROP_BACKLOG, 3);
}

/* All of its texts behind a gap would else keep its next ones out. */
FIXTURE_TEST(drr_what_waits_for_its_client_delays_no_other_text)
{
	const struct tokd_addr client = tokd_addr_v4(RTE_BE32(RTE_IPV4(10, 0, 0, 2)));
	struct tokd_flow *f;

	share();
	for (uint32_t packet = 1; packet < 6; packet++)
		send_request(data_request(1, packet, packet, "x", 1, 0));
	tokd_worker_turn(&fx->w);
	f = &tokd_source_find(&fx->w, &client)->flow;
	assert_int_equal(f->held, 5);
	f->heavy = true;
	fx->w.drr.ticks = fx->w.delay_most;
	put_text(0, 2, 5);
	tokd_worker_turn(&fx->w);
	assert_true(is_done(2));
	expect_count(C_DROP_BACKLOG, 0);
}

FIXTURE_TEST(drr_who_asks_for_a_packet_that_waits_is_told_to_wait)
{
	struct request r;
	struct reply rep;

	fx->w.feed_ticks = 0;
	make_text(text, sizeof(text), 1);
	r = text_packet(1, text, 100, 1400, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		send_request(r);
		tokd_worker_turn(&fx->w);
	}
	rep = expect_reply();
	assert_int_equal(rep.rep.ack, 0);
	assert_int_equal(rep.rep.credit, 0);
	fx->w.feed_ticks = UINT64_MAX;
	tokd_worker_turn(&fx->w);
	rep = expect_reply();
	assert_true(rep.rep.flags & TOKD_F_DONE);
	expect_text(1, text, 100);
}

FIXTURE_TEST(drr_who_only_waits_gets_no_reply)
{
	fx->w.feed_ticks = 0;
	make_text(text, 2000, 1);
	put_text(0, 1, 2000);
	tokd_worker_turn(&fx->w);
	expect_count(C_FEED_DEFERRED, 1);
	expect_nothing();
	fx->w.feed_ticks = UINT64_MAX;
	tokd_worker_turn(&fx->w);
	assert_true(is_done(1));
	expect_text(1, text, 2000);
}

/* 64 packets are all bits of the word that says which are held. */
FIXTURE_TEST(drr_a_whole_window_of_small_packets_is_fed_at_once)
{
	const uint32_t n = 100 + TOKD_WIRE_WINDOW;
	struct request r;

	fx->w.feed_ticks = UINT64_MAX; /* what is fast is fed several packets at a time */
	make_text(text, n + 1, 1);
	send_request(data_request(1, 0, 0, text, 100, 0));
	tokd_worker_turn(&fx->w);
	fx->w.feed_ticks = 0;
	for (uint32_t at = 100; at < n; at++)
		send_request(data_request(1, at - 99, at, text + at, 1, 0));
	for (uint32_t i = 0; i < 2; i++)
		tokd_worker_turn(&fx->w);
	assert_int_equal(fx->w.n_held, TOKD_WIRE_WINDOW);
	fx->w.feed_ticks = UINT64_MAX;
	tokd_worker_turn(&fx->w);
	assert_int_equal(fx->w.n_held, 0);
	r = text_packet(1, text, n + 1, n, 0, 1);
	r.req.packet = 1 + TOKD_WIRE_WINDOW;
	send_request(r);
	tokd_worker_turn(&fx->w);
	assert_true(is_done(1));
	expect_text(1, text, n + 1);
}
