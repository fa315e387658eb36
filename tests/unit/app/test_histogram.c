/* SPDX-License-Identifier: BSD-3-Clause */
/* Times by stage: the arithmetic of the histograms, and what is counted as which stage. */
#include <stdlib.h>

#include <mix.h>
#include "fixture.h"
#include "telemetry/histogram.h"

#define VALUES 10000
#define UNIT (UINT64_C(1) << TOKD_HISTOGRAM_UNIT_SHIFT) /* ticks */
#define BITS (35 + TOKD_HISTOGRAM_UNIT_SHIFT)		/* of what fits the buckets */

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t
times(enum tokd_stage stage)
{
	return tokd_histogram_count(&fx->w.time[stage]);
}

FIXTURE_TEST(histogram_buckets_follow_each_other_without_gap)
{
	assert_int_equal(tokd_histogram_from(0), 0);
	for (uint32_t i = 0; i < TOKD_HISTOGRAM_BUCKETS; i++) {
		uint64_t from = tokd_histogram_from(i), end = tokd_histogram_from(i + 1);

		assert_int_equal(tokd_histogram_bucket(from), i);
		assert_int_equal(
			tokd_histogram_bucket(end - 1), RTE_MIN(i, TOKD_HISTOGRAM_BUCKETS - 1u));
		/* No wider than 1/16 of what it counts, or one unit. */
		assert_true(end - from <= RTE_MAX(from / 16, UNIT));
	}
	assert_int_equal(tokd_histogram_from(TOKD_HISTOGRAM_BUCKETS), UINT64_C(1) << BITS);
	assert_int_equal(tokd_histogram_bucket(UINT64_C(1) << BITS), TOKD_HISTOGRAM_BUCKETS - 1);
	assert_int_equal(tokd_histogram_bucket(UINT64_MAX), TOKD_HISTOGRAM_BUCKETS - 1);
}

/* n values, of all sizes up to 2^bits, against the same values in order. */
static void
compare_with_sorted(uint32_t n, uint32_t bits)
{
	static const uint32_t permille[] = {1, 10, 250, 500, 900, 990, 999, 1000};
	struct tokd_histogram part[2] = {0}, all = {0};
	uint64_t *value = calloc(n, sizeof(*value)), sum = 0, dice = n * 2654435761u + bits;

	assert_non_null(value);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t x = dice_throw(&dice);

		value[i] = (x >> 8) >> (64 - 8 - bits + (x >> 59) % bits);
		tokd_histogram_add(&part[i % 2], value[i]);
		sum += value[i];
	}
	tokd_histogram_merge(&all, &part[0]);
	tokd_histogram_merge(&all, &part[1]);
	qsort(value, n, sizeof(*value), by_size);
	assert_int_equal(tokd_histogram_count(&all), n);
	assert_int_equal(all.sum, sum);
	assert_int_equal(all.max, value[n - 1]);
	for (size_t i = 0; i < RTE_DIM(permille); i++) {
		uint32_t rank = (n * permille[i] + 999) / 1000; /* nearest rank */
		uint64_t is = value[rank - 1];
		uint64_t shown = tokd_histogram_percentile(&all, permille[i]);

		assert_true(shown >= is);
		assert_true(shown - is <= RTE_MAX(is / 16, UNIT - 1));
		assert_true(shown <= all.max);
	}
	free(value);
}

FIXTURE_TEST(histogram_percentiles_are_those_of_a_sorted_list)
{
	struct tokd_histogram none = {0}, one = {0}, far = {0};

	for (uint32_t bits = 1; bits <= BITS; bits++) {
		compare_with_sorted(1, bits);
		compare_with_sorted(2, bits);
		compare_with_sorted(VALUES, bits);
	}
	assert_int_equal(tokd_histogram_percentile(&none, 500), 0);
	tokd_histogram_add(&one, 0);
	assert_int_equal(tokd_histogram_percentile(&one, 999), 0);
	/* Beyond the buckets only the largest is known. */
	tokd_histogram_add(&far, UINT64_C(1) << 50);
	tokd_histogram_add(&far, UINT64_C(1) << 51);
	assert_int_equal(tokd_histogram_percentile(&far, 500), UINT64_C(1) << 51);
}

/* Whatever the clock: 25 MHz to 1 GHz on ARM. */
FIXTURE_TEST(histogram_units_are_below_100_ns)
{
	assert_true(tokd_ticks_ns(UNIT, rte_get_tsc_hz()) < 100);
}

FIXTURE_TEST(histogram_ticks_become_ns_without_overflow)
{
	assert_int_equal(tokd_ticks_ns(0, 2000000000), 0);
	assert_int_equal(tokd_ticks_ns(3, 2000000000), 1);
	assert_int_equal(tokd_ticks_ns(UINT64_C(2000000000) * 86400 * 365, 2000000000),
		UINT64_C(1000000000) * 86400 * 365);
	assert_int_equal(tokd_ticks_ns(5999999999, 6000000000), 999999999);
}

FIXTURE_TEST(stages_of_a_text_are_counted_once_each)
{
	struct text_ids *got = calloc(1, sizeof(*got));
	uint64_t reply;

	for (uint32_t i = 0; i < 3; i++)
		ask(text_packet(1, "hello hello hello", 17, 6, TOKD_F_IDS, i));
	gather(1, got);
	assert_true(got->records > 1);
	assert_int_equal(times(T_WIRE_TO_RING), got->records);
	assert_int_equal(times(T_TEXT_TO_FIRST_ID), 1);
	assert_int_equal(times(T_TEXT_TO_LAST_ID), 1);
	assert_int_equal(times(T_TOKENIZER), 1);
	assert_int_equal(times(T_RING_TO_REPLY), 1);
	assert_true(fx->w.time[T_TEXT_TO_FIRST_ID].max <= fx->w.time[T_TEXT_TO_LAST_ID].max);
	assert_true(fx->w.time[T_TOKENIZER].max < fx->w.time[T_TEXT_TO_LAST_ID].max);
	assert_true(fx->w.time[T_TOKENIZER].max > 0);
	reply = fx->w.time[T_RING_TO_REPLY].sum;
	assert_true(reply > 0);
	drain();
	free(got);

	/* Answered again, but not first. */
	ask((struct request){.req = poll_request(1, 0, 100).req});
	assert_true(drain() > 0);
	assert_int_equal(times(T_RING_TO_REPLY), 1);
	assert_int_equal(fx->w.time[T_RING_TO_REPLY].sum, reply);
}

FIXTURE_TEST(stages_of_a_text_without_ids_or_without_replies)
{
	send_text(1, "", 0, 1, TOKD_F_IDS); /* empty: a last record, no first id */
	run();
	assert_int_equal(times(T_WIRE_TO_RING), 1);
	assert_int_equal(times(T_TEXT_TO_FIRST_ID), 0);
	assert_int_equal(times(T_TEXT_TO_LAST_ID), 1);
	/* Both begin with the burst of the one packet. */
	assert_int_equal(fx->w.time[T_TEXT_TO_LAST_ID].sum, fx->w.time[T_WIRE_TO_RING].sum);
	assert_int_equal(times(T_RING_TO_REPLY), 1);
	send_text(2, "hello", 5, 5, 0); /* ids only to the ring: its reply says DONE */
	run();
	assert_int_equal(times(T_TEXT_TO_LAST_ID), 2);
	assert_int_equal(times(T_RING_TO_REPLY), 2);
	drain();
}

FIXTURE_TEST(stages_count_from_the_packet_that_came_first)
{
	struct request second = text_packet(1, "hello hello", 11, 6, 0, 1);
	struct request first = text_packet(1, "hello hello", 11, 6, 0, 0);
	uint64_t early, late, now;

	ask(second);
	early = fx->w.t_burst;
	assert_int_equal(times(T_WIRE_TO_RING), 0);
	rte_delay_us_block(2000);
	ask(first);
	late = fx->w.t_burst;
	drain();
	now = rte_rdtsc();
	/* The held packet's record counts from its own arrival, and so does the text. */
	assert_true(fx->w.time[T_WIRE_TO_RING].max >= late - early);
	assert_true(fx->w.time[T_TEXT_TO_FIRST_ID].max >= late - early);
	assert_true(fx->w.time[T_TEXT_TO_LAST_ID].max >= late - early);
	/* Nothing was tokenized while it was held. */
	assert_true(fx->w.time[T_TOKENIZER].max <= now - late);
}

FIXTURE_TEST(stages_of_a_text_that_failed_have_no_end)
{
	ask(data_request(1, 0, 0, "hello wor", 9, TOKD_F_IDS));
	ask(data_request(1, 1, 100, "hello", 5, TOKD_F_IDS | TOKD_F_LAST));
	expect_count(C_STREAMS_FAILED, 1);
	drain();
	assert_int_equal(times(T_WIRE_TO_RING), 1); /* no ABORT record either */
	assert_int_equal(times(T_TEXT_TO_LAST_ID), 0);
	assert_int_equal(times(T_TOKENIZER), 0);
	assert_int_equal(times(T_RING_TO_REPLY), 0);
}

FIXTURE_TEST(stages_count_no_reply_that_the_driver_did_not_take)
{
	void *nothing;

	while (rte_ring_free_count(fx_tx) > 3)
		assert_int_equal(rte_ring_enqueue(fx_tx, NULL), 0);
	for (uint64_t stream = 1; stream <= 10; stream++)
		send_text(stream, "hello", 5, 5, TOKD_F_IDS);
	run();
	expect_count(C_TX_FULL, 7);
	assert_int_equal(times(T_TEXT_TO_LAST_ID), 10);
	assert_int_equal(times(T_RING_TO_REPLY), 3);
	while (rte_ring_count(fx_tx) > 3)
		rte_ring_dequeue(fx_tx, &nothing);
	assert_int_equal(drain(), 3);
}
