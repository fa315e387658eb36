/* SPDX-License-Identifier: BSD-3-Clause */
/* The faulty wire of tokd-load-dpdk: its rates, its order, and that nothing gets lost by mistake.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "faults.h"

#define FIXTURE_TEST(name) TEST_WITH(name, setup, teardown)

#define PACKETS 200000u
#define PART(share) ((uint32_t)((share)*FAULTS_CERTAIN))

struct packet {
	uint32_t number;
};

struct wire {
	struct faults f;
	uint32_t n_out, alive;
	uint32_t *seen;	 /* how often each came out */
	uint32_t *order; /* numbers as they came out */
	uint64_t now;
};

static struct wire *wire; /* packets know nothing of it */

static struct packet *
packet_of(uint32_t number)
{
	struct packet *p = malloc(sizeof(*p));

	assert_non_null(p);
	p->number = number;
	wire->alive++;
	return p;
}

static void *
copy(void *packet, void *arg)
{
	assert_ptr_equal(arg, wire);
	return packet_of(((struct packet *)packet)->number);
}

static void
drop(void *packet)
{
	wire->alive--;
	free(packet);
}

static void
come_out(void **out, uint32_t n)
{
	assert_true(n <= FAULTS_OUT);
	for (uint32_t i = 0; i < n; i++) {
		struct packet *p = out[i];

		wire->order[wire->n_out++] = p->number;
		wire->seen[p->number]++;
		drop(p);
	}
}

/* All packets through a wire of these rates, and then what is still held back. */
static void
run(struct fault_rates rates, uint64_t seed)
{
	const struct fault_packets packets = {copy, drop, wire};
	void *out[FAULTS_OUT];

	memset(wire->seen, 0, PACKETS * sizeof(*wire->seen));
	wire->n_out = 0;
	faults_init(&wire->f, &rates, &packets, seed);
	for (uint32_t i = 0; i < PACKETS; i++)
		come_out(out, faults_take(&wire->f, packet_of(i), wire->now++, out));
	come_out(out, faults_due(&wire->f, UINT64_MAX, out));
	assert_int_equal(wire->alive, 0);
	assert_int_equal(wire->f.came, PACKETS);
	assert_int_equal(wire->f.passed, wire->n_out);
}

static int
setup(void **state)
{
	wire = calloc(1, sizeof(*wire));
	wire->seen = calloc(PACKETS, sizeof(*wire->seen));
	wire->order = calloc(2 * PACKETS, sizeof(*wire->order));
	return 0;
}

static int
teardown(void **state)
{
	free(wire->order);
	free(wire->seen);
	free(wire);
	return 0;
}

FIXTURE_TEST(without_faults_all_pass_in_order)
{
	run((struct fault_rates){0}, 1);
	for (uint32_t i = 0; i < PACKETS; i++)
		assert_int_equal(wire->order[i], i);
}

FIXTURE_TEST(about_as_many_are_hit_as_the_rates_say)
{
	uint32_t gone = 0, twice = 0;

	run((struct fault_rates){PART(0.02), PART(0.02), PART(0.01)}, 1);
	for (uint32_t i = 0; i < PACKETS; i++) {
		gone += wire->seen[i] == 0;
		twice += wire->seen[i] == 2;
	}
	assert_int_equal(gone, wire->f.lost);
	assert_int_equal(twice, wire->f.duplicated);
	assert_in_range(gone, PACKETS / 50 - 300, PACKETS / 50 + 300); /* 5 sigma */
	assert_in_range(twice, PACKETS / 100 - 220, PACKETS / 100 + 220);
	assert_in_range(wire->f.reordered, PACKETS / 50 - 300, PACKETS / 50 + 300);
}

FIXTURE_TEST(one_held_back_goes_behind_one_to_eight_later_ones)
{
	uint32_t highest = 0, late = 0;

	run((struct fault_rates){.reorder = PART(0.02)}, 1);
	assert_int_equal(wire->n_out, PACKETS);
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t n = wire->order[i];

		if (i > 0 && n < highest) {
			late++;
			/* Others that were held back meanwhile count as passed only later. */
			assert_in_range(highest - n, 1, 2 * FAULTS_BEHIND);
		}
		highest = n > highest ? n : highest;
	}
	assert_true(late > wire->f.reordered * 9 / 10);
	assert_true(late <= wire->f.reordered);
}

FIXTURE_TEST(one_held_back_goes_when_its_time_is_over)
{
	const struct fault_rates rates = {.reorder = FAULTS_CERTAIN};
	const struct fault_packets packets = {copy, drop, wire};
	void *out[FAULTS_OUT];

	faults_init(&wire->f, &rates, &packets, 1);
	assert_int_equal(faults_take(&wire->f, packet_of(0), 100, out), 0);
	assert_int_equal(faults_due(&wire->f, 100 + FAULTS_WAIT_NS - 1, out), 0);
	assert_int_equal(faults_due(&wire->f, 100 + FAULTS_WAIT_NS, out), 1);
	come_out(out, 1);
	assert_int_equal(faults_due(&wire->f, UINT64_MAX, out), 0);
}

FIXTURE_TEST(what_cannot_be_held_back_passes)
{
	const struct fault_rates rates = {.reorder = FAULTS_CERTAIN};
	const struct fault_packets packets = {copy, drop, wire};
	void *out[FAULTS_OUT];
	uint32_t n = 0;

	/* None of them passes, so none lets go of another, until there is no more room. */
	faults_init(&wire->f, &rates, &packets, 1);
	for (uint32_t i = 0; i < FAULTS_HELD; i++)
		n += faults_take(&wire->f, packet_of(i), 0, out);
	assert_int_equal(n, 0);
	n = faults_take(&wire->f, packet_of(FAULTS_HELD), 0, out);
	assert_in_range(n, 1, FAULTS_OUT);
	come_out(out, n);
	assert_int_equal(wire->order[0], FAULTS_HELD);
	come_out(out, faults_due(&wire->f, UINT64_MAX, out));
	assert_int_equal(wire->n_out, FAULTS_HELD + 1);
	assert_int_equal(wire->alive, 0);
}

FIXTURE_TEST(everything_can_be_lost)
{
	run((struct fault_rates){FAULTS_CERTAIN, FAULTS_CERTAIN, FAULTS_CERTAIN}, 1);
	assert_int_equal(wire->n_out, 0);
	assert_int_equal(wire->f.lost, PACKETS);
}

FIXTURE_TEST(everything_can_come_twice_and_late)
{
	run((struct fault_rates){0, FAULTS_CERTAIN, FAULTS_CERTAIN}, 1);
	for (uint32_t i = 0; i < PACKETS; i++)
		assert_int_equal(wire->seen[i], 2);
}

FIXTURE_TEST(a_seed_gives_the_same_faults_again_and_another_others)
{
	const struct fault_rates rates = {PART(0.02), PART(0.02), PART(0.01)};
	uint32_t n, *first = calloc(2 * PACKETS, sizeof(*first));

	assert_non_null(first);
	run(rates, 5);
	n = wire->n_out;
	memcpy(first, wire->order, n * sizeof(*first));
	run(rates, 5);
	assert_int_equal(wire->n_out, n);
	assert_memory_equal(wire->order, first, n * sizeof(*first));
	run(rates, 6);
	assert_true(wire->n_out != n || memcmp(wire->order, first, n * sizeof(*first)) != 0);
	free(first);
}
