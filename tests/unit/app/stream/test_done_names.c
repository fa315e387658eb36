/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of texts that ended: what is remembered, for how long, and what late packets get. */
#include <stdlib.h>

#include "control/tables/tables.h"
#include "fixture.h"
#include "small_vocab.h"

#define HZ UINT64_C(1000000000)
#define HORIZON_MS 20000
#define SECOND_STEPS 16 /* at least: steps of the table's time */
#define ONE_BUCKET sizeof(struct tokd_name_bucket)
#define OTHERS 1000 /* stream ids from here on are of other texts */

static struct tokd_stream_key
key_of(uint64_t stream_id)
{
	return (struct tokd_stream_key){.stream_id = stream_id, .epoch = EPOCH, .port = 7};
}

static uint64_t
name_of(const struct tokd_names *t, uint64_t stream_id)
{
	const struct tokd_stream_key key = key_of(stream_id);
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 7}};

	return tokd_name_of(t, tokd_key_sum(t, &key), &mac);
}

static bool
has(const struct tokd_names *t, uint64_t stream_id)
{
	return tokd_names_have(t, name_of(t, stream_id));
}

static uint32_t
add(struct tokd_names *t, uint64_t stream_id, struct tokd_source *source, uint64_t now)
{
	return tokd_names_add(t, name_of(t, stream_id), source, now);
}

static struct tokd_names
names_of_bytes(uint64_t bytes)
{
	struct tokd_names t;

	assert_int_equal(tokd_names_create(&t, bytes, 0, SOCKET_ID_ANY, HZ, HORIZON_MS), 0);
	return t;
}

/* The same table in each run: keys that count up collide together, so a few runs see many. */
static void
use_known_secret(struct tokd_names *t)
{
	uint8_t *byte = (uint8_t *)t->secret;
	uint64_t seed = 1;

	for (size_t i = 0; i < sizeof(t->secret); i++)
		byte[i] = (uint8_t)small_random(&seed, 256);
}

FIXTURE_TEST(names_of_a_full_bucket_go_oldest_first)
{
	struct tokd_names t = names_of_bytes(ONE_BUCKET);
	struct tokd_source source = {0};

	t.few = 1000;
	for (uint64_t i = 0; i < 100; i++) {
		assert_false(has(&t, i));
		add(&t, i, &source, i);
		for (uint64_t j = 0; j <= i; j++)
			assert_int_equal(has(&t, j), i - j < TOKD_NAMES_EACH);
	}
	tokd_names_free(&t);
}

FIXTURE_TEST(names_that_go_before_their_horizon_are_counted)
{
	/* Also where the 28 bits of time begin again. */
	static const uint64_t from[] = {0, HZ * 3600, (UINT64_C(1) << 28) * HZ / SECOND_STEPS};

	for (uint32_t f = 0; f < RTE_DIM(from); f++) {
		struct tokd_names t = names_of_bytes(ONE_BUCKET);
		struct tokd_source source = {0};
		uint64_t now = from[f] > 5 * HZ ? from[f] - 5 * HZ : 0, early = 0, i = 0;

		t.few = 1000;
		for (; i < 15; i++) /* two laps of 14 s each, and the third begins */
			early += add(&t, i, &source, now += 2 * HZ);
		assert_int_equal(early, 2 * TOKD_NAMES_EACH);
		for (; i < 36; i++) /* laps of 28 s */
			early += add(&t, i, &source, now += 4 * HZ);
		assert_int_equal(early, 2 * TOKD_NAMES_EACH);
		tokd_names_free(&t);
	}
}

/* A text for each 64 bytes: of the latest so many, of a source with many, nearly all stand. */
FIXTURE_TEST(names_fill_the_table_evenly)
{
	const uint64_t bytes = 1 << 20, n = bytes / 64;
	struct tokd_names t = names_of_bytes(bytes);
	struct tokd_source source = {0};
	uint32_t forgotten = 0, false_hits = 0;

	use_known_secret(&t);
	for (uint64_t i = 0; i < 5 * n; i++)
		add(&t, i, &source, HZ);
	for (uint64_t i = 4 * n; i < 5 * n; i++)
		forgotten += !has(&t, i);
	for (uint64_t i = 5 * n; i < 20 * n; i++)
		false_hits += has(&t, i);
	assert_in_range(forgotten, 0, 4); /* expected: 0.2 */
	assert_int_equal(false_hits, 0);  /* expected: 0.001 */
	tokd_names_free(&t);
}

/* However many texts the others have. All is within the first horizon. */
FIXTURE_TEST(names_of_a_source_with_few_texts_stand_beside_greedy_ones)
{
	struct tokd_names t = names_of_bytes(512 << 10);
	struct tokd_source few = {0}, greedy[30] = {0};
	uint64_t now = HZ, other = 1 << 20;

	use_known_secret(&t);
	for (uint64_t i = 0; i < t.few; i++) {
		add(&t, i, &few, now);
		for (uint32_t n = 0; n < 3000; n++)
			add(&t, other++, &greedy[n % RTE_DIM(greedy)], now);
		now += (HORIZON_MS - 2000) * (HZ / 1000) / t.few;
	}
	for (uint64_t i = 0; i < t.few; i++)
		assert_true(has(&t, i));
	/* After a horizon a source that was greedy counts anew. */
	add(&t, 1000, &greedy[0], now + 2 * HORIZON_MS * (HZ / 1000));
	assert_int_equal(greedy[0].names, 1);
	tokd_names_free(&t);
}

/* Keys that fill one bucket under one secret are spread under another. */
FIXTURE_TEST(names_do_not_show_who_does_not_know_the_secret_what_collides)
{
	struct tokd_names known = names_of_bytes(64 << 10), t = names_of_bytes(64 << 10);
	uint32_t n = 0, together = 0;

	for (uint64_t i = 0; n < 100; i++) {
		if (tokd_names_bucket(&known, name_of(&known, i)) != known.bucket)
			continue;
		n++;
		together += tokd_names_bucket(&t, name_of(&t, i)) == t.bucket;
	}
	assert_in_range(together, 0, TOKD_NAMES_EACH - 1); /* expected: 0.1 */
	tokd_names_free(&known);
	tokd_names_free(&t);
}

/* So many texts of others that no answer stands. */
static void
others_come(uint64_t from)
{
	for (uint64_t i = 0; i <= STREAMS; i++) {
		ask_text(OTHERS + from + i, "hello world", 11, 100, 0);
		drain();
	}
}

/* Each packet of stream 1, alone: refused, and nothing comes of it. */
static void
expect_refused(uint32_t packets)
{
	const uint64_t head = fx->w.ring.head;

	for (uint32_t p = 0; p < packets; p++)
		expect_refusal(text_packet(1, "hello world", 11, 4, 0, p), TOKD_R_EXPIRED);
	assert_int_equal(fx->w.ring.head, head);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 0);
	expect_count(C_DROP_REPEAT, packets);
}

FIXTURE_TEST(names_refuse_late_packets_of_a_text_whose_answer_is_gone)
{
	ask_text(1, "hello world", 11, 4, 0);
	drain();
	others_come(0);
	expect_refused(3);
	send_text(2, "hello world", 11, 4, 0); /* under another id it is made again */
	run();
	expect_text(2, "hello world", 11);
	drain();
}

FIXTURE_TEST(names_refuse_late_packets_of_a_text_that_failed)
{
	struct request r = data_request(1, 0, 0, "hello world", 11, TOKD_F_FIRST | TOKD_F_LAST);

	r.req.text_crc ^= 1;
	expect_refusal(r, TOKD_R_TEXT_CRC);
	others_come(0);
	expect_refused(3);
}

/* --done-timeout is over, if only by a jump of the clock. */
FIXTURE_TEST(names_outlive_the_answer_after_any_time)
{
	ask_text(1, "hello world", 11, 4, 0);
	drain();
	fx->w.t_burst += 1000 * fx->w.streams->finished_ticks;
	tokd_housekeeping(&fx->w, fx->w.t_burst);
	assert_int_equal(fx->w.streams->n_used, 0);
	expect_refused(3);
}
