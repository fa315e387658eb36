/* SPDX-License-Identifier: BSD-3-Clause */
/* Producers on the device: what they post is embedded, and a row that is not the table's is found.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "produce.h"

static const struct produce_config config = {.seed = 3,
	.posts = 200,
	.limit_ns = 20000000000ull,
	.tokens = 9,
	.in_flight = 3,
	.check_every = 1,
	.epoch = 7,
	.kept = 200};

/* All producers to their ends; what the first of them said. */
static struct produce_said
produced(struct bench *b, const struct produce_config *c)
{
	struct tokg_error err = {{0}};
	struct produce *const p = produce_cpu_open(b->d, c, b->word, &err);
	struct produce_said said;

	if (p == NULL || !p->ops->start(p, &err) || !p->ops->collect(p, &err))
		fail_msg("%s", err.text);
	said = p->said[0];
	for (uint32_t i = 0; i < 2 * c->kept && said.wrong == 0 && said.state == PRODUCE_ENDED; i++)
		assert_true(p->samples[i] > 0);
	p->ops->close(p);
	return said;
}

TEST(all_that_is_posted_is_embedded_and_compared)
{
	for (uint32_t batch = 0; batch < 4; batch += 3) {
		struct produce_config c = config;
		struct produce_said said;
		struct bench b;

		c.batch = batch;
		bench_start(&b, NULL);
		said = produced(&b, &c);
		assert_int_equal(said.state, PRODUCE_ENDED);
		assert_int_equal(said.done, 200);
		assert_int_equal(said.compared, 200);
		assert_int_equal(said.not_ok, 0);
		assert_int_equal(said.wrong, 0);
		bench_close(&b);
	}
}

BENCH_TEST(a_row_that_is_not_the_tables_is_found, NULL)
{
	struct produce_said said;

	b->word[8 * 42 + 5] += 1.0f; /* the device has its own copy */
	said = produced(b, &config);
	assert_true(said.wrong > 0);
}

TEST(without_a_consumer_they_end_by_their_limit)
{
	struct produce_config c = config;
	struct produce_said said;
	struct bench b;

	c.limit_ns = 50000000;
	bench_open(&b, NULL);
	said = produced(&b, &c);
	assert_int_equal(said.state, PRODUCE_LATE);
	assert_int_equal(said.done, 0);
	bench_close(&b);
}

BENCH_TEST(they_end_by_their_limit_however_quick_the_consumer, NULL)
{
	struct produce_config c = config;
	struct produce_said said;

	c.posts = 1ull << 40;
	c.limit_ns = 50000000;
	said = produced(b, &c);
	assert_int_equal(said.state, PRODUCE_LATE);
	assert_true(said.done > 0);
	assert_int_equal(said.wrong, 0);
}

TEST(what_does_not_fit_is_refused_in_words)
{
	struct tokg_error err = {{0}};
	struct produce_config c = config;
	struct bench b;

	bench_open(&b, NULL);
	c.in_flight = 5;
	assert_null(produce_cpu_open(b.d, &c, b.word, &err));
	assert_non_null(strstr(err.text, "5 slots in flight, must be 1 to 4"));
	c = config;
	c.tokens = 1025;
	assert_null(produce_cpu_open(b.d, &c, b.word, &err));
	assert_non_null(strstr(err.text, "a slot has 4096"));
	bench_close(&b);
}
