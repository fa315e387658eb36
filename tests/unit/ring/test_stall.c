/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers that hold a full ring, and those that only seem to. */
#include <string.h>
#include <sys/socket.h>

#include <monotonic.h>

#include "clock.h"
#include "fixture.h"
#include "datapath/token_ring_write.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

#define RECORD 1024

uint64_t clock_tsc = UINT64_C(1) << 40;

static bool
publish_one(struct tokd_ring *r)
{
	uint64_t pos = tokd_ring_reserve(r, RECORD);

	if (pos == TOKD_RING_FULL)
		return false;
	memset(tokd_ring_at(r, pos), 0, sizeof(struct tokd_rec));
	tokd_ring_at(r, pos)->count = (RECORD - sizeof(struct tokd_rec)) / 4;
	tokd_ring_publish(r, pos, TOKD_REC_TOKENS);
	return true;
}

static void
fill(struct tokd_ring *r)
{
	/* Without readers it is never full. */
	for (uint32_t i = 0; i < RING_BYTES / RECORD && publish_one(r); i++)
		;
}

static void
set_cursor(struct reader *r, uint32_t w, uint64_t pos)
{
	__atomic_store_n(&r->cursor[w * TOKD_CURSOR_STRIDE / 8], pos, __ATOMIC_RELEASE);
}

/* Closed, after the reason why. */
static bool
is_closed(const struct reader *r)
{
	struct tokd_attach_rep rep;
	char byte;

	if (recv(r->fd, &rep, sizeof(rep), MSG_DONTWAIT) < 0)
		return false;
	assert_int_equal(rep.magic, TOKD_ATTACH_MAGIC);
	assert_int_equal(rep.n_rings, 0);
	assert_non_null(strstr(rep.message, "worker 1 full for 100 ms of 100 s: read faster"));
	assert_int_equal(recv(r->fd, &byte, 1, MSG_DONTWAIT), 0);
	return true;
}

static uint64_t
now_ms(const struct fixture *f)
{
	return clock_tsc / f->a.tsc_per_ms;
}

/* Turn for `ms`, asking for room in ring 1 all the while, as a worker with text does. */
static void
press_for(struct fixture *f, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i++) {
		turn(f, true);
		fill(f->ring[1]);
		clock_tsc += f->a.tsc_per_ms;
	}
}

/* Press until n readers were dropped. Returns the ms that this took. */
static uint64_t
press_until_dropped(struct fixture *f, uint64_t n)
{
	const uint64_t t0 = now_ms(f);

	while (f->a.counts.dropped < n && now_ms(f) - t0 < 20 * READER_TIMEOUT_MS)
		press_for(f, 1);
	assert_int_equal(f->a.counts.dropped, n);
	return now_ms(f) - t0;
}

FIXTURE_TEST(that_lags_is_told_by_ring_and_by_reader)
{
	struct tokd_reader_info info[TOKD_READERS_MAX];
	struct tokd_attach_counts counts;
	uint64_t held[N_RINGS] = {1, 1, 1};
	struct reader slow, fast;

	publish_one(f->ring[0]);
	tokd_attach_held(&f->a, held);
	assert_int_equal(held[0], 0); /* nobody waits for it */
	attach(f, &slow);
	attach(f, &fast);
	for (uint32_t i = 0; i < 3; i++)
		publish_one(f->ring[1]);
	publish_one(f->ring[2]);
	set_cursor(&fast, 1, 3 * RECORD);
	set_cursor(&slow, 1, RECORD);
	tokd_attach_held(&f->a, held);
	assert_int_equal(held[0], 0);
	assert_int_equal(held[1], 2 * RECORD);
	assert_int_equal(held[2], RECORD);
	assert_int_equal(tokd_attach_list(&f->a, info, TOKD_READERS_MAX, &counts), 2);
	assert_int_equal(info[0].lag_bytes, 2 * RECORD);
	assert_int_equal(info[0].lag_ring, 1);
	assert_int_equal(info[1].lag_bytes, RECORD);
	assert_int_equal(info[1].lag_ring, 2);
	detach(&slow);
	detach(&fast);
	assert_true(turn_until(f, true, nobody_attached));
	tokd_attach_held(&f->a, held);
	assert_int_equal(held[1], 0);
}

FIXTURE_TEST(that_holds_a_full_ring_is_dropped_after_the_timeout)
{
	struct reader r;

	attach(f, &r);
	fill(f->ring[1]);
	assert_int_equal(f->ring[1]->head, RING_BYTES);
	assert_true(press_until_dropped(f, 1) >= READER_TIMEOUT_MS);
	assert_true(is_closed(&r));
	assert_true(turn_until(f, true, nobody_attached));
	assert_true(publish_one(f->ring[1]));
	assert_int_equal(f->a.counts.detached, 0);
	detach(&r);
}

/* Time passes for what a reader has held. */
static void
rest(struct fixture *f, uint64_t ms)
{
	f->ring[1]->reader[0].held_at -= ms * f->a.tsc_per_ms;
}

FIXTURE_TEST(that_is_slow_now_and_then_is_not_dropped)
{
	struct reader r;

	attach(f, &r);
	for (int i = 0; i < 8; i++) {
		press_for(f, READER_TIMEOUT_MS / 2);
		set_cursor(&r, 1, r.hdr[1]->head);
		turn(f, true);
		rest(f, TOKD_HOLD_WINDOW_MS / 2);
	}
	assert_int_equal(f->a.counts.dropped, 0);
	assert_false(is_closed(&r));
	detach(&r);
}

/* Whether it moves on meanwhile or not: what counts is how long others wait for it. */
FIXTURE_TEST(that_trickles_is_dropped)
{
	const uint64_t t0 = now_ms(f);
	struct reader r;

	attach(f, &r);
	for (uint64_t i = 1; i <= 40 && f->a.counts.dropped == 0; i++) {
		press_for(f, READER_TIMEOUT_MS / 10);
		set_cursor(&r, 1, i * RECORD);
	}
	assert_int_equal(f->a.counts.dropped, 1);
	assert_true(now_ms(f) - t0 >= READER_TIMEOUT_MS);
	assert_true(is_closed(&r));
	detach(&r);
}

FIXTURE_TEST(that_keeps_up_is_not_blamed_for_another)
{
	struct reader slow, fast;

	attach(f, &slow);
	attach(f, &fast);
	for (int i = 0; i < READER_TIMEOUT_MS * 3; i++) {
		press_for(f, 1);
		set_cursor(&fast, 1, fast.hdr[1]->head);
	}
	assert_int_equal(f->a.counts.dropped, 1);
	assert_true(is_closed(&slow));
	assert_false(is_closed(&fast));
	detach(&slow);
	detach(&fast);
}

FIXTURE_TEST(that_comes_next_has_its_own_time)
{
	struct reader first, second;

	attach(f, &first);
	attach(f, &second);
	fill(f->ring[1]);
	set_cursor(&second, 1, RECORD); /* a little less behind */
	press_until_dropped(f, 1);
	assert_true(is_closed(&first));
	assert_false(is_closed(&second));
	assert_true(press_until_dropped(f, 2) >= READER_TIMEOUT_MS / 2);
	detach(&first);
	detach(&second);
}

/* A reader that comes and goes must not win time for the one that stalls. */
FIXTURE_TEST(that_stalls_while_others_come_and_go_is_dropped)
{
	struct reader stalled, other;
	const uint64_t t0 = now_ms(f);

	attach(f, &stalled);
	while (f->a.counts.dropped == 0 && now_ms(f) - t0 < READER_TIMEOUT_MS * 20) {
		if (!try_attach(f, &other)) /* the stalled one was dropped just now */
			break;
		press_for(f, READER_TIMEOUT_MS / 5);
		detach(&other);
		press_for(f, 5);
	}
	assert_int_equal(f->a.counts.dropped, 1);
	assert_true(is_closed(&stalled));
	assert_true(now_ms(f) - t0 < READER_TIMEOUT_MS * 4);
	detach(&stalled);
}

/* Two slow readers that alternate as the slowest hold the ring as one slow reader would. */
FIXTURE_TEST(that_take_turns_being_slowest_are_dropped)
{
	struct reader r[2];

	attach(f, &r[0]);
	attach(f, &r[1]);
	for (uint64_t i = 1; i <= 20; i++) {
		press_for(f, READER_TIMEOUT_MS / 4);
		set_cursor(&r[i % 2], 1, i * 32); /* inside the first record */
	}
	assert_int_equal(f->a.counts.dropped, 2);
	detach(&r[0]);
	detach(&r[1]);
}

/* A limit of the whole window is on how long it stands still, not on being last. */
FIXTURE_TEST(that_always_moves_on_is_waited_for_with_the_longest_limit)
{
	struct reader r;

	f->a.reader_timeout_ms = f->ring[1]->hold_ms = TOKD_HOLD_WINDOW_MS;
	attach(f, &r);
	for (uint64_t i = 1; i <= 30; i++) {
		press_for(f, READER_TIMEOUT_MS / 4);
		set_cursor(&r, 1, i * RECORD);
	}
	assert_int_equal(f->a.counts.dropped, 0);
	detach(&r);
}

FIXTURE_TEST(that_lies_about_its_cursor_harms_only_itself)
{
	struct reader r;

	attach(f, &r);
	set_cursor(&r, 1, UINT64_MAX); /* taken as the head */
	for (int i = 0; i < 200; i++)
		assert_true(publish_one(f->ring[1]));
	set_cursor(&r, 1, 0); /* it cannot go back */
	assert_true(publish_one(f->ring[1]));
	assert_true(f->ring[1]->hdr->tail <= f->ring[1]->hdr->head);
	assert_true(f->ring[1]->hdr->head - f->ring[1]->hdr->tail <= RING_BYTES);
	detach(&r);
}

FIXTURE_TEST(that_was_dropped_is_refused_for_a_while)
{
	struct tokd_drops *d = &f->a.drops[0];
	struct reader r;

	attach(f, &r);
	fill(f->ring[1]);
	press_until_dropped(f, 1);
	detach(&r);
	assert_int_equal(d->n, 1);
	d->until_ms += 10000; /* not while this test sleeps */
	assert_false(try_attach(f, &r));
	assert_non_null(strstr(r.rep.message, "and control group kept a ring full (1 dropped)"));
	assert_non_null(strstr(r.rep.message, "try again in 10"));
	assert_int_equal(f->a.counts.backed_off, 1);
	assert_int_equal(f->a.counts.refused, 1);
	d->until_ms = monotonic_ms();
	assert_true(try_attach(f, &r));
	detach(&r);
}
