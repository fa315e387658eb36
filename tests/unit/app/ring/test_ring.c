/* SPDX-License-Identifier: BSD-3-Clause */
/* The token ring: wrapping, the tail, readers that hold it. (setup_small_ring: 64 KiB.) */
#include <stdlib.h>

#include "fixture.h"

static uint8_t text[2000];

/* Finish a text of n bytes in one packet; false if it was not taken. */
static bool
feed_one(uint64_t stream, uint32_t n)
{
	struct reply rep;

	ask(text_packet(stream, text, n, 2000, 0, 0));
	rep = expect_reply();
	if (rep.rep.flags == TOKD_F_DONE)
		return true;
	assert_int_equal(rep.rep.flags, 0);
	assert_int_equal(rep.rep.credit, 0);
	assert_int_equal(rep.rep.ack, 0);
	return false;
}

/* What hdr->tail says still stands is whole: a chain of records from there to the head. */
static uint32_t
walk_from_tail(void)
{
	const struct tokd_ring *r = &fx->w.ring;
	uint32_t records = 0;
	uint64_t pos = r->hdr->tail;

	assert_true(r->hdr->head - pos <= r->mask + 1);
	while (pos < r->hdr->head) {
		const struct tokd_rec *rec = tokd_ring_at(r, pos);

		assert_true(rec->kind == TOKD_REC_TOKENS || rec->kind == TOKD_REC_PAD);
		assert_true(rec->bytes > 0);
		records++;
		pos += rec->bytes;
	}
	assert_int_equal(pos, r->hdr->head);
	return records;
}

TEST_WITH(ring_wraps_with_pad_and_the_tail_moves, setup_small_ring, teardown)
{
	uint64_t before = 0;
	bool padded = false;

	make_text(text, sizeof(text), 1);
	for (uint64_t s = 0; s < 300; s++) {
		fx->read_pos = fx->w.ring.head;
		assert_true(feed_one(s, 500 + (uint32_t)s * 3));
		padded |= tokd_ring_at(&fx->w.ring, fx->read_pos)->kind == TOKD_REC_PAD;
		expect_text(s, text, 500 + (uint32_t)s * 3);
		assert_true(fx->w.ring.hdr->tail >= before);
		before = fx->w.ring.hdr->tail;
		assert_true(walk_from_tail() > 0);
	}
	assert_true(padded);
	assert_true(before > 3 * SMALL_RING_BYTES);
	assert_false(fx->w.ring.full);
}

TEST_WITH(ring_record_takes_what_was_produced, setup_small_ring, teardown)
{
	const uint32_t keys = fx_block_keys == 0 ? 0 : 300 / fx_block_size;
	const uint64_t bytes = tokd_rec_bytes(300) + tokd_rec_keys_bytes(&fx->w.ring, keys);

	memset(text, 0xff, 100); /* U+FFFD is three bytes, and so ids, for each */
	assert_true(feed_one(1, 100));
	assert_int_equal(fx->w.ring.head, bytes);
	make_text(text, 100, 1);
	assert_true(feed_one(2, 5));
	assert_int_equal(fx->w.ring.head, bytes + 64 + 64);
}

TEST_WITH(ring_held_by_a_reader_is_not_overwritten, setup_small_ring, teardown)
{
	struct request r;
	struct reply rep;
	uint64_t s = 0, since, tail;

	make_text(text, sizeof(text), 1);
	reader_join(3);
	while (feed_one(s, 700))
		assert_true(++s < 1000);
	expect_count(C_DROP_RING_FULL, 1);
	assert_true(fx->w.ring.full);
	since = fx->w.ring.reader[3].since;
	assert_int_not_equal(since, 0);
	tail = fx->w.ring.hdr->tail;
	assert_int_equal(tail, fx->w.ring.reader[3].start);
	assert_int_equal(fx->w.counter[C_RING_UNREAD], 0);

	/* Trying again changes nothing, a POLL neither. */
	assert_false(feed_one(s, 700));
	r = poll_request(s, 0, 0);
	ask(r);
	rep = expect_reply();
	assert_int_equal(rep.rep.credit, 0);
	assert_int_equal(rep.rep.reason, TOKD_R_RING);
	assert_int_equal(rep.rep.flags & TOKD_F_FAIL, 0);
	tokd_housekeeping(&fx->w, fx->w.t_burst);
	assert_int_equal(fx->w.ring.reader[3].since, since);
	assert_int_equal(fx->w.ring.hdr->tail, tail);
	tokd_worker_turn(&fx->w);
	tokd_worker_turn(&fx->w);
	assert_true(fx->w.counter[C_CYCLES_BACKPRESSURED] > 0);

	/* The reader moves: the POLL finds room, the packet sent again is taken. */
	atomic_store(&fx->cursor[3], fx->w.ring.head);
	ask(r);
	rep = expect_reply();
	assert_int_equal(rep.rep.credit, TOKD_WIRE_WINDOW);
	assert_int_equal(rep.rep.reason, TOKD_R_NONE);
	assert_false(fx->w.ring.full);
	fx->read_pos = fx->w.ring.head;
	assert_true(feed_one(s, 700));
	expect_text(s, text, 700);
}

TEST_WITH(ring_is_looked_at_when_nobody_feeds, setup_small_ring, teardown)
{
	uint64_t s = 0;

	make_text(text, sizeof(text), 1);
	reader_join(0);
	while (feed_one(s, 700))
		s++;
	atomic_store(&fx->cursor[0], fx->w.ring.head);
	tokd_housekeeping(&fx->w, fx->w.t_burst);
	assert_false(fx->w.ring.full);
}

TEST_WITH(ring_reader_that_leaves_is_not_waited_for, setup_small_ring, teardown)
{
	struct tokd_ring *r = &fx->w.ring;
	uint64_t s = 0;

	make_text(text, sizeof(text), 1);
	reader_join(0);
	reader_join(1);
	assert_int_equal(r->n_active, 2);
	atomic_store(&fx->cursor[1], UINT64_MAX); /* clamped to the head: it waits for nothing */
	while (feed_one(s, 700))
		assert_true(++s < 1000);
	assert_int_not_equal(r->reader[0].since, 0);
	assert_int_equal(r->reader[1].since, 0);
	assert_true(r->reader[1].seen <= r->head);
	atomic_store(&r->reader[0].state, TOKD_READER_LEAVE);
	tokd_housekeeping(&fx->w, fx->w.t_burst);
	assert_int_equal(r->reader[0].state, TOKD_READER_FREE);
	assert_int_equal(r->n_active, 1);
	assert_false(r->full);
	/* The other one's cursor was taken as the head of then; now it says zero, and stays put. */
	atomic_store(&fx->cursor[1], 0);
	assert_true(feed_one(s, 700));
}

TEST_WITH(ring_cursor_inside_a_record_frees_only_whole_records, setup_small_ring, teardown)
{
	uint64_t s = 0, second;

	make_text(text, sizeof(text), 1);
	reader_join(0);
	while (feed_one(s, 700))
		s++;
	second = tokd_ring_at(&fx->w.ring, 0)->bytes;
	atomic_store(&fx->cursor[0], second + 8);
	feed_one(s, 700);
	assert_int_equal(fx->w.ring.hdr->tail, second);
	walk_from_tail();
}

TEST_WITH(ring_full_keeps_held_packets_for_their_turn, setup_small_ring, teardown)
{
	struct request r;
	uint64_t s = 0;

	make_text(text, sizeof(text), 1);
	reader_join(0);
	while (feed_one(s, 700))
		s++;
	fx->read_pos = fx->w.ring.head;
	send_request(text_packet(500, text, 2000, 1000, 0, 1));
	r = text_packet(500, text, 2000, 1000, 0, 0);
	ask(r);
	assert_int_equal(expect_reply().rep.ack, 0);
	assert_int_equal(fx->w.n_held, 1);
	atomic_store(&fx->cursor[0], fx->w.ring.head);
	ask(r);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	assert_int_equal(fx->w.n_held, 0);
	expect_text(500, text, 2000);
}

TEST_WITH(ring_full_again_at_a_held_packet_is_resumed_by_poll, setup_small_ring, teardown)
{
	uint64_t s = 0;

	make_text(text, sizeof(text), 1);
	reader_join(0);
	/* Room for one packet of 700 bytes, not for a second. */
	while (fx->w.ring.head + 2 * tokd_rec_most(&fx->w.ring, TOKD_REC_TOKENS, 3 * 700) <
		SMALL_RING_BYTES)
		assert_true(feed_one(s++, 700));
	fx->read_pos = fx->w.ring.head;
	memset(text, 0xff, sizeof(text)); /* as many ids as there can be */
	for (int i = 1; i >= 0; i--)
		send_request(text_packet(500, text, 1400, 700, 0, (uint32_t)i));
	run();
	assert_int_equal(expect_reply().rep.ack, 1);
	assert_int_equal(fx->w.n_held, 1);
	ask(text_packet(500, text, 1400, 700, 0, 1)); /* its turn, but the ring is full still */
	assert_int_equal(expect_reply().rep.credit, 0);
	expect_count(C_RX_DUPLICATE, 1);
	atomic_store(&fx->cursor[0], fx->w.ring.head);
	ask(poll_request(500, 0, 0));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	assert_int_equal(fx->w.n_held, 0);
	expect_text(500, text, 1400);
}

TEST_WITH(ring_full_in_the_middle_of_a_packet_goes_on_there, setup_small_ring, teardown)
{
	static uint8_t big[JUMBO_TEXT];
	struct request r;
	uint64_t s = 0;
	struct reply rep;

	make_text(text, sizeof(text), 1);
	make_text(big, sizeof(big), 2);
	reader_join(0);
	while (fx->w.ring.head < SMALL_RING_BYTES - 34000)
		assert_true(feed_one(s++, 700));
	fx->read_pos = fx->w.ring.head;
	r = text_packet(500, big, sizeof(big), sizeof(big), 0, 0);
	ask(r);
	rep = expect_reply();
	assert_int_equal(rep.rep.ack, 0);
	assert_int_equal(rep.rep.credit, 0);
	assert_true(rep.rep.text_end > 0 && rep.rep.text_end < sizeof(big));
	for (uint32_t i = 0; rep.rep.flags != TOKD_F_DONE; i++) {
		assert_true(i < 20);
		atomic_store(&fx->cursor[0], fx->w.ring.head);
		ask(r);
		rep = expect_reply();
	}
	/* Not all of it stands any more: the crc tells. */
	assert_int_equal(rep.rep.text_end, sizeof(big));
	{
		uint32_t *ids = calloc(3 * sizeof(big), 4);
		uint32_t n = whole(big, sizeof(big), ids, 3 * sizeof(big));

		assert_int_equal(rep.rep.total, n);
		assert_int_equal(rep.rep.ids_crc, crc32c_of(ids, 4 * n));
		free(ids);
	}
}

TEST_WITH(ring_part_of_a_packet_sent_again_shorter_fails, setup_small_ring, teardown)
{
	static uint8_t big[JUMBO_TEXT];
	uint64_t s = 0;

	make_text(text, sizeof(text), 1);
	make_text(big, sizeof(big), 2);
	reader_join(0);
	while (fx->w.ring.head < SMALL_RING_BYTES - 34000)
		feed_one(s++, 700);
	ask(text_packet(500, big, sizeof(big), sizeof(big), 0, 0));
	assert_true(expect_reply().rep.text_end > 10);
	atomic_store(&fx->cursor[0], fx->w.ring.head);
	expect_refusal(text_packet(500, big, 10, 10, 0, 0), TOKD_R_LENGTH);
}

static void
fill_to_the_last_byte(void)
{
	struct tokd_ring *r = &fx->w.ring;

	for (uint64_t s = 0; feed_one(s, 700);)
		s++;
	while (r->head + 64 <= r->limit && tokd_ring_reserve(r, 64) != TOKD_RING_FULL) {
		uint64_t pos = tokd_ring_reserve(r, 64);

		*tokd_ring_at(r, pos) = (struct tokd_rec){.flags = TOKD_REC_FIRST | TOKD_REC_LAST};
		tokd_ring_publish(r, pos, TOKD_REC_TOKENS);
	}
}

TEST_WITH(ring_full_abort_waits_for_room, setup_small_ring, teardown)
{
	struct tokd_ring *r = &fx->w.ring;
	struct text_ids *got = calloc(1, sizeof(*got));
	struct request q = data_request(900, 0, 0, "hello", 5, 0);

	make_text(text, sizeof(text), 1);
	ask(q);
	reader_join(0);
	fill_to_the_last_byte();
	q = data_request(900, 1, 99, "hello", 5, 0);
	fx->read_pos = r->head;
	expect_refusal(q, TOKD_R_OFFSET);
	assert_int_equal(fx->read_pos, r->head);
	assert_false(TAILQ_EMPTY(&fx->w.streams->aborting));
	tokd_housekeeping(&fx->w, fx->w.t_burst);
	assert_false(TAILQ_EMPTY(&fx->w.streams->aborting));
	send_request(q); /* it answers meanwhile */
	run();
	expect_fail(TOKD_R_OFFSET);

	atomic_store(&fx->cursor[0], r->head);
	tokd_housekeeping(&fx->w, fx->w.t_burst);
	assert_true(TAILQ_EMPTY(&fx->w.streams->aborting));
	while (fx->read_pos < r->head) {
		const struct tokd_rec *rec = tokd_ring_at(r, fx->read_pos);

		fx->read_pos += rec->bytes;
		if (rec->kind == TOKD_REC_PAD)
			continue;
		assert_int_equal(rec->flags, TOKD_REC_ABORT);
		assert_int_equal(rec->reason, TOKD_R_OFFSET);
		got->aborts++;
	}
	assert_int_equal(got->aborts, 1);
	free(got);
}

/* They keep their places in the table until their ABORT is in the ring: others are refused. */
TEST_WITH(ring_full_of_texts_that_failed, setup_small_ring, teardown)
{
	uint32_t n_open;

	make_text(text, sizeof(text), 1);
	reader_join(0);
	fill_to_the_last_byte();
	drain();
	n_open = tokd_worker_open_streams(&fx->w);
	for (uint64_t s = 1000; s < 1000 + 2 * STREAMS; s++) {
		ask(data_request(s, 0, 99, "hello", 5, TOKD_F_FIRST));
		drain();
	}
	assert_in_range(fx->w.counter[C_STREAMS_FAILED], STREAMS / 2, STREAMS + 1);
	expect_count(C_DROP_TABLE_FULL, 2 * STREAMS - fx->w.counter[C_STREAMS_FAILED]);
	atomic_store(&fx->cursor[0], fx->w.ring.head);
	tokd_housekeeping(&fx->w, fx->w.t_burst);
	ask(data_request(2000, 0, 0, "hello", 5, TOKD_F_FIRST));
	expect_nothing();
	assert_int_equal(tokd_worker_open_streams(&fx->w), n_open + 1);
}
