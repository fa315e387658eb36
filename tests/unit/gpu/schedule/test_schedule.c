/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs that launch each other: nothing is lost, nothing twice, whenever anything happens. */
#include <stdio.h>
#include <stdlib.h>

#include "simulate.h"
#include "test.h"

/* TOKD_LAUNCHES: how many in each simulation, instead of so many. */
static uint64_t
launches(uint64_t n)
{
	const char *const more = getenv("TOKD_LAUNCHES");

	return more != NULL ? strtoull(more, NULL, 10) : n;
}

static struct simulated
simulated(struct simulate_how how)
{
	struct simulated s;

	simulate(&how, &s);
	print_message("# seed %llu: %llu launches (%llu steps) in %llu executions, %llu starts; "
		      "%llu slots, %llu entries, %llu lanes\n",
		(unsigned long long)how.seed, (unsigned long long)s.launches,
		(unsigned long long)s.steps, (unsigned long long)s.executions,
		(unsigned long long)s.incarnations, (unsigned long long)s.posted,
		(unsigned long long)s.entries, (unsigned long long)s.ended);
	if (s.wrong[0] != '\0')
		fail_msg("%s", s.wrong);
	return s;
}

TEST(each_slot_is_embedded_once_over_many_windows)
{
	const struct simulate_how how = {
		.launches = launches(100000), .seed = 1, .most_in_one = 100000};
	const struct simulated s = simulated(how);

	assert_int_equal(s.most, 120);
	assert_true(s.executions >= s.launches / 120);
	assert_true(s.entries >= s.posted - 24);
	assert_true(s.steps > 1000 && s.ended > 1000);
}

TEST(ids_of_an_external_engine_come_back_once_and_no_step_is_needless)
{
	const struct simulate_how how = {
		.launches = launches(60000), .seed = 5, .most_in_one = 10000, .external = true};
	const struct simulated s = simulated(how);

	assert_true(s.engines > 10 && s.incarnations > 3);
	assert_true(s.made > 1000 && s.ended > 1000 && s.steps > 1000);
}

TEST(slots_are_found_by_heads_alone)
{
	const struct simulate_how how = {
		.launches = launches(30000), .seed = 2, .most_in_one = 30000, .heads = true};

	assert_true(simulated(how).executions > 100);
}

TEST(an_idle_scheduler_begins_a_new_window_early)
{
	const struct simulate_how how = {
		.launches = launches(3000), .seed = 4, .most_in_one = 3000, .rarely = true};
	const struct simulated s = simulated(how);

	assert_true(s.early > 0);
}

/* Also before the first launch, and while a window's children are waited for. */
TEST(the_scheduler_may_be_stopped_at_any_moment)
{
	const struct simulate_how how = {
		.launches = launches(30000), .seed = 3, .most_in_one = 250};

	assert_true(simulated(how).incarnations > 100);
}

TEST(a_failed_launch_leaves_its_slots_to_the_next_consumer)
{
	for (uint64_t fails = 1; fails < 400; fails += 37) {
		const struct simulate_how how = {
			.launches = 800, .seed = fails, .most_in_one = 500, .launch_fails = fails};
		const struct simulated s = simulated(how);

		assert_int_equal(s.failed, 1);
		assert_true(s.incarnations > 1);
	}
}
