/* SPDX-License-Identifier: BSD-3-Clause */
/* --wipe: what is zero in a worker's memory, and that nothing is that is still needed. */
#include "fixture.h"

#define TEXT 600
#define CUT 97 /* bytes of a packet: several records */

static uint8_t text[TEXT];
static uint32_t want[3 * TEXT], n_want;

static int
setup_wipe(void **state)
{
	setup_small_ring_and_side_store(state);
	fx->w.wipe = fx->w.side.wipe = true;
	memset(fx->w.side.data, 0, SIDE_BYTES);
	make_text(text, TEXT, 1);
	n_want = whole(text, TEXT, want, RTE_DIM(want));
	return 0;
}
#define WIPE_TEST(name) TEST_WITH(name, setup_wipe, teardown)

static bool
is_zero(const void *p, size_t n)
{
	const uint8_t *byte = p;

	while (n > 0 && byte[n - 1] == 0)
		n--;
	return n == 0;
}

/* Housekeeping in so many seconds. */
static void
wait(uint64_t seconds)
{
	tokd_housekeeping(&fx->w, rte_rdtsc() + seconds * fx->w.tsc_hz);
}

static void
acknowledge(uint32_t ids)
{
	const struct request r = poll_request(1, ids, 0);

	ask(r);
	drain();
}

/* The first `n` packets of the text, a record each. */
static void
send_packets(uint32_t n)
{
	for (uint32_t p = 0; p < n; p++) {
		const struct request r =
			text_packet(1, text, TEXT, CUT, TOKD_F_IDS | TOKD_F_STREAM, p);

		ask(r);
		drain();
	}
}

static void
fill_ring(void)
{
	const uint64_t until = fx->w.ring.head + 2 * SMALL_RING_BYTES;

	for (uint64_t id = 1000; fx->w.ring.head < until; id++) {
		ask_text(id, "hello world", 11, 100, 0);
		drain();
	}
}

WIPE_TEST(a_record_is_wiped_when_its_client_has_the_ids)
{
	const struct tokd_ring *r = &fx->w.ring;
	const struct tokd_stream *s = &fx->w.streams->stream[0];

	send_packets(text_packets(TEXT, CUT));
	assert_true(is_zero(&s->tok, sizeof(s->tok)));
	wait(2);
	assert_true(is_zero(fx->w.gather, sizeof(fx->w.gather)));
	assert_int_equal(r->tail, 0);
	acknowledge(n_want / 2);
	wait(4);
	assert_in_range(r->tail, 1, r->head - 1);
	assert_true(is_zero(r->data, r->tail));
	acknowledge(n_want);
	wait(6);
	assert_int_equal(r->tail, r->head);
	assert_true(is_zero(r->data, r->head));
}

WIPE_TEST(a_record_is_wiped_when_its_reader_has_released_it)
{
	const struct tokd_ring *r = &fx->w.ring;

	reader_join(0);
	ask_text(1, text, TEXT, TEXT, 0);
	drain();
	wait(2);
	assert_int_equal(r->tail, 0);
	fx->cursor[0] = r->head;
	wait(0);
	assert_int_equal(r->tail, 0); /* too new */
	wait(4);
	assert_true(is_zero(r->data, r->head));
}

WIPE_TEST(what_made_way_for_others_is_wiped)
{
	send_packets(3);
	fill_ring();
	assert_false(is_zero(fx->w.side.data, SIDE_BYTES));
	wait(2);
	assert_true(is_zero(fx->w.ring.data, SMALL_RING_BYTES));
	acknowledge(fx->w.streams->stream[0].sent);
	assert_true(is_zero(fx->w.side.data, SIDE_BYTES));
}

WIPE_TEST(nothing_stays_of_a_text_that_failed)
{
	struct request r = data_request(1, 0, 0, text, TEXT, TOKD_F_FIRST | TOKD_F_IDS);

	ask(r);
	r = data_request(1, 1, TEXT, "\xc3", 1, TOKD_F_LAST | TOKD_F_IDS);
	r.req.text_crc = 1;
	ask(r);
	drain();
	expect_count(C_STREAMS_FAILED, 1);
	wait(2);
	assert_true(is_zero(fx->w.ring.data, fx->w.ring.head));
	assert_true(is_zero(&fx->w.streams->stream[0].tok, sizeof(struct tok_stream)));
}
