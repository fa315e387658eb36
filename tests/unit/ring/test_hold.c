/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a reader may keep a ring full, and who has to wait after that. */
#include <unistd.h>

#include <mix.h>

#include "fixture.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

TEST(hold_is_forgotten_at_the_rate_of_the_limit)
{
	const uint64_t window = TOKD_HOLD_WINDOW_MS, limit = 1000;

	assert_int_equal(tokd_hold_left(700, 0, limit), 700);
	assert_int_equal(tokd_hold_left(700000, window - limit, limit), 699000);
	assert_int_equal(tokd_hold_left(700000, 699 * (window - limit), limit), 1000);
	assert_int_equal(tokd_hold_left(700000, 700 * (window - limit), limit), 0);
	assert_int_equal(tokd_hold_left(700000, UINT64_MAX, limit), 0);
	assert_int_equal(
		tokd_hold_left(UINT64_MAX, UINT64_MAX, 1), UINT64_MAX - UINT64_MAX / (window - 1));
	/* The whole window: nothing is added up. Without a limit: everything. */
	assert_int_equal(tokd_hold_left(700, 0, TOKD_HOLD_WINDOW_MS), 0);
	assert_int_equal(tokd_hold_left(700, UINT64_MAX, 0), 700);
}

/* A reader that uses what is forgotten at once, with any pauses: in no window twice the limit. */
TEST(hold_in_any_window_is_below_twice_the_limit)
{
	enum { STEPS = 2000 };
	const uint64_t ms = 1000, window = TOKD_HOLD_WINDOW_MS * ms; /* ticks */
	static uint64_t begun[STEPS], took[STEPS];
	const uint32_t limits[] = {1, 10, 1000, 40000, TOKD_HOLD_WINDOW_MS - 1};
	uint64_t dice = 7;

	for (uint32_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
		const uint64_t limit = limits[l] * ms;
		uint64_t now = 0, held = 0;

		for (uint32_t i = 0; i < STEPS; i++) {
			const uint64_t pause = dice_throw(&dice) % (window / 4);

			now += pause;
			held = tokd_hold_left(held, pause, limits[l]);
			begun[i] = now;
			took[i] = limit - held;
			now += took[i];
			held = limit;
		}
		for (uint32_t i = 0; i < STEPS; i++) {
			uint64_t sum = 0;

			for (uint32_t j = i; j < STEPS && begun[j] + took[j] <= begun[i] + window;
				j++)
				sum += took[j];
			assert_true(sum < 2 * limit);
		}
	}
}

/* Refused for twice as long each time, and with a quarter of the time to hold a ring. */
FIXTURE_TEST(that_is_dropped_again_waits_longer_and_may_hold_less)
{
	struct tokd_conn c = {0};
	const uint64_t who = tokd_drops_owner(getpid(), getuid());
	uint64_t now = 1000;
	uint32_t n;

	assert_int_equal(tokd_drops_wait(&f->a, who, now, &n), 0);
	assert_int_equal(n, 0);
	for (uint32_t i = 1; i <= TOKD_DROPS_MAX + 2; i++) {
		const uint32_t level = i < TOKD_DROPS_MAX ? i : TOKD_DROPS_MAX;

		tokd_drops_add(&f->a, who, now);
		assert_int_equal(tokd_drops_wait(&f->a, who, now, &c.drops),
			(uint64_t)READER_TIMEOUT_MS << (level - 1));
		assert_int_equal(c.drops, level);
		assert_int_equal(tokd_reader_hold_ms(&f->a, &c),
			level < 4 ? READER_TIMEOUT_MS >> 2 * level : 1);
		now += (uint64_t)READER_TIMEOUT_MS << (level - 1);
		assert_int_equal(tokd_drops_wait(&f->a, who, now, &n), 0);
		assert_int_equal(n, level);
	}
	now += TOKD_HOLD_WINDOW_MS;
	assert_int_equal(tokd_drops_wait(&f->a, who, now, &n), 0);
	assert_int_equal(n, 0);
}

FIXTURE_TEST(that_was_dropped_does_not_count_for_others)
{
	const uint64_t who = tokd_drops_owner(getpid(), getuid());
	uint32_t n;

	assert_int_equal(who, tokd_drops_owner(getpid(), getuid()));
	assert_int_not_equal(who, tokd_drops_owner(getpid(), getuid() + 1));
	assert_int_not_equal(tokd_drops_owner(0, 0), tokd_drops_owner(0, 1)); /* no such process */
	/* Many owners: the one that is soonest forgotten gives its place. */
	for (uint64_t i = 1; i <= TOKD_DROPS_OWNERS + 1; i++)
		tokd_drops_add(&f->a, i, i);
	assert_int_equal(tokd_drops_wait(&f->a, 1, 1, &n), 0);
	for (uint64_t i = 2; i <= TOKD_DROPS_OWNERS + 1; i++)
		assert_int_not_equal(tokd_drops_wait(&f->a, i, i, &n), 0);
}
